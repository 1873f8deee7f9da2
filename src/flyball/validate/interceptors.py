"""Interceptors: who sees what is sent and what comes back, and may let it pass, change it, or drop it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct

from flyball.core.context import RunContext
from flyball.core.errors import FlyballError, UserError
from flyball.core.feature import FunctionFeature
from flyball.core.messages import Message
from flyball.core.violation import Finding


class MessageAction(StrEnum):
    """What an interceptor decided."""

    ALLOW = "allow"
    DROP = "drop"
    MODIFY = "modify"


class InterceptResult(Struct, frozen=True):
    """An interceptor's decision. Most use `allow()`, `drop(reason)` and `modify(messages)`.

    A request that is dropped ends the run with an error, unless `skip` is set: then the model is not called
    in this turn, which still counts, and the next one begins. A dropped response is as if it had not been
    given: the model is asked again. `found` is recorded as violations; `error` is what a dropped request ends
    the run with, in the place of a RequestDropped that has the reason.
    """

    action: MessageAction = MessageAction.ALLOW
    messages: tuple[Message, ...] = ()
    reason: str = ""
    skip: bool = False
    found: tuple[Finding, ...] = ()
    error: FlyballError | None = None

    @classmethod
    def allow(cls, reason: str = "") -> InterceptResult:
        """It passes as it is; a reason is noted in the journal."""
        return cls(reason=reason)

    @classmethod
    def drop(cls, reason: str = "", *, skip: bool = False) -> InterceptResult:
        """It does not pass."""
        return cls(MessageAction.DROP, (), reason, skip)

    @classmethod
    def modify(cls, messages: Sequence[Message] | Message, reason: str = "") -> InterceptResult:
        """This passes instead."""
        given = (messages,) if isinstance(messages, Message) else tuple(messages)
        return cls(MessageAction.MODIFY, given, reason)


class MessageInterceptor(FunctionFeature):
    """Sees the messages before each model call: `check(ctx, messages)`.

    It gives an InterceptResult, or None to let them pass. What it changes is sent, and recorded as a change;
    the history stays as it is, so that the next turn begins from what was really said.
    """


class ResponseInterceptor(FunctionFeature):
    """Sees each answer of the model before anything follows from it: `check(ctx, message)`.

    It gives an InterceptResult, or None to let it pass. What it changes takes the answer's place in the
    history; the answer as it came stays in the journal.
    """


class AuditLog(MessageInterceptor, ResponseInterceptor):
    """Shows everything that is sent and that comes back to a function, and lets it pass.

    The function gets the direction ("request" or "response") and the messages; it may be async.
    """

    def __init__(self, log: Callable[[str, Sequence[Message]], Any]) -> None:
        if not callable(log):
            raise UserError(f"AuditLog takes a function (direction, messages), not {log!r}")
        self.log = log
        super().__init__(self._note, "audit_log")

    async def _note(self, ctx: RunContext[Any], seen: Sequence[Message] | Message) -> None:
        if isinstance(seen, Message):
            noted = self.log("response", (seen,))
        else:
            noted = self.log("request", tuple(seen))
        if hasattr(noted, "__await__"):
            await noted
