"""QuestionStep: a step of a flow that asks an agent something that is known before the flow begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from flyball.core.flow import FlowNode
from flyball.core.messages import Content, Message
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.flow.doing import Asked, Doing
from flyball.orchestrate.flow.parts import Done
from flyball.orchestrate.flow.steps import Step
from flyball.orchestrate.flow.values import Values

Telling: TypeAlias = Callable[[Any], str]
"""Puts what a step is given into words for an agent."""


@dataclass(frozen=True, eq=False)
class QuestionStep(Step[Any, Any]):
    """Asks an agent a question, after a conversation, whatever the step is given.

    With `planned` it is given a plan, or None: that is how the agent is told of it, after its instructions.
    """

    agent: Agent[Any, Any]
    prompt: Content | None
    messages: Sequence[Message] = ()
    name: str = "ask"
    planned: Telling | None = None
    kind: str = field(default="agent", init=False, repr=False)

    def runs(self) -> Agent[Any, Any]:
        """See `Part.runs`."""
        return self.agent

    @property
    def gives(self) -> Values:
        """See `Part.gives`."""
        return Values()

    def node(self) -> FlowNode:
        """See `Part.node`."""
        return FlowNode(self.kind, self.name)

    async def perform(self, doing: Doing, value: Any) -> Done:
        """See `Part.perform`."""

        async def asked() -> Asked:
            return self.prompt, self.messages

        agent = self.agent
        if self.planned is not None and value is not None:
            given = agent.clone().config.instructions
            agent = agent.clone(instructions=(*given, self.planned(value)))
        result = await doing.run(agent, asked)
        return Done(result.output, result.loop_id)
