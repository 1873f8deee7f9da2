"""Prepare: before each model call. Which tools are on offer, what is sent, and whether it may be.

The order is gollem's, but that a summary which is needed comes first, because the turn is prepared again
then. A summary's request is a request: the interceptors are shown what is remembered, and what they leave is
summed up. Else: tools, the history processors, what is known of the turn, then the interceptors, each on
what the one before left, then the guardrails, who see what would really be sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from flyball.core.apart import messages_apart
from flyball.core.compaction import ContextCompaction
from flyball.core.edits import edits_between
from flyball.core.errors import FlyballError, RequestDropped, UserError
from flyball.core.events import TurnPrepared
from flyball.core.messages import Message
from flyball.core.violation import Finding
from flyball.orchestrate.admitting import passed_before, refusal
from flyball.orchestrate.awaiting import answer_of
from flyball.orchestrate.bindings import Bindings
from flyball.orchestrate.children import Home
from flyball.orchestrate.compacted import preparations, remembered
from flyball.orchestrate.facts import context_of
from flyball.orchestrate.failing import heed_takeover
from flyball.orchestrate.intercepting import Dropped, intercepted
from flyball.orchestrate.sending import base
from flyball.orchestrate.state import State
from flyball.orchestrate.tooling import offered


async def prepare(
    state: State, bindings: Bindings, deps: Any, now: Any, home: Home | None = None
) -> TurnPrepared:
    """Work out what a turn's request differs in from what the spec and the history give."""
    context, stages = context_of(state, bindings, deps, now(), home), bindings.stages
    found: list[Finding] = []
    try:
        compactions: list[ContextCompaction] = []
        for compactor in stages.auto_contexts:
            from flyball.orchestrate.compacting import summary_due, summary_made

            plan = summary_due(state, compactor)
            if plan is not None:
                shown = tuple(remembered(state))
                left = await intercepted(stages.message_interceptors, context, shown, found)
                if isinstance(left, Dropped):
                    return _dropped(state, left, now(), tuple(found))
                edits, noted = edits_between(shown, left.messages), tuple(left.notes)
                seen = tuple(found)
                return TurnPrepared(
                    now(), state.turn, edits=edits, notes=noted, compact=plan, violations=seen
                )
            made = summary_made(state, compactor)
            compactions += [] if made is None else [made]
        tools, definitions = await offered(state.spec, bindings, context)
        messages: Sequence[Message] = tuple(remembered(state))
        notes, degraded = list[str](), list[str]()
        relevance: float | None = None
        if stages.history_processors:
            from flyball.orchestrate.processing import processed

            messages, notes, shorter = await processed(stages.history_processors, context, messages)
            compactions += shorter
        if bases := stages.knowledge_bases:
            from flyball.orchestrate.knowing import known_of_turn

            messages, knew, degraded, relevance = await known_of_turn(bases, state, context, messages)
            notes += knew
        if stages.message_interceptors:
            left = await intercepted(stages.message_interceptors, context, messages, found)
            if preparations(state):
                found = [replace(one, again=True) for one in found]  # they were told before the summary
            if isinstance(left, Dropped):
                return _dropped(state, left, now(), tuple(found))
            messages = left.messages
            notes += left.notes
        for guardrail in stages.turn_guardrails:
            try:
                given = await answer_of(guardrail.check, context, messages_apart(messages))
            except Exception as error:
                raise refusal(guardrail, error) from error
            if given is not None:
                raise UserError(
                    f"the guardrail {guardrail.name!r} gave {given!r:.100}: "
                    "it raises to refuse, and gives nothing back"
                )
    except FlyballError as error:
        heed_takeover(error)
        let_through = passed_before(stages.turn_guardrails, error)
        refused = error.record()
        return TurnPrepared(now(), state.turn, error=refused, passed=let_through, violations=tuple(found))
    passed = tuple([guardrail.name for guardrail in stages.turn_guardrails])
    edits = edits_between(base(state), messages)
    told_of = (passed, tuple(notes), tuple(compactions), tuple(degraded))
    return TurnPrepared(
        now(),
        state.turn,
        tools,
        None,
        definitions,
        edits,
        "",
        *told_of,
        relevance=relevance,
        violations=tuple(found),
    )


def _dropped(state: State, dropped: Dropped, at: float, found: tuple[Finding, ...]) -> TurnPrepared:
    decided, name = dropped.decided, dropped.interceptor.name
    reason = decided.reason or "no reason was given"
    text = f"the interceptor {name!r} dropped the request: {reason}"
    if decided.skip:
        return TurnPrepared(at, state.turn, skipped=text, violations=found)
    error = decided.error or RequestDropped(text, interceptor=name, reason=reason)
    return TurnPrepared(at, state.turn, error=error.record(), violations=found)
