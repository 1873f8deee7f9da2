"""What guardrails, interceptors and conditions decided, in words."""

from __future__ import annotations

from flyball.core.events import Admitted, AnswerReviewed, TurnPrepared


def checked(event: Admitted | TurnPrepared | AnswerReviewed) -> list[str]:
    """What was decided before the first turn, before a model call, or about an answer."""
    if event.error is not None:
        return [f"refused: {event.error.code}: {event.error.message}"]
    if isinstance(event, Admitted):
        return _admitted(event)
    return _prepared(event) if isinstance(event, TurnPrepared) else _reviewed(event)


def _admitted(event: Admitted) -> list[str]:
    told = _passed(event.passed)
    if event.prompt is not None:
        told.append(f"a guardrail made the prompt: {event.prompt.text}")
    return told


def _prepared(event: TurnPrepared) -> list[str]:
    if event.skipped:
        return [f"the model was not called in turn {event.turn}: {event.skipped}"]
    told = [f"what is sent was changed by {note}" for note in event.notes]
    if event.tools is not None:
        told.append(f"on offer in turn {event.turn}: {', '.join(event.tools) or 'no tools'}")
    if event.definitions:
        names = ", ".join([definition.name for definition in event.definitions])
        told.append(f"told otherwise in turn {event.turn}: {names}")
    return told + _passed(event.passed)


def _reviewed(event: AnswerReviewed) -> list[str]:
    if event.dropped:
        return [f"the answer does not count: {event.dropped}"]
    told = [f"the answer was changed by {note}" for note in event.notes]
    if event.message is not None:
        told.append(f"the answer is now: {event.message.text}")
    return [*told, f"stopped: {event.stop}"] if event.stop else told


def _passed(names: tuple[str, ...]) -> list[str]:
    return [f"let through by {', '.join(names)}"] if names else []
