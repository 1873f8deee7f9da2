"""Ids of calls that a client is asked to run: they name the loop that waits, so that the answer finds it.

An id is `<loop>--<call>`, of letters, digits, `_` and `-` only, as all clients take them. A sign that is
none of these, and `-` itself, is written as `-` and six hex digits; so `--` stands in an id once, between
its parts.
"""

from __future__ import annotations

import re

from msgspec import Struct

_OTHER = re.compile(r"[^A-Za-z0-9_]")
_WRITTEN = re.compile(r"-([0-9a-f]{6})")
_PART = re.compile(r"(?:[A-Za-z0-9_]|-[0-9a-f]{6})+")
_BETWEEN = "--"


class CallName(Struct, frozen=True):
    """A call, and the loop that it is one of."""

    loop_id: str
    call_id: str


def call_name(loop_id: str, call_id: str) -> str:
    """The id under which a client knows a call of a loop."""
    return f"{_escaped(loop_id)}{_BETWEEN}{_escaped(call_id)}"


def read_call_name(name: str) -> CallName | None:
    """The call that an id names; None of an id that we did not give."""
    loop, between, call = name.partition(_BETWEEN)
    if not between or not (_PART.fullmatch(loop) and _PART.fullmatch(call)):
        return None
    try:
        found = CallName(_plain(loop), _plain(call))
        f"{found.loop_id}{found.call_id}".encode()
    except ValueError:  # a number that is no sign's, or half of one
        return None
    return found if call_name(found.loop_id, found.call_id) == name else None


def _escaped(text: str) -> str:
    return _OTHER.sub(lambda found: f"-{ord(found[0]):06x}", text)


def _plain(text: str) -> str:
    return _WRITTEN.sub(lambda found: chr(int(found[1], 16)), text)
