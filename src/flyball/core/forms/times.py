"""Times: seconds since the epoch inside, RFC 3339 outside.

Written in UTC with as many digits as the float has, at most nine. Go's zero time, which its structs hold when
nobody set them, is no time at all: None.
"""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta
from decimal import Decimal

from flyball.core.errors import InvalidMessage
from flyball.core.forms.fields import malformed

ZERO_TIME = "0001-01-01T00:00:00Z"
"""Go's zero time."""

_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)", re.ASCII)
_EPOCH = datetime(1970, 1, 1)  # naive: all arithmetic here is on UTC, where no zone is needed
_NANOSECONDS = 1_000_000_000
_ZERO = (datetime(1, 1, 1) - _EPOCH) // timedelta(seconds=1)


def seconds(text: str, where: str) -> float | None:
    """A time in seconds since the epoch; None for Go's zero time.

    Raises:
        InvalidMessage: the text is no RFC 3339 time.
    """
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise malformed(where, "an RFC 3339 time, such as 2025-01-31T12:00:00Z", text)
    moment, fraction, zone = match.groups()
    try:
        whole = (datetime.fromisoformat(moment) - _EPOCH) // timedelta(seconds=1) - _offset(zone)
    except ValueError as error:
        raise malformed(where, f"a time that exists ({error})", text) from error
    nanoseconds = whole * _NANOSECONDS + int((fraction or "0")[:9].ljust(9, "0"))
    # Division of whole numbers is exact to the last bit, which that of floats is not.
    return None if nanoseconds == _ZERO * _NANOSECONDS else nanoseconds / _NANOSECONDS


def stamp(moment: float | None) -> str:
    """A time as text; None is Go's zero time.

    Raises:
        InvalidMessage: it lies outside the years 1 to 9999.
    """
    if moment is None:
        return ZERO_TIME
    try:
        if not math.isfinite(moment):
            raise OverflowError
        # The shortest text that gives the same float back is the one that a person would have written.
        nanoseconds = int((Decimal(repr(float(moment))) * _NANOSECONDS).to_integral_value())
        whole, fraction = divmod(nanoseconds, _NANOSECONDS)
        day = (_EPOCH + timedelta(seconds=whole)).isoformat()
    except OverflowError:
        raise InvalidMessage(
            f"the timestamp {moment!r} lies outside the years 1 to 9999: give seconds since the epoch",
            where="timestamp",
        ) from None
    digits = f".{fraction:09}".rstrip("0") if fraction else ""
    return f"{day}{digits}Z"


def _offset(zone: str) -> int:
    if zone == "Z":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    if hours > 23 or minutes > 59:
        raise ValueError(f"the zone {zone} is none")
    return (hours * 3600 + minutes * 60) * (-1 if zone[0] == "-" else 1)
