"""What an engine made of each request, asked of the engine itself, found by the run's model string."""

from __future__ import annotations

from msgspec.structs import replace

from flyball.core.errors import FlyballError
from flyball.inference.registry import resolve_engine
from flyball.inference.rendered import Renders
from flyball.orchestrate.projections.explanation import Explanation, Turn


async def with_prompts(told: Explanation) -> Explanation:
    """The explanation with what the model was given, where its engine puts requests into words of its own.

    Nothing is stored for it, loaded or asked: it follows from the recorded request and answer. Where the
    engine cannot be had, the explanation's `note` says why; its turns have flyball's own messages.
    """
    if not told.turns:
        return told
    try:
        engine = resolve_engine(told.model)
    except FlyballError as error:
        why = f"{error.code}: {error.message}"
        return replace(
            told, note=f"what the engine made of these messages cannot be told on this machine: {why}"
        )
    try:
        if not isinstance(engine, Renders):
            return told
        return replace(told, turns=tuple([_with_prompts(turn, engine) for turn in told.turns]))
    finally:
        close = getattr(engine, "aclose", None)
        if close is not None:
            await close()


def _with_prompts(turn: Turn, engine: Renders) -> Turn:
    if not turn.called:
        return turn
    try:
        return replace(turn, prompts=engine.rendered(turn.sent, turn.answer))
    except FlyballError as error:
        note = f"it could not be put to the model: {error.code}: {error.message}"
        return replace(turn, note=note)
