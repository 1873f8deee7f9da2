"""Asking interceptors, and what they decided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from flyball.core.apart import messages_apart
from flyball.core.context import RunContext
from flyball.core.encodable import clean_text
from flyball.core.errors import InvalidMessage, UserError
from flyball.core.history import check_history
from flyball.core.messages import Message
from flyball.core.violation import Finding
from flyball.orchestrate.awaiting import answer_of
from flyball.orchestrate.failing import as_rule
from flyball.orchestrate.recordable import recordable
from flyball.validate.interceptors import InterceptResult, MessageAction

if TYPE_CHECKING:
    from flyball.validate.interceptors import MessageInterceptor, ResponseInterceptor


class Passed(Struct, frozen=True):
    """What interceptors left of a request, and who changed what."""

    messages: Sequence[Message]
    notes: list[str]


class Dropped(Struct, frozen=True):
    """That an interceptor let a request not pass."""

    interceptor: MessageInterceptor
    decided: InterceptResult


async def intercepted(
    interceptors: Sequence[MessageInterceptor],
    context: RunContext[Any],
    messages: Sequence[Message],
    found: list[Finding],
) -> Passed | Dropped:
    """Show a request to the interceptors, each what the one before left. All that they find joins `found`.

    Raises:
        InvalidMessage: one gave what no provider takes.
        FlyballError: one failed.
    """
    notes: list[str] = []
    for interceptor in interceptors:
        decided = await decision(interceptor, context, messages_apart(messages))
        found += decided.found
        if decided.action is MessageAction.DROP:
            return Dropped(interceptor, decided)
        changed = decided.action is MessageAction.MODIFY
        if changed:
            messages = _sound(interceptor, decided.messages)
        if changed or decided.reason:
            notes.append(told(interceptor, decided))
    return Passed(messages, notes)


def _sound(interceptor: MessageInterceptor, messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Messages that an interceptor gave, if a provider takes them.

    Raises:
        InvalidMessage: none would.
    """
    try:
        check_history(messages, complete=True)
        return tuple([recordable(message, "a message") for message in messages])
    except (InvalidMessage, UserError) as error:
        raise InvalidMessage(
            f"the interceptor {interceptor.name!r} gave messages that cannot be sent: {error.message}",
            interceptor=interceptor.name,
        ) from error


async def decision(
    interceptor: MessageInterceptor | ResponseInterceptor,
    context: RunContext[Any],
    seen: Sequence[Message] | Message,
) -> InterceptResult:
    """What an interceptor decides about what it is shown.

    Raises:
        UserError: it gave something else than a decision.
        FlyballError: it failed.
    """
    try:
        decided = await answer_of(interceptor.check, context, seen)
    except Exception as error:
        raise as_rule(error, f"the interceptor {interceptor.name!r} failed") from error
    if decided is None:
        return InterceptResult()
    if not isinstance(decided, InterceptResult):
        raise UserError(
            f"the interceptor {interceptor.name!r} gave a {type(decided).__name__}: it must give None, or "
            "InterceptResult.allow(), .drop(reason) or .modify(messages)"
        )
    if not isinstance(decided.reason, str) or not all(type(one) is Message for one in decided.messages):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UserError(
            f"the interceptor {interceptor.name!r} gave {decided!r:.200}: a reason is text, and what passes "
            "instead are messages"
        )
    if not all(type(one) is Finding for one in decided.found):
        raise UserError(
            f"the interceptor {interceptor.name!r} found {decided.found!r:.200}: it gives Findings"
        )
    found = tuple(
        [replace(one, filter=clean_text(one.filter), kind=clean_text(one.kind)) for one in decided.found]
    )
    return replace(decided, reason=clean_text(decided.reason), found=found)


def told(interceptor: MessageInterceptor | ResponseInterceptor, decided: InterceptResult) -> str:
    """Who changed something, and why: the note that is recorded."""
    return f"{interceptor.name}: {decided.reason}" if decided.reason else interceptor.name
