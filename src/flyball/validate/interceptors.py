"""Interceptors: who sees what is sent and what comes back, and may let it pass, change it, or drop it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from flyball.core.context import RunContext
from flyball.core.errors import FlyballError, UserError
from flyball.core.feature import FunctionFeature
from flyball.core.messages import Message, Role, Text
from flyball.core.violation import Finding
from flyball.validate.filters.pii import PIIFilter, PIIKind


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


class RedactPII(MessageInterceptor):
    """Replaces what matches in what the user says, before it is sent.

    Args:
        pattern: a regular expression; without it, personal data and keys are found by their kinds.
        replacement: what is put there; without it `[redacted]` for a pattern, and `[email]` and the like for
            kinds.
        kinds: which of `PIIKind` are looked for, where there is no pattern; without it, all of them.

    Raises:
        UserError: no regular expression, a kind that is not known, or both at once.
    """

    def __init__(
        self,
        pattern: str | re.Pattern[str] | None = None,
        replacement: str | None = None,
        *,
        kinds: Iterable[PIIKind | str] | None = None,
    ) -> None:
        self.pattern: re.Pattern[str] | None = None
        self.filter: PIIFilter | None = None
        if replacement is not None and not isinstance(replacement, str):  # pyright: ignore[reportUnnecessaryIsInstance] - anybody's
            raise UserError(f"RedactPII replaces by a text, not by {replacement!r}")
        if pattern is None:
            self.filter = PIIFilter(kinds) if replacement is None else PIIFilter(kinds, replacement)
            self.replacement = self.filter.replacement
        elif kinds is not None:
            raise UserError("RedactPII takes a pattern or kinds=, not both: use two of them")
        else:
            try:
                self.pattern = re.compile(pattern)
                self.pattern.search("")  # one of bytes finds nothing in text
            except (re.error, TypeError) as error:
                raise UserError(f"RedactPII takes a regular expression, not {pattern!r}: {error}") from error
            if replacement is not None and not isinstance(replacement, str):  # pyright: ignore[reportUnnecessaryIsInstance] - anybody's
                raise UserError(f"RedactPII replaces by a text, not by {replacement!r}")
            self.replacement = "[redacted]" if replacement is None else replacement
        super().__init__(self._redact, "redact_pii")

    def _redact(self, ctx: RunContext[Any], messages: Sequence[Message]) -> InterceptResult | None:
        found: dict[str, None] = {}
        redacted = [self._redacted(message, found) for message in messages]
        if all(new is old for new, old in zip(redacted, messages, strict=True)):
            return None
        return InterceptResult.modify(redacted, f"{', '.join(found)} was replaced")

    def _redacted(self, message: Message, found: dict[str, None]) -> Message:
        if message.role is not Role.USER:
            return message
        parts = [
            replace(part, text=self._without(part.text, found)) if type(part) is Text else part
            for part in message.parts
        ]
        return message if parts == list(message.parts) else replace(message, parts=tuple(parts))

    def _without(self, text: str, found: dict[str, None]) -> str:
        if self.pattern is not None:
            found[self.pattern.pattern] = None
            return self.pattern.sub(self._replaced, text)
        assert self.filter is not None, "without a pattern there are kinds"
        screened = self.filter.screen(text)
        found.update(dict.fromkeys([violation.kind for violation in screened.violations]))
        return screened.text

    def _replaced(self, _: re.Match[str]) -> str:
        return self.replacement  # as it stands: a backslash in it means itself


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
