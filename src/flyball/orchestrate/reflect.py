"""A run with a reflection, and what came of it: gollem's RunWithReflection."""

from __future__ import annotations

from typing import Generic

from msgspec import Struct
from typing_extensions import Unpack

from flyball.core.context import DepsT
from flyball.core.messages import Content
from flyball.core.usage import RunUsage
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.options import RunOptions
from flyball.orchestrate.result import OutputT, RunResult
from flyball.orchestrate.state import Reflections
from flyball.validate.reflection import CORRECTION, Reflection, ReflectionCheck


class ReflectResult(Struct, Generic[OutputT], frozen=True, eq=False):
    """What came of a run with a reflection.

    `iterations` is how many valid outputs there were, with the last one, which is `output`. If it was not
    `accepted`, `objection` is what was still said against it. `usage` is that of all turns together.
    """

    output: OutputT
    iterations: int
    usage: RunUsage
    accepted: bool
    objection: str
    result: RunResult[OutputT]

    @classmethod
    def of(cls, result: RunResult[OutputT]) -> ReflectResult[OutputT]:
        """What came of a run of an agent that has a reflection, wherever it was driven."""
        state = result.state
        made = state.reflections or Reflections()
        return ReflectResult(
            result.output, made.times + 1, result.usage, not made.objection, made.objection, result
        )


async def reflect(
    agent: Agent[DepsT, OutputT],
    prompt: Content | None,
    check: ReflectionCheck,
    *,
    max_reflections: int = 3,
    correction: str = CORRECTION,
    **options: Unpack[RunOptions[DepsT]],
) -> ReflectResult[OutputT]:
    """Run an agent, and have it correct its output until nothing is said against it, or often enough.

    Args:
        agent: the agent; it must have no reflection of its own.
        prompt: what it is asked.
        check: looks at each valid output: what to correct, or None (or an empty text).
        max_reflections: how often an output is sent back.
        correction: what the model is told then; see `Reflection`.
        options: those of `agent.run`.

    Raises:
        FlyballError: the run failed; also where a limit was reached while it was correcting.
        UserError: the agent has a reflection already.
    """
    features = (*options.get("features", ()), Reflection(check, max_reflections, correction))
    options["features"] = features
    return ReflectResult[OutputT].of(await agent.run(prompt, **options))
