"""The tree of errors as the classes make it: flyball's own, in the order in which it is drawn."""

from __future__ import annotations

from collections.abc import Iterator

from flyball.core import errors
from flyball.core.errors import FailureCategory, FlyballError

_ORDER = list(FailureCategory)


def tree(root: type[FlyballError] = FlyballError) -> Iterator[type[FlyballError]]:
    """The errors of the tree, each before those under it."""
    yield root
    ours = [child for child in root.__subclasses__() if child.__module__.startswith(f"{errors.__name__}.")]
    for child in sorted(ours, key=lambda one: _ORDER.index(one.category)):
        yield from tree(child)
