"""The agents whose code a worker has, by name: their policy, their models and their tools."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flyball.core.errors import UnknownAgent, UserError
from flyball.core.spec import Purpose
from flyball.core.task import AgentRole
from flyball.inference.engine import Engine
from flyball.inference.registry import Registry
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.agent_tool import asked_by
from flyball.orchestrate.bindings import Bindings
from flyball.orchestrate.editing import editor_bindings
from flyball.orchestrate.task_loops import DEFAULT_MODEL
from flyball.orchestrate.wrapping import wrapped
from flyball.tool.protocol import Tool


class Agents:
    """What a worker can work for."""

    def __init__(self, agents: Iterable[Agent[Any, Any]], deps: Any = None) -> None:
        """`deps` is what their functions and tools are given here."""
        self._bindings: dict[str, Bindings] = {}
        self._engines: dict[str, Engine] = {}
        for agent in agents:
            bindings = agent.bindings() if deps is None else agent.bindings().with_deps(deps)
            name = bindings.spec.agent
            if name in self._bindings:
                raise UserError(f"two agents are called {name!r}: give each a name of its own, Agent(name=…)")
            self._bindings[name] = bindings
        # Who asks for no agent in particular asks for the only one.
        self._only = next(iter(self._bindings)) if len(self._bindings) == 1 else None
        for bindings in tuple(self._bindings.values()):
            self._add_editor(bindings)
        for bindings in tuple(self._bindings.values()):
            self._add_asked(bindings, deps)

    def _add_editor(self, bindings: Bindings) -> None:
        """An architect comes with its editor, and that with its own, unless they are there already."""
        while bindings.editor is not None:
            bindings = editor_bindings(bindings)
            if self._bindings.setdefault(bindings.spec.agent, bindings) is not bindings:
                return

    def _add_asked(self, bindings: Bindings, deps: Any) -> None:
        """An agent comes with those that are tools of it, and with theirs, unless they are there already.

        Raises:
            UserError: another agent of that name is.
        """
        for tool in bindings.tools.values():
            if (asked := asked_by(tool)) is None:
                continue
            other = asked.bindings() if deps is None else asked.bindings().with_deps(deps)
            name = other.spec.agent
            there = self._bindings.get(name)
            if there is None:  # one that is there is gone through by whoever has put it there
                self._bindings[name] = other
                self._add_asked(other, deps)
            elif there.spec != other.spec:
                raise UserError(
                    f"two agents are called {name!r}, one of which is a tool of {bindings.spec.agent!r}: "
                    "give each a name of its own, Agent(name=…)"
                )

    @property
    def names(self) -> list[str]:
        """Their names."""
        return list(self._bindings)

    def tools(self, *, loops: bool = True) -> list[str]:
        """The names of the tools that they have; without `loops`, of those that begin none."""
        return sorted(
            {
                name
                for bindings in self._bindings.values()
                for name, tool in bindings.tools.items()
                if loops or not tool.spec.begins_loop
            }
        )

    def has_tool(self, agent: str, name: str) -> bool:
        """Whether an agent's own tool is here."""
        own = self._bindings.get(agent)
        return own is not None and name in own.tools

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

    def for_task(self, role: str, metadata: dict[str, Any] | None) -> Bindings:
        """The agent for a task of somebody else's: the one that its metadata names, or that its role does.

        Raises:
            UnknownAgent: it is not here.
        """
        named = (metadata or {}).get("agent")
        name = named if isinstance(named, str) and named else role
        if name == AgentRole.GENERAL and name not in self._bindings and self._only is not None:
            name = self._only
        return self.get(name)

    def engine(self, agent: str, role: str, model: str, purpose: Purpose = "turn") -> Engine:
        """The engine for a model call: an agent's own, unless another model is asked for.

        Raises:
            UnknownAgent: the agent is not here.
            FlyballError: there is no engine for the model; the message says why.
        """
        bindings = self.get(agent) if agent else None
        if bindings is None:
            # Somebody else's request, which names a model, and perhaps one of our agents by its role.
            own = [one for one in self._bindings.values() if model in _names_of(one)]
            named = [self._bindings[role]] if role in self._bindings and model in ("", DEFAULT_MODEL) else []
            bindings = next(iter(own + named), None)
        if bindings is not None and (model in ("", DEFAULT_MODEL) or model in _names_of(bindings, purpose)):
            return bindings.engine_for(purpose)
        engine = self._engines.get(model)
        if engine is None:
            engine = self._engines[model] = Registry().resolve(model or None)
        return engine if bindings is None else wrapped(engine, bindings.stages, model)

    def tool(self, agent: str, name: str) -> tuple[Tool | None, Any]:
        """A tool of an agent's, with its dependencies; another agent's of this name, where it has none."""
        own = self._bindings.get(agent)
        if own is not None and name in own.tools:
            return own.tools[name], own.deps
        for bindings in self._bindings.values():
            if name in bindings.tools:
                return bindings.tools[name], bindings.deps
        return None, None


def _names_of(bindings: Bindings, purpose: Purpose = "turn") -> tuple[str, ...]:
    """What an agent's model for a purpose may be called: as in its spec, by its name, with its provider."""
    info = bindings.engine_for(purpose).model_info()
    return (bindings.spec.served_by(purpose)[0], info.name, f"{info.provider}:{info.name}")
