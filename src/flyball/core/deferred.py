"""Deferred calls as data: what somebody outside is asked for, and what came of it. The keys are gollem's."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class DeferredToolRequest(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """A tool call that waits for its result from outside, with the arguments that the tool was run with.

    `loop_id` is the loop that has asked for it, where that is one under the loop which was run.
    """

    tool_name: str
    tool_call_id: str
    args_json: str
    loop_id: str = ""


class DeferredToolResult(Struct, frozen=True, omit_defaults=True):
    """The result of a call that was deferred. `content` is text, or JSON.

    With `is_error` the content says what went wrong, and the model is asked to call again: it counts against
    the tool's retries, like a ModelRetry.
    """

    tool_name: str
    tool_call_id: str
    content: Any
    is_error: bool = False
