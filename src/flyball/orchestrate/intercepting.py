"""Asking an interceptor, and what it decided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from flyball.core.context import RunContext
from flyball.core.encodable import clean_text
from flyball.core.errors import UserError
from flyball.core.messages import Message
from flyball.core.violation import Finding
from flyball.orchestrate.awaiting import answer_of
from flyball.orchestrate.failing import as_rule

if TYPE_CHECKING:
    from flyball.validate.interceptors import InterceptResult, MessageInterceptor, ResponseInterceptor


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
    from flyball.validate.interceptors import InterceptResult

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
