"""What guardrails, interceptors and conditions decided, in words."""

from __future__ import annotations

from collections.abc import Sequence

from flyball.core.compaction import ContextCompaction
from flyball.core.errors import SystemError  # noqa: A004 - pagantic's name for it
from flyball.core.events import Admitted, AnswerReviewed, TurnPrepared
from flyball.core.violation import Action, Finding
from flyball.orchestrate.projections.shortened import several


def checked(event: Admitted | TurnPrepared | AnswerReviewed) -> list[str]:
    """What was decided before the first turn, before a model call, or about an answer."""
    if isinstance(event, Admitted):
        return _admitted(event) if event.error is None else [_refused(event.error)]
    found = _found(event.violations)
    if event.error is not None:
        return [*found, _refused(event.error)]
    return found + (_prepared(event) if isinstance(event, TurnPrepared) else _reviewed(event))


def _refused(error: SystemError) -> str:
    return f"refused: {error.code}: {error.message}"


def _found(findings: Sequence[Finding]) -> list[str]:
    """What filters found, and did about it; each once, unless it was blocked again."""
    return [
        f"{one.filter} found {one.kind}{f' {one.count} times' if one.count > 1 else ''}"
        f" ({one.severity}): {one.action}"
        for one in findings
        if not one.again or one.action is Action.BLOCKED
    ]


def _admitted(event: Admitted) -> list[str]:
    told = _passed(event.passed)
    if event.prompt is not None:
        told.append(f"a guardrail made the prompt: {event.prompt.text}")
    return told + _degraded(event.degraded)


def _prepared(event: TurnPrepared) -> list[str]:
    if event.skipped:
        return [f"the model was not called in turn {event.turn}: {event.skipped}"]
    if event.compact is not None:
        plan = event.compact
        size = f"{several(plan.messages, 'message')}, about {plan.tokens} tokens"
        wanted = f"a summary was wanted before turn {event.turn}: there were {size}"
        return [wanted, *[f"what is summed up was changed by {note}" for note in event.notes]]
    told = [f"what is sent was changed by {note}" for note in event.notes] + _degraded(event.degraded)
    if event.tools is not None:
        told.append(f"on offer in turn {event.turn}: {', '.join(event.tools) or 'no tools'}")
    if event.definitions:
        names = ", ".join([definition.name for definition in event.definitions])
        told.append(f"told otherwise in turn {event.turn}: {names}")
    return told + compacted(event.compactions) + _passed(event.passed)


def compacted(compactions: Sequence[ContextCompaction]) -> list[str]:
    """By how much what was sent was made shorter."""
    return [
        f"{one.by or one.strategy} made {several(one.messages_before, 'message')}, "
        f"about {one.tokens_before} tokens, {one.messages_after} and {one.tokens_after}"
        for one in compactions
    ]


def _reviewed(event: AnswerReviewed) -> list[str]:
    if event.dropped:
        return [f"the answer does not count: {event.dropped}"]
    told = [f"the answer was changed by {note}" for note in event.notes]
    if event.message is not None:
        told.append(f"the answer is now: {event.message.text}")
    return [*told, f"stopped: {event.stop}"] if event.stop else told


def _degraded(reasons: tuple[str, ...]) -> list[str]:
    return [f"went on without knowledge: {reason}" for reason in reasons]


def _passed(names: tuple[str, ...]) -> list[str]:
    return [f"let through by {', '.join(names)}"] if names else []
