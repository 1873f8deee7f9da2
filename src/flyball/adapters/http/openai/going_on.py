"""Which loop a conversation goes on with, if it does with any: decided from data alone.

A chat has no memory: each request brings all that was said. Where its last messages are results of calls
that a loop of ours has asked for, and all before is what that loop was begun with, the loop is gone on with:
its agent keeps what it did on the way, which the client never saw. In any other case a new loop is begun,
with the conversation as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from flyball.adapters.http.openai.call_ids import read_call_name
from flyball.core.errors import InvalidRequest
from flyball.core.events import Event, Started
from flyball.core.messages import Message, Role, ToolCall, ToolResult
from flyball.core.spec import LoopSpec
from flyball.orchestrate.contracts.conversation import conversation
from flyball.orchestrate.machine import fold
from flyball.orchestrate.matching import begun_as


class Answering(Struct, frozen=True):
    """Results at the end of a conversation, for calls of one loop; `before` is what that began with."""

    loop_id: str
    results: tuple[ToolResult, ...]
    before: tuple[Message, ...]


def answering(messages: Sequence[Message]) -> Answering | None:
    """The loop whose calls a conversation ends with results of; None where it does not."""
    results: list[ToolResult] = []
    loops: set[str] = set()
    end = len(messages)
    while end and messages[end - 1].role is Role.TOOL:
        end -= 1
        for result in reversed(messages[end].tool_results):
            name = read_call_name(result.call_id)
            if name is None:
                return None
            loops.add(name.loop_id)
            results.append(replace(result, call_id=name.call_id))
    if len(loops) != 1:
        return None
    (loop_id,) = loops
    first = next((n for n, one in enumerate(messages) if _is_of(one, loop_id)), end)
    between = messages[first:end]
    if any(one.role not in (Role.ASSISTANT, Role.TOOL) for one in between):
        return None  # somebody has said something since: the loop knows nothing of it
    return Answering(loop_id, tuple(reversed(results)), tuple(messages[:first]))


def _is_of(message: Message, loop_id: str) -> bool:
    names = [read_call_name(call.id) for call in message.tool_calls]
    return any(name is not None and name.loop_id == loop_id for name in names)


def goes_on(asked: Answering, spec: LoopSpec | None, events: Sequence[Event]) -> bool:
    """Whether a recorded loop is the one that a conversation goes on with.

    `spec` is the policy that a loop of this request would have: with other tools, settings or instructions
    it is another loop. The choice of a tool was for the beginning.
    """
    if spec is None or not events or not isinstance(events[0], Started):
        return False
    begun = begun_as(events)
    if replace(begun.spec, tool_choice=None) != replace(spec, tool_choice=None) or begun.carried is not None:
        return False
    try:
        talk = conversation(asked.before)
    except InvalidRequest:
        return False
    prompt = None if begun.prompt is None else begun.prompt.parts
    if (talk.history, talk.prompt) != (begun.history, prompt):
        return False
    state = fold(events)
    given = {result.call_id for result in asked.results}
    waiting = {state.calls[index].id for index in state.deferred}
    calls = {call.id for call in state.calls} if state.at == "execute" else _last_calls(state.history)
    return state.at != "done" and waiting <= given <= calls


def _last_calls(history: Sequence[Message]) -> set[str]:
    """The calls that were answered last, of a loop that has gone on from there."""
    last: Message | None = next((one for one in reversed(history) if one.tool_calls), None)
    return set() if last is None else {part.id for part in last.parts if isinstance(part, ToolCall)}
