"""What model workers and tools workers are asked to do, and what they answer.

A request of our own loops comes with all that its answer must name. One of somebody else's is answered in
its words alone: we know neither its turn nor its place in a turn.
"""

from __future__ import annotations

from msgspec.structs import replace

from flyball.core.context import RunFacts
from flyball.core.correlation import Correlation
from flyball.core.events import ModelAnswered, ModelFailed, ToolReturned
from flyball.core.forms.semstreams import (
    AgentRequest,
    AgentResponse,
    portable_message,
    portable_result,
)
from flyball.core.messages import ResultKind, ToolCall
from flyball.inference.request import Request
from flyball.orchestrate.commands import ExecuteCommand, InferCommand, Report
from flyball.runtime.nats.messages.frame import not_for, own, read_exact, read_payload, write

# Model calls


def write_request(command: InferCommand) -> bytes:
    """A model call as a message."""
    request = command.request
    payload = AgentRequest.of(
        command.id,
        [portable_message(message) for message in request.messages],
        request.settings,
        request.tools,
        request.tool_choice,
        loop_id=command.loop_id,
        role=command.role,
        model=command.model,
    )
    return write(payload, command.id, command)


def read_request(data: bytes, place: str) -> tuple[InferCommand, bool]:
    """A model call, and whether one of our own loops asks for it.

    Raises:
        InvalidMessage: it is none.
    """
    exact = read_exact(data, InferCommand, place)
    if exact is not None:
        return exact, True
    payload = read_payload(data, place).payload
    if not isinstance(payload, AgentRequest):
        raise not_for(place, payload, "an AgentRequest")
    request = Request(
        payload.messages, payload.tools, payload.settings, payload.tool_choice, id=payload.request_id
    )
    return InferCommand(
        payload.request_id, payload.loop_id, "", 0, request, payload.role, payload.model
    ), False


def write_answer(command: InferCommand, event: ModelAnswered | ModelFailed, *, ours: bool) -> bytes:
    """What a model answered, as a message."""
    if isinstance(event, ModelAnswered):
        payload = AgentResponse.of(command.id, portable_message(event.message))
    else:
        payload = AgentResponse(command.id, "error", error=event.error.message)
    return write(payload, f"{command.id}/answer", Report(command.loop_id, event) if ours else None)


# Tool calls


def write_call(command: ExecuteCommand) -> bytes:
    """A tool call as a message, with the task's metadata.

    On the wire its id is the effect's: whoever answers names loop, turn and call by that.
    """
    facts = command.facts
    payload = replace(
        command.call,
        id=command.id,
        metadata={**(command.call.metadata or {}), **(facts.metadata or {})} or None,
        loop_id=command.loop_id,
        trace_id=facts.correlation.trace_id or None,
    )
    return write(payload, command.id, command)


def read_call(data: bytes, place: str) -> tuple[ExecuteCommand, bool]:
    """A tool call, and whether one of our own loops asks for it.

    Raises:
        InvalidMessage: it is none.
    """
    exact = read_exact(data, ExecuteCommand, place)
    if exact is not None:
        return exact, True
    call = read_payload(data, place).payload
    if not isinstance(call, ToolCall):
        raise not_for(place, call, "a ToolCall")
    loop_id, key = call.loop_id or "", f"{call.loop_id or ''}/{call.id}"
    facts = RunFacts(
        loop_id,
        tool_name=call.name,
        tool_call_id=call.id,
        idempotency_key=key,
        metadata=call.metadata,
        correlation=Correlation(trace_id=call.trace_id or ""),
    )
    return ExecuteCommand(key, loop_id, "", 0, 0, call, facts), False


def write_result(command: ExecuteCommand, event: ToolReturned, *, ours: bool) -> bytes:
    """What a tool returned, as a message. That it was deferred is said in our own words: it is no result."""
    if event.result.status is ResultKind.DEFERRED:
        return own("deferred", f"{command.id}/result", Report(command.loop_id, event))
    payload = replace(
        portable_result(event.result),
        call_id=command.id if ours else event.result.call_id,
        loop_id=command.loop_id or None,
        trace_id=command.facts.correlation.trace_id or None,
    )
    return write(payload, f"{command.id}/result", Report(command.loop_id, event) if ours else None)


def write_outside_result(loop_id: str, effect: str, event: ToolReturned, name: str) -> bytes:
    """The result of a deferred call, as a message: like any other result, whoever gives it."""
    payload = replace(portable_result(event.result), call_id=effect, loop_id=loop_id)
    return write(payload, name, Report(loop_id, event))
