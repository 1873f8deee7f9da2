"""What a tool is, as data: its definition for the model and its flags for the loop."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Literal

from msgspec import Struct

from flyball.core.errors import ToolNotFound, UserError
from flyball.core.messages import ToolCall


class Safety(StrEnum):
    """What may happen to a call when nobody knows whether it ran: a crash, a time-out, a lost answer."""

    IDEMPOTENT = "idempotent"
    """Running it twice is the same as running it once: it may be repeated, and is retried by itself."""
    AT_LEAST_ONCE = "at_least_once"
    """It may be repeated after a crash; the idempotency key lets it notice."""
    AT_MOST_ONCE = "at_most_once"
    """It is never started twice: after a crash the model reads that it was interrupted."""


class ToolKind(StrEnum):
    """Whether a tool does something or only carries the final answer."""

    FUNCTION = "function"
    OUTPUT = "output"


class ToolDefinition(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """What the model is told about a tool. `parameters` is a JSON Schema."""

    name: str
    parameters: dict[str, Any]
    description: str = ""
    kind: ToolKind = ToolKind.FUNCTION
    strict: bool | None = None
    sequential: bool = False
    outer_key: str | None = None
    extra: dict[str, Any] | None = None

    def check(self) -> ToolDefinition:
        """Return the definition if it is complete.

        Raises:
            UserError: it has no name or no parameters.
        """
        if not self.name:
            raise UserError("a tool definition needs a name")
        if not self.parameters:
            raise UserError(f"the definition of tool {self.name!r} needs parameters (a JSON Schema)")
        return self


class ToolSpec(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """A tool as a loop's spec records it: the definition and the policy around its calls.

    `elsewhere`: the agent has no such tool itself; whoever hosts one of this name runs it. `state` names the
    state that its calls go on from, and may change; tools that share one share its name. `begins_loop`: what
    a call gives is what comes of a loop that it has begun. It may be run again at any time, and finds that.
    `result_tokens` is how long a result of a call that was deferred may be: a longer one is cut as it comes.
    `outside`: whoever began the loop runs it. No driver does, nobody is asked to approve it, and its calls
    wait for their results from the moment that they may run.
    """

    definition: ToolDefinition
    safety: Safety = Safety.AT_LEAST_ONCE
    retries: int | None = None
    timeout: float | None = None
    approval: bool = False
    checks_availability: bool = False
    wants_history: bool = False
    elsewhere: bool = False
    state: str | None = None
    begins_loop: bool = False
    result_tokens: int | None = None
    outside: bool = False

    @property
    def alone(self) -> bool:
        """Whether its calls overlap no other call of the turn: it says so, or has a state."""
        return self.definition.sequential or self.state is not None


class ToolChoice(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """How free the model is: `auto`, `required`, `none`, or `function` with one tool's name.

    `auto` with a name means `function`, as gollem has it. With `auto_reset` the choice falls back to `auto`
    once the model has called a tool, so that `required` cannot go round for ever.
    """

    mode: Literal["auto", "required", "none", "function"] = "auto"
    tool_name: str | None = None
    auto_reset: bool = False
    extra: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.mode not in ("auto", "required", "none", "function"):
            raise UserError(f"a tool choice is 'auto', 'required', 'none' or 'function', not {self.mode!r}")
        if self.mode == "function" and not self.tool_name:
            raise UserError("tool choice 'function' needs tool_name")

    @property
    def forced(self) -> str | None:
        """The one tool that must be called, if any."""
        return self.tool_name if self.mode in ("auto", "function") else None


def validate_tools_allowed(calls: Iterable[ToolCall], allowed: Iterable[str]) -> None:
    """Check that all calls are to allowed tools; no names allowed means that all are.

    Raises:
        ToolNotFound: "disallowed tools: ...", with the names outside the list.
    """
    names = set(allowed)
    outside = sorted({call.name for call in calls} - names) if names else []
    if outside:
        raise ToolNotFound(f"disallowed tools: {', '.join(outside)}", tools=outside)
