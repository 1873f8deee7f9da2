"""Every name that the page for gollem's users gives can be found where it says."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from tests.docs.tables import DOCS, tables

ROWS = [row for table in tables(DOCS / "gollem.md") for row in table[1:]]
NAMES = sorted({row[1] for row in ROWS if row[1]})


def found(name: str) -> Any:
    """What a dotted name stands for.

    Raises:
        AttributeError: nothing.
    """
    words = name.split(".")
    for length in range(len(words), 0, -1):
        try:
            here: Any = import_module(".".join(words[:length]))
        except ModuleNotFoundError:
            continue
        for word in words[length:]:
            options = getattr(here, "__optional_keys__", ())  # a TypedDict has its keys as no attributes
            here = word if word in options else _attribute(here, word)
        return here
    raise AttributeError(name)


def _attribute(here: Any, word: str) -> Any:
    fields = getattr(here, "__struct_fields__", ())
    if word in fields or word in getattr(here.__init__, "__annotations__", {}):
        return word
    return getattr(here, word)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_stands_for_something(name: str) -> None:
    assert found(name) is not None


def test_names_that_are_not_there_are_noticed() -> None:
    for name in ("flyball.NoSuchThing", "flyball.RunResult.no_such", "flyball.orchestrate.nothing.here"):
        with pytest.raises(AttributeError):
            found(name)


def test_who_has_no_counterpart_is_told_why() -> None:
    assert all(row[1] or row[2] for row in ROWS)
    assert len({row[0] for row in ROWS}) > 150
