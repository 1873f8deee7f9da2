"""Agents one after the other: a chain passes outputs on, a handoff the conversation. Both are pipelines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar, cast, overload

from flyball.core.errors import UserError
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.flow.filters import HistoryFilter
from flyball.orchestrate.flow.steps import AgentStep, Pipeline, Prompt

A = TypeVar("A")
B = TypeVar("B")
OutT_co = TypeVar("OutT_co", covariant=True)


@overload
def chain(
    first: Agent[Any, A],
    second: Agent[Any, B],
    /,
    *,
    transform: Prompt[A] | None = None,
    history: HistoryFilter | bool = False,
) -> Pipeline[Any, B]: ...
@overload
def chain(
    first: Agent[Any, Any],
    second: Agent[Any, Any],
    third: Agent[Any, B],
    /,
    *,
    history: HistoryFilter | bool = False,
) -> Pipeline[Any, B]: ...
@overload
def chain(*agents: Agent[Any, Any], history: HistoryFilter | bool = False) -> Pipeline[Any, Any]: ...
def chain(
    *agents: Agent[Any, Any], transform: Any = None, history: HistoryFilter | bool = False
) -> Pipeline[Any, Any]:
    """Agents one after the other, each asked with what the one before gave.

    Args:
        agents: the agents.
        transform: of two agents, what the second is asked, made of what the first gave.
        history: whether each goes on with the conversation of the one before, or a filter of that.

    Raises:
        UserError: there are no agents, or a transform and not two of them.
    """
    if not agents or (transform is not None and len(agents) != 2):
        raise UserError(
            "chain takes agents, and transform= where there are two: put more of them together by "
            "AgentStep(agent, prompt=...) and .then(...)"
        )
    first, *others = agents
    steps = [AgentStep(agent, transform, history=history) for agent in others]
    return Pipeline(AgentStep(first), *steps, name="chain")


@dataclass(frozen=True, init=False, eq=False)
class Handoff(Pipeline[Any, OutT_co]):
    """Agents that hand a conversation on: each goes on with what was said before, as a filter leaves it.

    Handoff(triage).add_step(expert, "Solve it.", filter=keep_last_n(4)).add_step(editor, "Shorten it.")
    """

    def __init__(self: Handoff[B], agent: Agent[Any, B], *, name: str = "handoff") -> None:
        super().__init__(AgentStep(agent), name=name)

    def add_step(
        self,
        agent: Agent[Any, B],
        prompt: str | Prompt[Any],
        *,
        filter: HistoryFilter | None = None,  # noqa: A002 - gollem's word for it
        name: str = "",
    ) -> Handoff[B]:
        """This, and then another agent, asked `prompt`: a text, or what a function makes of the output.

        Without a filter it is told all that was said before; instructions of its own take the place of those.
        """
        step: AgentStep[Any, B] = AgentStep(agent, prompt, history=filter or True, name=name)  # pyright: ignore[reportArgumentType, reportCallIssue, reportUnknownVariableType]
        longer = cast("Handoff[B]", object.__new__(type(self)))
        object.__setattr__(longer, "steps", (*self.steps, step))
        object.__setattr__(longer, "name", self.name)
        return longer
