"""Agents, their tools and their models, as callers see them: no code, and no instructions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from flyball.core.errors import FlyballError
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.lifecycle import Mode
from flyball.orchestrate.requesting import unwrapped


class ToolCard(Struct, frozen=True):
    """A tool as callers see it."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}
    approval: bool = False


class AgentCard(Struct, frozen=True):
    """An agent as callers see it. `output` is the JSON Schema of its answers.

    It has none where an answer is text, or may be of several types.
    """

    name: str
    model: str
    tools: tuple[ToolCard, ...] = ()
    output: dict[str, Any] | None = None
    modes: tuple[Mode, ...] = tuple(Mode)
    description: str = ""


class ModelCard(Struct, frozen=True):
    """A model that is served, and the agents that have it."""

    name: str
    agents: tuple[str, ...]


def card_of(agent: Agent[Any, Any]) -> AgentCard:
    """An agent as callers see it."""
    config, (schema, key) = agent.config, answer_form(agent)
    engine: Any = config.model
    model = engine if isinstance(engine, str) else "" if engine is None else str(engine.model_info().name)
    tools = [
        ToolCard(one.definition.name, one.definition.description, one.definition.parameters, one.approval)
        for one in [tool.spec for tool in config.tools]
    ]
    output = schema if schema is None or key is None else unwrapped(schema, key)
    return AgentCard(config.name, model, tuple(tools), output, description=config.description)


def answer_form(agent: Agent[Any, Any]) -> tuple[dict[str, Any] | None, str | None]:
    """The schema that an agent's answers are written by, and the key that they stand under, if they do.

    None where an answer is text, may be of several types, or where the agent's model cannot be had now:
    whoever asks it is told why.
    """
    try:
        output = agent.spec.output
    except FlyballError:
        return None, None
    if len(output.tools) > 1 or (output.allows_text and not output.schema):
        return None, None
    for tool in output.tools:
        return tool.parameters, tool.outer_key
    return output.schema, output.outer_key


def models_of(cards: Iterable[AgentCard]) -> tuple[ModelCard, ...]:
    """The models that agents have, by name."""
    found: dict[str, list[str]] = {}
    for card in cards:
        if card.model:
            found.setdefault(card.model, []).append(card.name)
    return tuple([ModelCard(name, tuple(agents)) for name, agents in sorted(found.items())])
