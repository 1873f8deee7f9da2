"""Review: after each answer, before anything follows from it. Interceptors first, then the conditions."""

from __future__ import annotations

from typing import Any

from flyball.core.context import RunContext
from flyball.core.encodable import clean_text
from flyball.core.errors import FlyballError, InvalidMessage
from flyball.core.events import AnswerReviewed
from flyball.core.messages import Message, Role
from flyball.core.violation import Finding
from flyball.orchestrate.awaiting import answer_of
from flyball.orchestrate.bindings import Bindings
from flyball.orchestrate.children import Home
from flyball.orchestrate.facts import context_of
from flyball.orchestrate.failing import as_rule, heed_takeover
from flyball.orchestrate.intercepting import decision, told
from flyball.orchestrate.soundness import sound
from flyball.orchestrate.state import State
from flyball.validate.interceptors import MessageAction, ResponseInterceptor


async def review(
    state: State, bindings: Bindings, deps: Any, now: Any, home: Home | None = None
) -> AnswerReviewed:
    """Show the answer to whoever wants to see it."""
    context = context_of(state, bindings, deps, now(), home)
    answer = message = state.reviewing
    assert message is not None, "a review is of an answer"
    notes: list[str] = []
    found: list[Finding] = []
    try:
        for interceptor in bindings.stages.response_interceptors:
            decided = await decision(interceptor, context, message)
            found += decided.found
            if decided.action is MessageAction.DROP:
                reason = decided.reason or "no reason was given"
                why = f"the interceptor {interceptor.name!r} dropped it: {reason}"
                return AnswerReviewed(now(), state.turn, dropped=why, violations=tuple(found))
            if decided.action is MessageAction.MODIFY:
                message = _sound(interceptor, decided.messages, state)
            if decided.action is MessageAction.MODIFY or decided.reason:
                notes.append(told(interceptor, decided))
        stop = await _stop(bindings, context, message)
    except FlyballError as error:
        heed_takeover(error)
        return AnswerReviewed(now(), state.turn, error=error.record(), violations=tuple(found))
    changed = None if message is answer else message
    return AnswerReviewed(now(), state.turn, changed, stop=stop, notes=tuple(notes), violations=tuple(found))


async def _stop(bindings: Bindings, context: RunContext[Any], message: Message) -> str:
    for condition in bindings.stages.conditions:
        try:
            reason = await answer_of(condition.reason, context, message)
        except Exception as error:
            raise as_rule(error, f"the run condition {condition.name!r} failed") from error
        if reason is not None:
            return clean_text(reason)
    return ""


def _sound(interceptor: ResponseInterceptor, given: tuple[Message, ...], state: State) -> Message:
    """An answer that an interceptor gave, if it can be one.

    Raises:
        InvalidMessage: it cannot.
    """
    if len(given) != 1 or given[0].role is not Role.ASSISTANT:
        raise InvalidMessage(
            f"the response interceptor {interceptor.name!r} must give one message of the assistant's",
            interceptor=interceptor.name,
        )
    message = sound(given[0])[0]
    if used := [call.id for call in message.tool_calls if call.id in state.ids]:
        raise InvalidMessage(
            f"the response interceptor {interceptor.name!r} gave a call the id {used[0]!r}, which an earlier "
            "one has",
            interceptor=interceptor.name,
        )
    return message
