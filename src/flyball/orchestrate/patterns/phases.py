"""Phases: who is asked for an answer that follows a schema, and who gathers what is needed for it first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from flyball.core.flow import FlowNode
from flyball.core.messages import Content, Message
from flyball.core.spec import OutputMode
from flyball.inference.engine import Engine
from flyball.inference.profile import profile_for
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.flow.parts import Part
from flyball.orchestrate.flow.steps import AgentStep, Pipeline
from flyball.orchestrate.lifecycle import Mode
from flyball.orchestrate.lifecycle.flows import pattern_note
from flyball.orchestrate.patterns.asking import QuestionStep, Telling

PHASE_2 = "Produce your structured output now."
"""What the model is told when it has gathered what it needs."""


@dataclass(frozen=True, init=False, eq=False)
class PatternFlow(Pipeline[Any, Any]):
    """A pipeline that is a pattern.

    Which mode of pagantic's it is, and which tools it may use, is written down with it.
    """

    mode: Mode
    tools: tuple[str, ...]

    def __init__(self, *steps: Any, name: str, mode: Mode, tools: Sequence[str] = ()) -> None:
        super().__init__(*steps, name=name)
        object.__setattr__(self, "mode", mode)
        object.__setattr__(self, "tools", tuple(tools))

    def node(self) -> FlowNode:
        """See `Part.node`."""
        return replace(super().node(), note=pattern_note(self.mode, self.tools))


class Phases:
    """Two phases, or one: where there are tools to be called, `gathering` talks and calls them first.

    `answering` has no tools then, and no instructions of its own: it goes on with the whole conversation.
    """

    __slots__ = ("answering", "gathering", "name")

    def __init__(self, answering: Agent[Any, Any], gathering: Agent[Any, Any] | None, name: str) -> None:
        self.answering = answering
        self.gathering = gathering
        self.name = name

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools that may be called."""
        return () if self.gathering is None else tool_names(self.gathering)

    def step(
        self,
        prompt: Content | None,
        messages: Sequence[Message] = (),
        *,
        name: str = "",
        planned: Telling | None = None,
    ) -> PatternFlow:
        """The question as a step of a flow, after a conversation: what it gives is the output.

        `planned`: the step is given a plan to go by, which is told so.
        """
        name = name or self.name
        if self.gathering is None:
            steps: list[Part] = [QuestionStep(self.answering, prompt, messages, name, planned)]
        else:
            steps = [
                QuestionStep(self.gathering, prompt, messages, f"{name}: gathers", planned),
                AgentStep(self.answering, PHASE_2, history=True, name=name),
            ]
        return PatternFlow(*steps, name=name, mode=Mode.STRUCTURED, tools=self.tools)


def tool_names(agent: Agent[Any, Any]) -> tuple[str, ...]:
    """The names of an agent's tools."""
    return tuple([tool.spec.definition.name for tool in agent.config.tools])


def answer_mode(engine: Engine, grammar: str | None) -> OutputMode | None:
    """How an answer that follows a schema is asked for: as the text itself, where the engine holds it to it.

    The content is then what pagantic calls the raw text. None leaves it to the agent.
    """
    return OutputMode.NATIVE if not grammar and profile_for(engine).native_schema else None
