"""Commands and reports: a loop's effects on their way to another process, and what comes back.

A command holds all that its performer needs, and nothing that only lives in one process; a performer never
reads a journal. A report is the event that answers the effect, with the loop it belongs to.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from flyball.core.context import RunFacts
from flyball.core.effects import Execute, Infer
from flyball.core.events import Event
from flyball.core.messages import ToolCall
from flyball.core.spec import Purpose
from flyball.inference.request import Request
from flyball.orchestrate.facts import call_facts
from flyball.orchestrate.requests import RequestParts, request_of
from flyball.orchestrate.state import State
from flyball.orchestrate.task_facts import role_of


class InferCommand(Struct, frozen=True, omit_defaults=True, tag="infer"):
    """Make this model call."""

    id: str
    loop_id: str
    agent: str
    turn: int
    request: Request
    role: str = ""
    model: str = ""
    purpose: Purpose = "turn"


class ExecuteCommand(Struct, frozen=True, omit_defaults=True, tag="execute"):
    """Run this tool call; with `once`, only if nobody has started it."""

    id: str
    loop_id: str
    agent: str
    turn: int
    index: int
    call: ToolCall
    facts: RunFacts
    once: bool = False


Command = InferCommand | ExecuteCommand


class Report(Struct, frozen=True):
    """What came of a command."""

    loop_id: str
    event: Event


def infer_command(state: State, effect: Infer, parts: RequestParts) -> InferCommand:
    """The command for a model call."""
    request = request_of(state, effect, parts)
    spec, model = state.spec, state.spec.served_by(effect.purpose)[0]
    return InferCommand(
        effect.id, state.loop_id, spec.agent, effect.turn, request, role_of(state), model, effect.purpose
    )


def execute_command(state: State, effect: Execute) -> ExecuteCommand:
    """The command for a tool call."""
    facts = call_facts(state, effect)
    call = call_to_run(state, effect.index)
    return ExecuteCommand(
        effect.id, state.loop_id, state.spec.agent, effect.turn, effect.index, call, facts, effect.once
    )


def call_to_run(state: State, index: int) -> ToolCall:
    """A call as it is to run: with the arguments that a judge gave it, if one did."""
    call = state.calls[index]
    if state.arguments is None or index not in state.arguments:
        return call
    return replace(call, args_json=state.arguments[index])
