"""Prepare: before each model call. Which tools are on offer, what is sent, and whether it may be.

The order is gollem's: tools, then the interceptors, each on what the one before left, then the guardrails,
who see what would really be sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flyball.core.context import RunContext
from flyball.core.edits import edits_between
from flyball.core.errors import FlyballError, InvalidMessage, RequestDropped, UserError
from flyball.core.events import TurnPrepared
from flyball.core.history import check_history
from flyball.core.messages import Message
from flyball.orchestrate.admitting import refusal
from flyball.orchestrate.awaiting import awaited
from flyball.orchestrate.bindings import Bindings
from flyball.orchestrate.children import Home
from flyball.orchestrate.facts import run_facts
from flyball.orchestrate.intercepting import decision, told
from flyball.orchestrate.recordable import recordable
from flyball.orchestrate.sending import base
from flyball.orchestrate.state import State
from flyball.orchestrate.tooling import offered
from flyball.validate.interceptors import InterceptResult, MessageAction, MessageInterceptor


async def prepare(
    state: State, bindings: Bindings, deps: Any, now: Any, home: Home | None = None
) -> TurnPrepared:
    """Work out what a turn's request differs in from what the spec and the history give."""
    context = RunContext(deps, run_facts(state, now()), home)
    try:
        tools, definitions = await offered(state, bindings, context)
        messages: Sequence[Message] = tuple(state.history)
        notes: list[str] = []
        for interceptor in bindings.stages.message_interceptors:
            decided = await decision(interceptor, context, messages)
            if decided.action is MessageAction.DROP:
                return _dropped(state, interceptor, decided, now())
            if decided.action is MessageAction.MODIFY:
                messages = _sound(interceptor, decided.messages)
                notes.append(told(interceptor, decided))
        for guardrail in bindings.stages.turn_guardrails:
            try:
                await awaited(guardrail.check(context, messages))
            except Exception as error:
                raise refusal(guardrail, error) from error
    except FlyballError as error:
        return TurnPrepared(now(), state.turn, error=error.record())
    passed = tuple([guardrail.name for guardrail in bindings.stages.turn_guardrails])
    edits = edits_between(base(state), messages)
    return TurnPrepared(now(), state.turn, tools, None, definitions, edits, "", passed, tuple(notes))


def _dropped(
    state: State, interceptor: MessageInterceptor, decided: InterceptResult, at: float
) -> TurnPrepared:
    reason = decided.reason or "no reason was given"
    text = f"the interceptor {interceptor.name!r} dropped the request: {reason}"
    if decided.skip:
        return TurnPrepared(at, state.turn, skipped=text)
    return TurnPrepared(
        at, state.turn, error=RequestDropped(text, interceptor=interceptor.name, reason=reason).record()
    )


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
