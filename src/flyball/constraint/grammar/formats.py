"""The formats of JSON Schema as patterns.

Each is sound: what it matches is of that format to a validator that checks formats. Dates and times, UUIDs,
IPv4 addresses and durations are whole but for rare spellings (leap seconds, the year 0, lower-case `t` and
`z`); of e-mail addresses, host names, URIs and IPv6 addresses it is the usual part.
"""

from __future__ import annotations

from functools import cache

from flyball.constraint.grammar.pattern import pattern_tree
from flyball.constraint.grammar.tree import Expr

_YEAR = r"(?:000[1-9]|00[1-9]\d|0[1-9]\d\d|[1-9]\d{3})"
_LEAP_END = r"(?:0[48]|[2468][048]|[13579][26])"
_LEAP_YEAR = rf"(?:\d\d{_LEAP_END}|{_LEAP_END}00)"
_DAY = r"(?:0[1-9]|1\d|2[0-8])"
_DATE = (
    rf"(?:{_YEAR}-(?:(?:0[13578]|1[02])-(?:{_DAY}|29|3[01])|(?:0[469]|11)-(?:{_DAY}|29|30)|02-{_DAY})"
    rf"|{_LEAP_YEAR}-02-29)"
)
_TIME = r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,6})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)"

_BYTE = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_IPV4 = rf"{_BYTE}(?:\.{_BYTE}){{3}}"
_GROUP = r"[0-9a-f]{1,4}"
_IPV6 = "|".join(
    [
        rf"{_GROUP}(?::{_GROUP}){{7}}",
        *(
            (rf"{_GROUP}(?::{_GROUP}){{{left - 1}}}" if left else "")
            + "::"
            + (rf"(?:{_GROUP}(?::{_GROUP}){{0,{6 - left}}})?" if left < 7 else "")
            for left in range(8)
        ),
    ]
)

_LABEL = r"[A-Za-z0-9]{1,20}(?:-[A-Za-z0-9]{1,13}){0,3}"
_HOST = rf"{_LABEL}(?:\.{_LABEL}){{0,3}}"
_EMAIL = (
    r"[A-Za-z0-9_%+][A-Za-z0-9_%+-]{0,31}(?:\.[A-Za-z0-9_%+-]{1,12}){0,2}"
    r"@[A-Za-z0-9]{1,20}(?:-[A-Za-z0-9]{1,13}){0,2}(?:\.[A-Za-z0-9]{1,20}(?:-[A-Za-z0-9]{1,13}){0,2}){1,3}"
)


def _text(extra: str, most: int) -> str:
    return rf"(?:[A-Za-z0-9._~!$&'()*+,;=:@{extra}\-]|%[0-9A-Fa-f]{{2}}){{0,{most}}}"


_URI = (
    rf"(?:[a-z][a-z0-9+.\-]{{0,14}}:\/\/{_HOST}(?::\d{{1,5}})?(?:\/{_text('/', 250)})?"
    rf"(?:\?{_text('/?', 200)})?(?:#{_text('/?', 60)})?|(?:mailto|tel|urn):[A-Za-z0-9.+_@:\-]{{1,100}})"
)

_SPAN = r"\d{1,4}"
_CLOCK = rf"T(?:{_SPAN}H(?:{_SPAN}M(?:{_SPAN}S)?)?|{_SPAN}M(?:{_SPAN}S)?|{_SPAN}S)"
_DAYS = rf"(?:{_SPAN}Y(?:{_SPAN}M(?:{_SPAN}D)?)?|{_SPAN}M(?:{_SPAN}D)?|{_SPAN}D)"
_DURATION = rf"P(?:{_DAYS}(?:{_CLOCK})?|{_CLOCK}|{_SPAN}W)"

_POINTER = r"(?:\/(?:[^~\/]|~[01]){0,60}){0,10}"

FORMATS = {
    "date": _DATE,
    "time": _TIME,
    "date-time": rf"{_DATE}T{_TIME}",
    "duration": _DURATION,
    "email": _EMAIL,
    "idn-email": _EMAIL,
    "hostname": _HOST,
    "idn-hostname": _HOST,
    "ipv4": _IPV4,
    "ipv6": _IPV6,
    "uri": _URI,
    "uri-reference": _URI,
    "iri": _URI,
    "iri-reference": _URI,
    "uri-template": _URI,
    "uuid": r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "json-pointer": _POINTER,
    "relative-json-pointer": rf"(?:0|[1-9]\d{{0,4}})(?:#|{_POINTER})",
}

REFUSED = frozenset({"regex"})
"""Formats that validators check and no grammar can hold; formats that nobody checks are no constraint."""


@cache
def format_tree(name: str) -> Expr | None:
    """The strings of a format; None if it is no format that anybody checks."""
    return pattern_tree(f"^(?:{FORMATS[name]})$") if name in FORMATS else None
