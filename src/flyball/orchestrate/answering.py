"""Results from outside, for calls that were deferred: into a loop's journal, or into a history.

All that is given to one loop together is taken together, or refused together and nothing is written. A result
that was taken before, and is given again, is no error: whoever gives results may do so twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypeVar, cast

from msgspec.structs import replace

from flyball.core.clock import Clock
from flyball.core.deferred import DeferredToolResult
from flyball.core.encodable import NotEncodable, as_text
from flyball.core.errors import AnswerRefused, JournalConflict, UserError
from flyball.core.events import Event, Stage, Started, ToolReturned
from flyball.core.messages import Message, ResultKind, Role, ToolCall, ToolResult
from flyball.core.spec import LoopSpec
from flyball.orchestrate.clock import SYSTEM_CLOCK
from flyball.orchestrate.family import loops_of_calls
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.lifecycle import stage_of
from flyball.orchestrate.machine import accepts, take
from flyball.orchestrate.matching import check_same
from flyball.orchestrate.recorded import load
from flyball.orchestrate.state import State
from flyball.tool.execute import MAX_RESULT_BYTES
from flyball.tool.result import result_of
from flyball.tool.truncation import truncated

T = TypeVar("T")

OutsideResult: TypeAlias = DeferredToolResult | ToolResult
"""What may be given: a ToolResult too, which can have images, or an error that is no reason to call again."""


def for_recorded(options: Mapping[str, Any]) -> Sequence[OutsideResult]:
    """The results among a run's options that are for a recorded loop, and not for the end of `messages`.

    Raises:
        UserError: there are some, and no loop that they could be for.
    """
    results: Sequence[OutsideResult] = options.get("deferred_results") or ()
    if not results or open_calls(options.get("messages") or ()):
        return ()
    if "loop_id" not in options or not ("journal" in options or "runtime" in options):
        raise UserError(
            "deferred_results= answer calls that wait: give messages= that end with these calls, or the "
            "loop_id= of a recorded loop with its journal= or runtime="
        )
    return results


async def send_results(
    journal: Journal,
    loop_id: str,
    results: Sequence[OutsideResult],
    clock: Clock = SYSTEM_CLOCK,
    wanted: Started | None = None,
) -> Stage:
    """Give a loop results of its calls that wait for them, wherever it is driven; the stage that it is in.

    Some of them may be given now and others later. A call that is about to be deferred may be answered
    before: then what its tool would have given is not wanted any more. A loop that nobody drives goes on
    once it is resumed. Results of calls that wait in a loop under it reach that one.

    Raises:
        LoopNotFound: the journal holds no such loop.
        LoopMismatch: the loop is another one than the `wanted` one.
        AnswerRefused: a result is of no call that waits, or of one that has another result.
        UserError: a result cannot be recorded.
    """
    events, state = await load(journal, loop_id)
    if wanted is not None:
        check_same(events, wanted)
    for whose, given in (await by_loop(journal, state, results)).items():
        await _send(journal, whose, given, clock)
    _, state = await load(journal, loop_id)
    return stage_of(state)


async def by_loop(
    journal: Journal, state: State, results: Sequence[OutsideResult]
) -> dict[str, list[OutsideResult]]:
    """The results that a loop is given, each for the loop whose call waits for it: that one, or one under it.

    Raises:
        AnswerRefused: a call waits in more than one loop.
        UserError: what is given is no result.
    """
    owners = await loops_of_calls(journal, state, [_call_id(given) for given in results])
    found: dict[str, list[OutsideResult]] = {}
    for given in results:
        found.setdefault(owners[_call_id(given)], []).append(given)
    return found


async def _send(journal: Journal, loop_id: str, results: Sequence[OutsideResult], clock: Clock) -> None:
    while True:
        events, state = await load(journal, loop_id)
        returned = answers(state, results, clock.now())
        for event in returned:
            take(state, event)
        try:
            if returned:
                await journal.append(loop_id, returned, len(events))
        except JournalConflict:
            continue
        return


def answers(state: State, results: Sequence[OutsideResult], at: float) -> list[ToolReturned]:
    """The events of results that a loop is given; none of those that it has already.

    Raises:
        AnswerRefused: a result is of no call that waits, or of one that has another result.
        UserError: a result cannot be recorded.
    """
    waiting = {state.calls[index].id: state.calls[index] for index in state.deferred}
    may_come = {call.id: call for index, call in enumerate(state.calls) if _fits(state, index, at)}
    there = {one.call_id: one for message in state.history for one in message.tool_results}
    there |= {one.call_id: one for one in state.results if one is not None}
    taken = _matched(results, may_come, there, waiting, f"loop {state.loop_id!r}", state.spec)
    numbers = {call.id: index for index, call in enumerate(state.calls)}
    return [ToolReturned(at, state.turn, numbers[name], result) for name, result in taken.items()]


def _fits(state: State, index: int, at: float) -> bool:
    call = state.calls[index]
    return accepts(state, ToolReturned(at, state.turn, index, ToolResult(call.id, call.name)))


def as_taken(state: State, event: ToolReturned) -> ToolReturned:
    """What the wire brought for a call: if the call was deferred, as `answers` would have it."""
    if event.turn != state.turn or event.index not in state.deferred:
        return event
    return replace(event, result=_cut(event.result, state.calls[event.index], state.spec))


def length_with(events: Sequence[Event], results: Sequence[OutsideResult]) -> int:
    """How many events a loop had when it was given the last of these results."""
    names = {_call_id(given) for given in results}
    length = len(events)
    for event in reversed(events):
        if isinstance(event, ToolReturned) and event.result.call_id in names:
            break
        length -= 1
    return length


def open_calls(history: Sequence[Message]) -> dict[str, ToolCall]:
    """The calls at the end of a history that nobody has answered yet, by their ids."""
    last = history[-1] if history else None
    if last is not None and last.role is Role.ASSISTANT:
        return {call.id: call for call in last.tool_calls}
    if last is None or last.role is not Role.TOOL or len(history) < 2:
        return {}
    answered = {result.call_id for result in last.tool_results}
    return {call.id: call for call in history[-2].tool_calls if call.id not in answered}


def completed(
    history: Sequence[Message], results: Sequence[OutsideResult], spec: LoopSpec
) -> tuple[Message, ...]:
    """A history whose last calls are all answered, by what is there and by these results; of a loop's tools.

    Raises:
        AnswerRefused: a result is of no call that waits, or one of them has no result.
        UserError: a result cannot be recorded.
    """
    waiting = open_calls(history)
    last, before = history[-1], history[:-1]
    if last.role is Role.ASSISTANT:
        asked, before, given = last, history, tuple[ToolResult, ...]()
    else:
        asked, given = history[-2], last.tool_results
    there = {result.call_id: result for result in given}
    taken = _matched(results, waiting, there, waiting, "the history", spec)
    missing = [name for name in waiting if name not in taken]
    if missing:
        raise AnswerRefused(
            f"the history has calls without a result: {', '.join(missing)}; a run can go on from it only "
            "with all of them",
            missing=missing,
            waiting=list(waiting),
        )
    all_of_them = there | taken
    return (*before, Message(Role.TOOL, tuple([all_of_them[call.id] for call in asked.tool_calls])))


def _matched(  # noqa: PLR0917 - what may come, what is there, and how it is told
    results: Sequence[OutsideResult],
    may_come: Mapping[str, ToolCall],
    there: Mapping[str, ToolResult],
    waiting: Mapping[str, ToolCall],
    place: str,
    spec: LoopSpec,
) -> dict[str, ToolResult]:
    """The results that are new, by their calls' ids."""
    taken: dict[str, ToolResult] = {}
    for given in results:
        name = _call_id(given)
        call = may_come.get(name)
        recorded = there.get(name) if call is None else taken.get(name)
        if call is None and recorded is None:
            what = f"it waits for {', '.join(waiting)}" if waiting else "it waits for no results"
            raise AnswerRefused(
                f"{place} takes no result of call {name!r}: {what}", call_id=name, waiting=list(waiting)
            )
        result = _as_result(
            given, call or ToolCall(name, _tool_name(given) or (recorded.name if recorded else "")), spec
        )
        if recorded is None:
            taken[name] = result
        elif (recorded.text, recorded.status) != (result.text, result.status):
            raise AnswerRefused(
                f"call {name!r} of {place} has another result already: {recorded.text[:200]!r}",
                call_id=name,
                waiting=list(waiting),
            )
    return taken


def _as_result(given: OutsideResult, call: ToolCall, spec: LoopSpec) -> ToolResult:
    """What was given, as the result of a call."""
    if (name := _tool_name(given)) and name != call.name:
        raise AnswerRefused(
            f"call {call.id!r} is one of {call.name!r}, and the result says it is of {name!r}",
            call_id=call.id,
            tool=call.name,
        )
    if isinstance(given, ToolResult):
        if given.status not in (ResultKind.RETURN, ResultKind.RETRY):
            raise UserError(f"a result from outside is a return or a retry, not {given.status!s}")
        return _recordable(_cut(given, call, spec), call, given.is_error)
    if not given.is_error:
        return _recordable(_cut(given.content, call, spec), call)
    told = ToolResult(call.id, call.name, as_text(given.content), status=ResultKind.RETRY)
    return _recordable(told, call)


def _cut(value: T, call: ToolCall, spec: LoopSpec) -> T:
    """What was given, no longer than the results of this tool may be."""
    tool = spec.tools.get(call.name)
    if tool is None or tool.result_tokens is None:
        return value
    try:
        return cast("T", truncated(value, tool.result_tokens))
    except NotEncodable as error:
        raise UserError(f"the result of call {call.id!r} cannot be recorded: {error}") from error


def _recordable(value: object, call: ToolCall, fails: bool = False) -> ToolResult:
    made = result_of(call, value, MAX_RESULT_BYTES)
    if made.is_error and not fails:
        raise UserError(f"the result of call {call.id!r} cannot be recorded: {made.error}")
    return made


def _call_id(given: OutsideResult) -> str:
    if isinstance(given, ToolResult):
        return given.call_id
    if not isinstance(given, DeferredToolResult):  # pyright: ignore[reportUnnecessaryIsInstance] - anybody's
        raise UserError(f"a result from outside is a DeferredToolResult or a ToolResult, not {given!r:.200}")
    return given.tool_call_id


def _tool_name(given: OutsideResult) -> str:
    return given.name if isinstance(given, ToolResult) else given.tool_name
