"""What a loop is told by others, held against where it stands: whether it fits, and as which event. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from flyball.core.events import ChildEnded, Started, ToolReturned
from flyball.core.messages import ToolResult
from flyball.orchestrate.answering import as_taken
from flyball.orchestrate.commands import Report
from flyball.orchestrate.keeping import Keeper
from flyball.orchestrate.machine import effect_id
from flyball.orchestrate.state import State
from flyball.runtime.nats.messages.told import Returned


def has_ended(keeper: Keeper, ended: ChildEnded) -> bool:
    """Whether a loop has recorded that one which this very call of it has begun is over.

    Who tells it may be anybody who may answer for tools, and name any loop, whose output would be the call's.
    """
    known = [event for event in keeper.events if isinstance(event, ChildEnded)]
    return (ended.loop_id, ended.call_id) in [(one.loop_id, one.call_id) for one in known]


def fetching(state: State, call_id: str) -> list[str] | None:
    """What is owed once more now that a loop is over which a call has begun: that call, by its effect's id.

    Nothing, if whoever runs the call waits for the loop himself. None, if the call has a result: the message
    came before, and nobody knows what became of what followed from that.
    """
    open_ = {call.id: index for index, call in enumerate(state.calls) if state.results[index] is None}
    called = (call for message in reversed(state.history) for call in message.tool_calls)
    name = next((call.name for call in called if call.id == call_id), "")
    tool = state.spec.tools.get(name)
    if tool is None or not tool.begins_loop:
        return []
    return [effect_id(state, "execute", open_[call_id])] if call_id in open_ else None


def take_in(keeper: Keeper, told: Report | Returned) -> bool:
    """Fold what a loop was told, if it fits; whether it did."""
    if isinstance(told, Returned):
        event = _returned(keeper.state, told.result, told.at)
        return event is not None and keeper.take(as_taken(keeper.state, event))
    if isinstance(told.event, ToolReturned):
        return keeper.take(as_taken(keeper.state, _as_called(keeper.state, told.event)))
    return not isinstance(told.event, Started) and keeper.take(told.event)


def _returned(state: State, result: ToolResult, at: float) -> ToolReturned | None:
    """The event of a result whose sender knows the call's id only; None if the turn has no such call."""
    for index, call in enumerate(state.calls):
        if call.id == result.call_id:
            return ToolReturned(at, state.turn, index, result)
    return None


def _as_called(state: State, event: ToolReturned) -> ToolReturned:
    """A result under the id that the model gave its call: on the wire it has the effect's."""
    result, calls, index = event.result, state.calls, event.index
    if event.turn != state.turn or not 0 <= index < len(calls) or result.call_id == calls[index].id:
        return event
    return replace(event, result=replace(result, call_id=calls[index].id))
