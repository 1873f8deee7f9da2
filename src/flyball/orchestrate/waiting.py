"""What a loop waits for from outside: the calls that were deferred, and how it stands meanwhile. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from flyball.core.deferred import DeferredToolRequest
from flyball.core.errors import Deferred
from flyball.core.messages import Message, ResultKind, Role, ToolResult
from flyball.orchestrate.commands import call_to_run
from flyball.orchestrate.state import State


def deferred_requests(state: State) -> tuple[DeferredToolRequest, ...]:
    """The calls that wait for their results, as they were run, in the order in which they were asked for."""
    calls = [call_to_run(state, index) for index in sorted(state.deferred)]
    return tuple([DeferredToolRequest(call.name, call.id, call.args_json) for call in calls])


def deferred_error(state: State, below: Iterable[Deferred] = ()) -> Deferred:
    """What who waits for a loop is told when nothing but results from outside can go on with it.

    `below` is what loops under it have said: their calls are named with their loops.
    """
    requests = list(deferred_requests(state))
    for error in below:
        requests += [replace(one, loop_id=one.loop_id or error.loop_id) for one in error.requests]
    names = ", ".join([_named(one) for one in requests])
    above: dict[str, Any] = {"parent_loop_id": state.parent_loop_id} if state.parent_loop_id else {}
    return Deferred(
        f"loop {state.loop_id!r} waits for results from outside: {names}; "
        "give them as deferred_results=, or to Runtime.answer",
        loop_id=state.loop_id,
        requests=[to_builtins(one) for one in requests],
        **above,
    )


def _named(request: DeferredToolRequest) -> str:
    where = f" of loop {request.loop_id}" if request.loop_id else ""
    return f"{request.tool_name} ({request.tool_call_id}{where})"


def messages_so_far(state: State) -> tuple[Message, ...]:
    """The history, with what is there of the results of a turn in which calls wait.

    What waits is left open, and nothing else: whoever goes on from these messages gives just these results.
    """
    if not state.deferred:
        return tuple(state.history)
    there: list[ToolResult] = []
    for index, result in enumerate(state.results):
        if result is not None:
            there.append(result)
        elif index not in state.deferred:
            call, text = state.calls[index], "Not looked at: other calls of this turn were deferred."
            there.append(ToolResult(call.id, call.name, error=text, status=ResultKind.SKIPPED))
    return (*state.history, Message(Role.TOOL, tuple(there))) if there else tuple(state.history)
