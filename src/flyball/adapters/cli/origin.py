"""What a run was begun with on the command line, so that `resume` and `fork` need not be told again.

A loop's spec holds its policy; the code behind it has names, and these stand in the metadata, under one key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct, ValidationError, convert, to_builtins
from msgspec.structs import replace

from flyball.adapters.cli.driven import Driven
from flyball.adapters.cli.loading import output_of, tools_of
from flyball.core.errors import UserError
from flyball.core.events import Event
from flyball.orchestrate.machines import AnyState
from flyball.orchestrate.provenance import KEY, provenance_of
from flyball.orchestrate.standing import this_process
from flyball.orchestrate.state import State


class Origin(Struct, frozen=True, omit_defaults=True):
    """Names of what is code: the model's string, tools as `module[:name]`, the output's type; who votes.

    `mcp` names MCP servers as they were typed: `${VAR}` is filled in when they are opened, and not recorded.
    """

    model: str = ""
    tools: tuple[str, ...] = ()
    output: str = ""
    votes: int = 0
    process: str = ""
    """Who began it; see `standing`."""
    mcp: tuple[str, ...] = ()

    def metadata(self) -> dict[str, Any]:
        """As the metadata of a run that this process begins."""
        return {KEY: to_builtins(replace(self, process=this_process()))}

    def options(self) -> dict[str, Any]:
        """As options of an agent.

        Raises:
            UserError: a module is not there, or lacks what is named.
        """
        options: dict[str, Any] = {"tools": [tool for name in self.tools for tool in tools_of(name)]}
        if self.output:
            options["output"] = output_of(self.output)
        return options

    def changed(self, named: Driven, otherwise: str = "") -> Origin:
        """With what the options name; `otherwise` is the model where neither they nor this name one.

        Raises:
            UserError: the model's name is empty.
        """
        if named.model is not None and not named.model.strip():
            raise UserError("-m: the model's name is empty; leave the option out for the default")
        return Origin(
            named.model or self.model or otherwise,
            named.tools or self.tools,
            named.output or self.output,
            self.votes,
            mcp=named.mcp or self.mcp,
        )

    @property
    def has_tools(self) -> bool:
        """Whether the model may use any tools."""
        return bool(self.tools or self.mcp)


def origin_of(events: Sequence[Event], state: AnyState) -> Origin:
    """What a run was begun with; one of another program, as far as its spec tells."""
    try:
        origin = convert((state.metadata or {}).get(KEY, {}), Origin)
    except ValidationError:
        origin = Origin()
    return replace(origin, model=provenance_of(events, state).model)


def agent_and_model(events: Sequence[Event], state: State) -> str:
    """Who answered: the model, and the agent's name where it has one of its own."""
    model = provenance_of(events, state).model
    return model if state.spec.agent == "agent" else f"{state.spec.agent} · {model}"
