"""Guardrails: what an input, or a turn, must pass before the model sees it.

A guardrail refuses by raising, whatever it raises: the run then fails with a GuardrailError that names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flyball.core.context import RunContext
from flyball.core.errors import GuardrailError, UserError
from flyball.core.feature import FunctionFeature
from flyball.core.messages import Message


class InputGuardrail(FunctionFeature):
    """Looks at a run's prompt before its first turn: `check(ctx, prompt)`.

    It gives the prompt's text back, perhaps another one, or None to leave it as it is. Images and other parts
    of a prompt stay where they are; its text comes as one, and a changed one goes in its place.
    """


class TurnGuardrail(FunctionFeature):
    """Looks at what is about to be sent, before each model call: `check(ctx, messages)`."""


class ContentFilter(InputGuardrail):
    """Refuses a prompt in which one of these texts stands, in upper or lower case."""

    def __init__(self, *blocked: str, name: str = "content_filter") -> None:
        if not blocked or not all(isinstance(text, str) and text for text in blocked):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(f"ContentFilter takes texts that are not empty, not {blocked!r}")
        self.blocked = blocked
        self._folded = tuple([(text.casefold(), text) for text in blocked])
        super().__init__(self._look, name)

    def _look(self, ctx: RunContext[Any], prompt: str) -> None:
        folded = prompt.casefold()
        for text, as_given in self._folded:
            if text in folded:
                raise GuardrailError(f"the prompt holds {as_given!r}, which is not allowed", blocked=as_given)


class MaxPromptLength(InputGuardrail):
    """Refuses a prompt whose text has more characters."""

    def __init__(self, characters: int, name: str = "max_prompt_length") -> None:
        self.characters = _positive(characters, "MaxPromptLength", "characters")
        super().__init__(self._look, name)

    def _look(self, ctx: RunContext[Any], prompt: str) -> None:
        if len(prompt) > self.characters:
            raise GuardrailError(
                f"the prompt has {len(prompt):,} characters, and {self.characters:,} are allowed",
                length=len(prompt),
                allowed=self.characters,
            )


class MaxTurns(TurnGuardrail):
    """Refuses a model call after so many. As a limit it is `Limits(max_iterations=…)`."""

    def __init__(self, turns: int, name: str = "max_turns") -> None:
        self.turns = _positive(turns, "MaxTurns", "turns")
        super().__init__(self._look, name)

    def _look(self, ctx: RunContext[Any], messages: Sequence[Message]) -> None:
        if ctx.usage.requests >= self.turns:
            raise GuardrailError(
                f"the run has made {ctx.usage.requests} model calls, and {self.turns} are allowed",
                allowed=self.turns,
            )


def _positive(given: int, what: str, unit: str) -> int:
    if type(given) is not int or given < 1:
        raise UserError(f"{what} takes a number of {unit}, at least 1, not {given!r}")
    return given
