"""Tool calls as vendors take them back: ids that they allow, arguments that are an object."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Any

from flyball.core.errors import IncompleteToolCall
from flyball.core.messages import ToolCall

_LONGEST = 40
_PLAIN = re.compile(rf"[A-Za-z0-9_-]{{1,{_LONGEST}}}", re.ASCII)

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


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """A call's arguments as an object, also where the model's text was none."""
    try:
        return call.arguments
    except IncompleteToolCall:
        return {INVALID: call.args_json}
