"""Tool calls as vendors take them back: ids and names that they allow, arguments that are an object."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Any

from flyball.core.errors import IncompleteToolCall
from flyball.core.messages import ToolCall

_LONGEST = 40
_PLAIN = re.compile(rf"[A-Za-z0-9_-]{{1,{_LONGEST}}}", re.ASCII)

_LONGEST_NAME = 64
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_NAMELESS = "unnamed"

INVALID = "invalid_json"
"""The key under which arguments that are no JSON object go back: the model sees what it wrote."""


def fitting_id(call_id: str) -> str:
    """A call's id as every vendor takes it: up to 40 letters, digits, `_` and `-`.

    Ids that fit stay as they are, and two that differ still do. A history may have begun elsewhere.
    """
    # Nearly all ids are names, which is found out faster than by the pattern.
    if (call_id.isidentifier() and call_id.isascii() and len(call_id) <= _LONGEST) or _PLAIN.fullmatch(
        call_id
    ):
        return call_id
    return "call_" + blake2b(call_id.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def fitting_name(name: str) -> str:
    """The name of a tool that a model called, as every vendor takes it back.

    A model may call what is no tool: with blanks or dots in its name, or without one. That is told to it; and
    what it said goes back with the history, where the vendors look at names.
    """
    if name.isidentifier() and name.isascii() and len(name) <= _LONGEST_NAME:
        return name
    return _NOT_IN_NAMES.sub("_", name)[:_LONGEST_NAME] or _NAMELESS


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """A call's arguments as an object, also where the model's text was none."""
    try:
        return call.arguments
    except IncompleteToolCall:
        return {INVALID: call.args_json}
