"""Reflecting: asking about an output that is valid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from flyball.core.context import RunContext
from flyball.core.encodable import as_text, clean_text
from flyball.orchestrate.awaiting import answer_of
from flyball.orchestrate.failing import as_rule
from flyball.orchestrate.settled import reflected_before
from flyball.orchestrate.state import State
from flyball.tool.errors import ModelRetry
from flyball.validate.reflection import Reflection


class Reflected(Struct, frozen=True):
    """What a reflection has against an output: its words, and what the model is told.

    `last` says that the output is taken all the same: it was sent back often enough, or the run is to stop.
    """

    feedback: str
    correction: str
    last: bool


async def reflection_on(
    value: Any, written: Any, state: State, reflections: Sequence[Reflection], context: RunContext[Any]
) -> Reflected | None:
    """Ask about an output; None if there is nothing against it.

    Raises:
        ModelRetry: the function wants the output treated as a wrong one.
        FlyballError: the function failed.
    """
    for reflection in reflections:
        try:
            feedback = clean_text(await answer_of(reflection.feedback, context, value))
        except ModelRetry:
            raise
        except Exception as error:
            raise as_rule(error, f"the reflection {reflection.name!r} failed") from error
        if feedback:
            last = reflected_before(state) >= reflection.max_reflections or bool(state.stopping)
            correction = "" if last else reflection.correction(as_text(written), feedback)
            return Reflected(feedback, correction, last)
    return None
