"""How much an account may have: bytes on disk and in memory, streams, consumers, connections."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from flyball.core.errors import UserError

_UNITS = {
    "": 1,
    **{
        f"{letter}{mark}": base**power
        for power, letter in enumerate("kmgt", 1)
        for mark, base in (("", 1024), ("b", 1000), ("ib", 1024))
    },
}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?(?:i?b)?)", re.IGNORECASE)
FEWEST_STREAMS = 18
"""What flyball itself needs: journals in four partitions, the wire, buckets and stores."""


class Quota(Struct, frozen=True):
    """The most of everything; 0 is without end, but for `memory`, where flyball keeps nothing."""

    disk: int = 0
    memory: int = 0
    streams: int = 0
    consumers: int = 0
    connections: int = 0

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if getattr(self, name) < 0:
                raise UserError(
                    f"{name}={getattr(self, name)}: a quota is a number from 0, which is no limit"
                )
        if 0 < self.streams < FEWEST_STREAMS:
            raise UserError(
                f"streams={self.streams}: flyball needs {FEWEST_STREAMS} in an account, with four partitions"
            )

    def as_dict(self) -> dict[str, Any]:
        """By name; None for what is without end."""
        told = {name: getattr(self, name) or None for name in self.__struct_fields__}
        return told | {"memory": self.memory}


def read_size(text: str) -> int:
    """Bytes as people write them: 10GiB, 500MB, 1048576; `none` for no limit.

    Raises:
        UserError: it cannot be read.
    """
    if text.strip().lower() in ("none", "unlimited"):
        return 0
    found = _SIZE.fullmatch(text.strip())
    unit = found[2].lower() if found else ""
    if found is None or (unit not in _UNITS and unit != "b"):
        raise UserError(f"{text!r} is no size: write it like 10GiB, 500MB or 1048576, or none for no limit")
    return int(float(found[1]) * _UNITS.get(unit, 1))


def tell_size(size: int) -> str:
    """Bytes, for people."""
    number = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} TiB"
