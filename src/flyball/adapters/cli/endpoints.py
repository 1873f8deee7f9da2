"""`--endpoint MODEL=rpm:60,concurrent:4`: how much a worker asks of the models behind its agents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from flyball.core.errors import UserError
from flyball.inference.gate import Gate
from flyball.inference.limiting import behind
from flyball.inference.window import Limit
from flyball.orchestrate.agent import Agent

_FORM = "write it like --endpoint openai:gpt-5=rpm:60,concurrent:4"
_WORDS = {"rpm": "requests_per_minute", "tpm": "tokens_per_minute", "concurrent": "max_concurrent"}


def within_limits(agents: Sequence[Agent[Any, Any]], said: Iterable[str]) -> list[Agent[Any, Any]]:
    """The agents, as they are, but for the limits on their models. Agents on one endpoint share its limit.

    Raises:
        UserError: an option cannot be read, says a thing twice, or names a model that no agent has.
        ConfigurationFailure: an agent's model cannot be used.
    """
    limits: dict[str, Limit] = {}
    for one in said:
        name, limit = read_limit(one)
        if name in limits:
            raise UserError(f"--endpoint {one}: {name} has a limit already")
        limits[name] = limit
    if not limits:
        return list(agents)
    gates = {name: Gate(limit) for name, limit in limits.items()}
    names = [names_of(agent) for agent in agents]
    for name in gates:
        if not any(name in those for those in names):
            there = ", ".join(dict.fromkeys([those[0] for those in names]))
            raise UserError(f"--endpoint {name}=…: no agent here has this model; they have {there}")
    return [_limited(agent, those, gates) for agent, those in zip(agents, names, strict=True)]


def _limited(agent: Agent[Any, Any], names: Sequence[str], gates: dict[str, Gate]) -> Agent[Any, Any]:
    gate = next((gates[name] for name in names if name in gates), None)
    return agent if gate is None else agent.clone(model=behind(gate, agent.bindings().model))


def names_of(agent: Agent[Any, Any]) -> list[str]:
    """What an agent's model may be called: as the agent has it, with its provider, and by its name alone."""
    model, info = agent.config.model, agent.bindings().engine.model_info()
    told = [model] if isinstance(model, str) else []
    return list(
        dict.fromkeys([*told, *([f"{info.provider}:{info.name}"] if info.provider else []), info.name])
    )


def read_limit(said: str) -> tuple[str, Limit]:
    """A model's name and its limit, as they were written.

    Raises:
        UserError: they cannot be read.
    """
    name, _, text = said.rpartition("=")
    given: dict[str, int] = {}
    for part in text.split(","):
        word, _, number = part.strip().partition(":")
        if not name or word not in _WORDS or not number.isdecimal() or int(number) < 1:
            raise UserError(f"--endpoint {said}: {_FORM}")
        if _WORDS[word] in given:
            raise UserError(f"--endpoint {said}: {word} is said twice")
        given[_WORDS[word]] = int(number)
    return name, Limit(**given)
