"""Repairs: what is done about an answer that cannot be read as its output, before the model is asked again.

What is nearly JSON, and members of enumerations in another spelling, are put right in any case. Then come, in
this order, each once: the functions given as `OutputRepair`, and a model, if there is a `ModelRepair`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from inspect import isawaitable
from typing import Any, Protocol, runtime_checkable

from flyball.core.context import RunContext
from flyball.core.errors import UserError
from flyball.core.feature import Feature, FunctionFeature
from flyball.core.settings import ModelSettings
from flyball.inference.engine import Engine

INSTRUCTIONS = (
    "You put right what another model has written. You are given text that should be JSON of a certain form, "
    "what is wrong with it, and the JSON Schema of the form. Answer with the same content in that form: one "
    "JSON value, and nothing else. Make nothing up: what is not in the text stays out."
)


@runtime_checkable
class RepairStrategy(Protocol):
    """Puts right the text of an output that was refused. `JSONRepairStrategy` is one."""

    def repair(self, output: str, errors: Sequence[str]) -> str | Awaitable[str]:
        """The text put right; `errors` say what is wrong with it. It may be async; it raises if it cannot."""
        ...


class OutputRepair(FunctionFeature):
    """Puts right an answer that cannot be read: `check(ctx, raw, error)`, which may be async.

    It gives the output, or text that is read as one; None, a ModelRetry or a ValueError says that it cannot.
    `raw` is the answer as it was given, and `str(error)` says what is wrong with it. What it gives is
    recorded, and must be encodable.
    """

    @classmethod
    def by(cls, strategy: RepairStrategy, name: str | None = None) -> OutputRepair:
        """The feature that has a strategy put answers right.

        Raises:
            UserError: it has no `repair(output, errors)`.
        """
        if not isinstance(strategy, RepairStrategy):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(f"OutputRepair.by takes what has repair(output, errors), not {strategy!r}")

        async def repaired(_: RunContext[Any], raw: str, error: Exception) -> str:
            made = strategy.repair(raw, (str(error),))
            return await made if isawaitable(made) else made

        return cls(repaired, name or type(strategy).__name__)


class ModelRepair(Feature):
    """Has a model put right an answer that cannot be read: one call a turn, within the run's limits.

    Args:
        model: the model that does it; without it, the agent's own.
        instructions: what it is told; it is then given the answer, what is wrong with it, and the schema.
        settings: its temperature, tokens and the like.
    """

    name = "model_repair"

    def __init__(
        self,
        model: str | Engine | None = None,
        *,
        instructions: str = INSTRUCTIONS,
        settings: ModelSettings | None = None,
    ) -> None:
        if not isinstance(instructions, str) or not instructions:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(f"ModelRepair's instructions are text that is not empty, not {instructions!r}")
        self.model = model
        self.instructions = instructions
        self.settings = settings or ModelSettings()

    def __repr__(self) -> str:
        return f"ModelRepair({self.model!r})"
