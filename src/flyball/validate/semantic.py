"""Semantic validation: whether an output means what was asked for, as far as somebody can tell.

Who tells is behind a protocol of one method. `flyball.ModelSemanticValidator` is one that asks a model; it
stands in `orchestrate`, because what it asks is a loop of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable
from inspect import isawaitable
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from flyball.core.context import RunContext
from flyball.core.errors import SemanticFailed, UserError


class Verdict(Struct, frozen=True):
    """Whether an output is what was meant, and why (or why not)."""

    valid: bool
    reason: str = ""


@runtime_checkable
class SemanticValidator(Protocol):
    """Says whether an output serves an intent. It may be async; that it cannot say, it raises."""

    def validate(self, output: Any, intent: str) -> Verdict | Awaitable[Verdict]:
        """The verdict on an output; `intent` is what was asked for, in words."""
        ...


@runtime_checkable
class RunValidator(Protocol):
    """A semantic validator whose work is part of the run that it judges: what it asks a model, say."""

    def validate_in(self, ctx: RunContext[Any], output: Any, intent: str) -> Awaitable[Verdict]:
        """The verdict on a run's output."""
        ...


class SemanticCheck:
    """A semantic validator in `Agent(validators=[...])`.

    In an agent, the model is told the reason and answers again, as often as the agent's `retries` allow; then
    the run fails with the SemanticFailed.

    Args:
        validator: who judges.
        intent: what the output is for; without it, the run's prompt.

    Raises:
        UserError: the validator has no `validate(output, intent)`, or the intent is no text.
    """

    __slots__ = ("intent", "validator")

    def __init__(self, validator: SemanticValidator, intent: str | None = None) -> None:
        if not isinstance(validator, SemanticValidator):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(f"SemanticCheck takes what has validate(output, intent), not {validator!r}")
        if intent is not None and not isinstance(intent, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(f"an intent is text, not {intent!r}")
        self.validator = validator
        self.intent = intent

    async def __call__(self, ctx: RunContext[Any], output: Any) -> Any:
        """The output, as an agent's validator gives it.

        Raises:
            SemanticFailed: it is not what was meant; details `reason` and `intent`.
        """
        intent = ctx.prompt if self.intent is None else self.intent
        verdict = await verdict_of(self.validator, output, intent, ctx)
        if not verdict.valid:
            raise semantic_failed(verdict, intent)
        return output

    def __repr__(self) -> str:
        return f"<SemanticCheck {self.validator!r}>"


async def verdict_of(
    validator: SemanticValidator, output: Any, intent: str, ctx: RunContext[Any] | None = None
) -> Verdict:
    """What a validator says of an output; of a run's (`ctx`), if it can, as part of that run.

    Raises:
        UserError: it gave no verdict.
    """
    if ctx is not None and isinstance(validator, RunValidator):
        verdict = validator.validate_in(ctx, output, intent)
    else:
        verdict = validator.validate(output, intent)
    if isawaitable(verdict):
        verdict = await verdict
    if not isinstance(verdict, Verdict):  # pyright: ignore[reportUnnecessaryIsInstance] - anybody's
        raise UserError(f"a semantic validator gives a Verdict(valid, reason), not {verdict!r:.100}")
    return verdict


def semantic_failed(verdict: Verdict, intent: str) -> SemanticFailed:
    """The failure of an output that is not what was meant."""
    reason = verdict.reason or "no reason was given"
    return SemanticFailed(
        f"the output is not what was asked for: {reason}", reason=reason, intent=intent[:2_000]
    )
