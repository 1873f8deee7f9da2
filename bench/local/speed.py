"""Tokens per second of both sides of a kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from msgspec import Struct

from bench.local.kinds import Kind
from flyball.inference.engine import Engine
from flyball.inference.request import Request

TARGET = 0.90
"""What a grammar must leave of the speed."""


class Round(Struct, frozen=True):
    """One generation: how fast, and how long."""

    speed: float
    tokens: int


class Speed(Struct, frozen=True):
    """A kind's rounds, free and constrained in turns."""

    model: str
    kind: str
    what: str
    free: tuple[Round, ...]
    constrained: tuple[Round, ...]

    @property
    def best_free(self) -> float:
        """Tokens per second without a grammar, in the fastest round."""
        return max([each.speed for each in self.free])

    @property
    def best_constrained(self) -> float:
        """Tokens per second under the grammar, in the fastest round."""
        return max([each.speed for each in self.constrained])

    @property
    def kept(self) -> float:
        """How much of the speed the grammar leaves."""
        return self.best_constrained / self.best_free

    @property
    def kept_by_rounds(self) -> float:
        """The same, from each round's pair alone: their median. Shown, so that a lucky round is seen."""
        pairs = zip(self.free, self.constrained, strict=True)
        return median([constrained.speed / free.speed for free, constrained in pairs])

    @property
    def met(self) -> bool:
        """Whether that is enough."""
        return self.kept >= TARGET


async def measure(
    model: str, engine: Engine, kinds: Sequence[Kind], rounds: int, advance: Callable[[str], None]
) -> list[Speed]:
    """Measure every kind, after one generation of each side that only warms up."""
    speeds: list[Speed] = []
    for kind in kinds:
        sides = (kind.free, kind.constrained)
        taken: tuple[list[Round], list[Round]] = ([], [])
        for number in range(rounds + 1):
            advance(f"{model} · {kind.name}")
            # Who comes first changes: the second finds the prompt already read.
            for side in (0, 1) if number % 2 else (1, 0):
                once = await _generate(engine, sides[side])
                if number:
                    taken[side].append(once)
        speeds.append(Speed(model, kind.name, kind.what, tuple(taken[0]), tuple(taken[1])))
    return speeds


async def _generate(engine: Engine, request: Request) -> Round:
    result = await engine.infer(request)
    usage = result.message.usage
    if usage is None or not usage.tokens_per_second:
        raise RuntimeError("the engine does not tell how fast it was")
    return Round(usage.tokens_per_second, usage.output_tokens)
