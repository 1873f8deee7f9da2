"""What is offered: each agent as a tool, and if that is wanted, the tools of agents by themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from mcp_types import Tool, ToolAnnotations
from msgspec import Struct

from flyball.adapters.mcp.arguments import AGENT_SCHEMA
from flyball.adapters.mcp.naming import fitting
from flyball.core.tools import Safety, ToolSpec
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.cards import answer_form

AnyAgent: TypeAlias = Agent[Any, Any]


class AgentOffer(Struct, frozen=True):
    """An agent as a tool. `key` is what its answers stand under, where they are no objects themselves.

    `waits` says whether a run of it may come to wait for a person.
    """

    agent: str
    tool: Tool
    key: str | None = None
    waits: bool = False


class ToolOffer(Struct, frozen=True):
    """A tool of an agent's, by itself. `name` is the tool's own."""

    agent: str
    name: str
    tool: Tool


class Offer:
    """All that is offered, by name.

    Args:
        agents: the agents.
        tools: whether their tools are offered by themselves, too: those that may be run outside of a loop.
    """

    def __init__(self, agents: Iterable[AnyAgent], *, tools: bool = False) -> None:
        self.notes: list[str] = []
        """What whoever started the server should know: names that were changed, tools that are left out."""
        self._offered: dict[str, AgentOffer | ToolOffer] = {}
        known = list(agents)
        for agent in known:
            name = fitting(agent.config.name, self._offered)
            if name != agent.config.name:
                self.notes.append(f"the agent {agent.config.name!r} is offered as {name!r}")
            self._offered[name] = _agent_offer(agent, name)
        if tools:
            self._offer_tools(known)

    def get(self, name: str) -> AgentOffer | ToolOffer | None:
        """What is offered under a name."""
        return self._offered.get(name)

    def schema(self, name: str) -> Mapping[str, Any] | None:
        """The schema of a tool's arguments; None where there is no such tool."""
        found = self._offered.get(name)
        return None if found is None else found.tool.input_schema

    def tools(self) -> list[Tool]:
        """All of it, as a client is told."""
        return [offered.tool for offered in self._offered.values()]

    def _offer_tools(self, agents: list[AnyAgent]) -> None:
        """Offer tools under their own names; with their agent's before it, where two are called the same."""
        owners: dict[str, list[Any]] = {}
        for agent in agents:
            for tool in agent.config.tools:
                same = owners.setdefault(tool.spec.definition.name, [])
                if all(tool is not other for other in same):
                    same.append(tool)
        offered: set[int] = set()
        for agent in agents:
            for tool in agent.config.tools:
                own = tool.spec.definition.name
                if id(tool) in offered:
                    continue  # two agents have it
                offered.add(id(tool))
                if why := _not_alone(tool.spec):
                    self.notes.append(f"the tool {own!r} of {agent.config.name!r} is not offered: {why}")
                    continue
                plain = len(owners[own]) == 1 and own not in self._offered
                name = fitting(own if plain else f"{agent.config.name}__{own}", self._offered)
                self._offered[name] = ToolOffer(agent.config.name, own, _tool_of(tool.spec, name))


def _agent_offer(agent: AnyAgent, name: str) -> AgentOffer:
    config = agent.config
    schema, key = _output_of(agent)
    told = Tool(
        name=name,
        title=config.name,
        description=_about(agent),
        input_schema=AGENT_SCHEMA,
        output_schema=schema,
        annotations=ToolAnnotations(
            title=config.name,
            # What only asks a model changes nothing; what tools do is not known.
            read_only_hint=not config.tools,
            open_world_hint=True,
        ),
    )
    waits = config.output_approval or any(
        tool.spec.approval or tool.spec.begins_loop for tool in config.tools
    )
    return AgentOffer(config.name, told, key, waits)


def _about(agent: AnyAgent) -> str:
    """What a client's model is told of an agent: what it is for, and which tools it has; no instructions."""
    config = agent.config
    text = config.description.strip() or f"Asks the agent {config.name!r}, and gives its answer."
    tools = ", ".join([tool.spec.definition.name for tool in config.tools])
    return f"{text}\n\nIt can use: {tools}." if tools else text


def _output_of(agent: AnyAgent) -> tuple[dict[str, Any] | None, str | None]:
    """The schema of an agent's answers, and the key that they stand under.

    There is none where an answer is text, or may be of several types: then each is as it comes. Structured
    content is an object.
    """
    schema, key = answer_form(agent)
    return (schema, key) if schema is not None and schema.get("type") == "object" else (None, None)


def _not_alone(spec: ToolSpec) -> str:
    """Why a tool is not offered by itself; empty where it is."""
    if spec.approval:
        return "it needs approval, for which its agent asks (--yes approves all calls)"
    if spec.safety is Safety.AT_MOST_ONCE:
        return "it may run at most once, for which its agent's loop sees"
    if spec.state is not None:
        return "it has a state, which belongs to its agent's loop"
    if spec.begins_loop:
        return "it is an agent"
    return "it runs elsewhere" if spec.elsewhere else ""


def _tool_of(spec: ToolSpec, name: str) -> Tool:
    definition = spec.definition
    idempotent = spec.safety is Safety.IDEMPOTENT
    return Tool(
        name=name,
        title=definition.name,
        description=definition.description or None,
        input_schema=definition.parameters,
        # Nothing says that a tool only reads; what may be done twice is taken to destroy nothing.
        annotations=ToolAnnotations(
            idempotent_hint=idempotent, destructive_hint=False if idempotent else None
        ),
    )
