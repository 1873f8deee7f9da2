"""What code raises that is no failure: that the model should try again, or that a result comes later."""

from __future__ import annotations


class ModelRetry(Exception):  # noqa: N818 - the field's name for it; it is a request, not a failure
    """Raised by a tool or an output validator: the model should try again, and reads the message.

    Say in it what was wrong and what would be right. It is counted against the tool's (or the output's)
    retries.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class CallDeferred(Exception):  # noqa: N818 - gollem's name for it; it is a fact, not a failure
    """Raised by a tool: the call's result comes later, from outside.

    The message is for whoever reads the journal; the model does not read it. Whatever the tool began must be
    enough for somebody to answer the call: its loop's id and its own are `ctx.run_id` and `ctx.tool_call_id`.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self.message = message


class CallDenied(Exception):  # noqa: N818 - a decision, not a failure
    """Raised around a tool: a filter found at the last moment that it may not run. The model reads why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class CallContinues(Exception):  # noqa: N818 - a fact, not a failure
    """Raised by a tool that has begun a loop, where calls are run again once that is over: no result yet.

    Nothing is recorded of it: the call stays owed. `loop_id` is the loop that it waits for.
    """

    def __init__(self, loop_id: str) -> None:
        super().__init__(loop_id)
        self.loop_id = loop_id
