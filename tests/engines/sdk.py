"""The vendors' own types as judges of what we send: pydantic checks a value against their TypedDicts.

Two things that it would let pass are seen to: unknown keys are refused, and what their types call an iterable
is really gone through.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from typing import Any, cast

from pydantic import ConfigDict, TypeAdapter
from typing_extensions import is_typeddict


def accepted(kind: Any, value: Any) -> None:
    """Do nothing where a vendor's type takes a value; its keys are all known to it.

    Raises:
        ValidationError: it does not.
    """
    _go_through(_adapter(kind).validate_python(value))


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    _forbid_unknown_keys(_package(kind))
    return TypeAdapter(kind)


def _package(kind: Any) -> str:
    names = [getattr(one, "__module__", "") for one in (kind, *getattr(kind, "__args__", ()))]
    return next(name for name in names if name.partition(".")[0] not in ("typing", "types")).partition(".")[0]


@cache
def _forbid_unknown_keys(package: str) -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith(f"{package}.types"):
            for found in list(vars(module).values()):
                if is_typeddict(found):
                    found.__pydantic_config__ = ConfigDict(extra="forbid")


def _go_through(value: Any) -> None:
    if isinstance(value, dict):
        for inner in cast("dict[str, Any]", value).values():
            _go_through(inner)
    elif isinstance(value, list | tuple | Iterator):
        for inner in cast("Iterator[Any]", value):
            _go_through(inner)
