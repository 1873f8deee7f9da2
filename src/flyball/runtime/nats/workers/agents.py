"""The agents whose code a worker has, by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flyball.core.errors import UnknownAgent, UserError
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.bindings import Bindings


class Agents:
    """What a worker can work for."""

    def __init__(self, agents: Iterable[Agent[Any, Any]], deps: Any = None) -> None:
        """`deps` is what their functions and tools are given here."""
        self._bindings: dict[str, Bindings] = {}
        for agent in agents:
            bindings = agent.bindings() if deps is None else agent.bindings().with_deps(deps)
            name = bindings.spec.agent
            if name in self._bindings:
                raise UserError(f"two agents are called {name!r}: give each a name of its own, Agent(name=…)")
            self._bindings[name] = bindings

    def tools(self) -> list[str]:
        """The names of the tools that they have."""
        return sorted({name for bindings in self._bindings.values() for name in bindings.tools})

    def get(self, name: str) -> Bindings:
        """One agent's bindings.

        Raises:
            UnknownAgent: it is not here.
        """
        found = self._bindings.get(name)
        if found is None:
            known = ", ".join(map(repr, self._bindings)) or "none"
            raise UnknownAgent(f"the agent {name!r} is not here; here are {known}", agent=name)
        return found
