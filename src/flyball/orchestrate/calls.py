"""A turn's calls: which run, which wait, which are answered at once, and what follows from the last result.

Part of the machine, and as pure; see `turn` for where it stands.
"""

from __future__ import annotations

from hashlib import blake2s

from msgspec import UNSET

from flyball.core.encodable import as_text
from flyball.core.errors import FlyballError, IncompleteToolCall, ToolRetriesExceeded
from flyball.core.events import CallsJudged, ToolReturned, ToolStarted
from flyball.core.messages import ResultKind, ToolCall, ToolResult
from flyball.orchestrate.circles import going_round
from flyball.orchestrate.moves import (
    RAN,
    close_calls,
    conclude,
    count_retry,
    cut_call,
    deny,
    fail,
    move,
    next_turn,
)
from flyball.orchestrate.state import State, ToolStateBefore

_RETURN, _RETRY, _DEFERRED = ResultKind.RETURN, ResultKind.RETRY, ResultKind.DEFERRED


def asked(state: State, calls: tuple[ToolCall, ...]) -> None:
    """Sort the calls, answer those that cannot run, and go on to what comes first."""
    spec = state.spec
    results = note_calls(state, calls)
    choice = state.tool_choice
    if choice is not None and choice.auto_reset:
        state.tool_choice = None
    functions = len(calls) - len(state.outputs)
    breach = spec.limits.after_answer(state.usage, functions)
    if breach is None and functions:
        breach = going_round(state, calls)
    if breach is not None:
        fail(state, breach)
        return
    if len(calls) == 1:
        # The usual turns: one call that carries the output, or one about which nobody has to be asked.
        if state.outputs:
            move(state, "settle")
            return
        tool = spec.tools.get(calls[0].name)
        if (
            tool is not None
            and not (tool.approval or tool.outside)
            and not spec.filters
            and (state.offered is None or calls[0].name in state.offered)
        ):
            state.queue, state.first = (0,), 0
            move(state, "execute")
            return
    judged = False
    for index, call in enumerate(calls):
        tool = spec.tools.get(call.name)
        if tool is None or (state.offered is not None and call.name not in state.offered):
            if index not in state.outputs:
                results[index] = _unknown(state, call)
                state.open -= 1
        elif spec.filters and (malformed := _malformed(call)) is not None:
            results[index] = malformed
            state.open -= 1
        elif spec.filters or (tool.approval and spec.judges):
            judged = True
    if state.outputs and spec.end_strategy == "early":
        move(state, "settle")
    elif judged:
        move(state, "judge")
    else:
        to_execution(state)


def note_calls(state: State, calls: tuple[ToolCall, ...]) -> list[ToolResult | None]:
    """The turn has these calls, none of which is answered; gives the list for their results."""
    ids = state.ids
    for call in calls:
        ids.add(call.id)
    state.calls = calls
    state.open = count = len(calls)
    results: list[ToolResult | None] = [None] * count
    state.results = results
    definitions = state.spec.output.tools
    if not definitions:
        pass
    elif count == 1 and calls[0].name == definitions[0].name:
        state.outputs = (0,)
    else:
        names = [definition.name for definition in definitions]
        state.outputs = tuple([index for index, call in enumerate(calls) if call.name in names])
    return results


def _unknown(state: State, call: ToolCall) -> ToolResult:
    """The answer to a call of what is not on offer: it was never there, or cannot work in this turn."""
    is_there = call.name in state.spec.tools
    what = f"The tool {call.name!r} is not available now." if is_there else f"There is no tool {call.name!r}."
    names = state.offered if state.offered is not None else tuple(state.spec.tools)
    known = ", ".join((*names, *(definition.name for definition in state.spec.output.tools)))
    there_are = f"The tools are: {known}." if known else "There are no tools."
    return ToolResult(
        call.id,
        call.name,
        f"{what} {there_are}",
        status=_RETRY,
        metadata={"code": "TOOL_UNAVAILABLE" if is_there else "TOOL_NOT_FOUND"},
    )


def _malformed(call: ToolCall) -> ToolResult | None:
    """The answer to a call whose arguments no filter can look at; a tool's own parser might let them pass."""
    try:
        _ = call.arguments
    except IncompleteToolCall as error:
        return ToolResult(call.id, call.name, error.message, status=_RETRY)
    return None


def needs_judging(state: State) -> tuple[int, ...]:
    """The calls that must be decided about before they run: all of them by filters, some by approval."""
    spec = state.spec
    if not (spec.filters or spec.judges):
        return ()
    return tuple(
        [
            index
            for index, call in enumerate(state.calls)
            if state.results[index] is None
            and index not in state.outputs
            and (spec.filters or spec.tools[call.name].approval)
        ]
    )


def calls_judged(state: State, event: CallsJudged) -> None:
    """What was judged is denied, or runs."""
    if event.error is not None:
        fail(state, event.error)
        return
    for verdict in event.verdicts:
        if not verdict.allowed:
            deny(state, verdict.index, verdict.reason)
        elif verdict.args_json is not None:
            state.arguments = {**(state.arguments or {}), verdict.index: verdict.args_json}
    to_execution(state)


def to_execution(state: State) -> None:
    """Go to the calls that are still to run, or past them if there are none."""
    if state.open and functions_open(state):
        _line_up(state)
        move(state, "execute")
    else:
        all_returned(state)


def _line_up(state: State) -> None:
    """Put the calls that are to run in order; those that no judge decides about wait for a person.

    Those that are run outside are not in line: from here on their results are waited for.
    """
    tools = state.spec.tools
    together: list[int] = []
    alone: list[int] = []
    awaiting: list[int] = []
    deferred: list[int] = []
    for index, result in enumerate(state.results):
        if result is None and index not in state.outputs:
            tool = tools[state.calls[index].name]
            if tool.outside:
                deferred.append(index)
                continue
            (alone if tool.alone else together).append(index)
            if tool.approval and not state.spec.judges:
                awaiting.append(index)
    state.queue, state.first = (*together, *alone), 0
    state.awaiting, state.deferred = tuple(awaiting), tuple(deferred)


def runnable(state: State) -> list[int]:
    """The calls that run now: as many as may run together, or the next one that must run alone."""
    queue = state.queue
    found: list[int] = []
    tools = state.spec.tools
    room = state.spec.limits.max_concurrency
    for position in range(state.first, len(queue)):
        index = queue[position]
        if state.results[index] is not None or index in state.awaiting or index in state.deferred:
            continue
        if state.pausing and index not in state.finishing:
            continue
        if tools[state.calls[index].name].alone:
            return found or [index]
        found.append(index)
        if len(found) == room:
            break
    return found


def detachable(state: State, call_id: str | None = None) -> list[int]:
    """The calls that run, of which one may be named: those that can be asked to detach."""
    if state.at != "execute" or state.paused:
        return []
    return [index for index in runnable(state) if call_id is None or state.calls[index].id == call_id]


def awaits_approval(state: State) -> bool:
    """Whether calls, or the answer, wait for somebody to approve them."""
    return state.at == "approve" or (state.at == "execute" and bool(state.awaiting))


def answer_id(state: State) -> str:
    """What the answer of this turn is called by who approves it: who is late approves no other.

    The loop is in it, since a signal reaches what waits under a loop by its name alone; hashed, since ids of
    loops may be long.
    """
    whose = blake2s(f"{state.loop_id}/{state.attempt}".encode(errors="surrogatepass"), digest_size=5)
    return f"answer-{state.turn}-{whose.hexdigest()}"


def waits_for_results(state: State) -> bool:
    """Whether the loop can go on by nothing but results from outside."""
    return (
        bool(state.deferred)
        and state.at == "execute"
        and not (state.paused or state.awaiting)
        and not runnable(state)
    )


def functions_open(state: State) -> int:
    """How many calls, other than those that carry the output, have no result yet."""
    if not state.outputs:
        return state.open
    return state.open - len([index for index in state.outputs if state.results[index] is None])


def unfinished_once(state: State) -> list[int]:
    """The at_most_once calls that have started, and of which nothing has come."""
    return [n for n in state.once if state.results[n] is None and n not in state.deferred]


def tool_started(state: State, event: ToolStarted) -> None:
    """From here on the call may not start again."""
    state.once = (*state.once, event.index)


def tool_returned(state: State, event: ToolReturned) -> None:
    """One result more; with the last one the turn goes on. A call that is deferred stays open."""
    results, result = state.results, event.result
    if result.status is _DEFERRED:
        state.deferred = (*state.deferred, event.index)
        results_came(state)
        return
    results[event.index] = result
    if event.state is not UNSET:
        _keep_state(state, event)
    state.open -= 1
    if state.deferred:
        state.deferred = tuple([index for index in state.deferred if index != event.index])
    if state.open == 0:
        all_returned(state)
        return
    queue, first = state.queue, state.first
    while first < len(queue) and results[queue[first]] is not None:
        first += 1
    state.first = first
    results_came(state)


def _keep_state(state: State, event: ToolReturned) -> None:
    """From here on the tool's state is another; one that the spec does not know of is not kept."""
    name = state.spec.tools[state.calls[event.index].name].state
    if name is not None:
        if state.turns_tool_state is None or state.turns_tool_state.turn != state.turn:
            state.turns_tool_state = ToolStateBefore(state.turn, state.tool_state)
        state.tool_state = {**(state.tool_state or {}), name: event.state}


def results_came(state: State) -> None:
    """Go on with the turn if all its calls are answered; a pause begins when nothing runs any more."""
    if not functions_open(state):
        all_returned(state)
    elif state.pausing and not runnable(state):
        state.paused = True


def pause(state: State) -> None:
    """A pause was asked for: what runs may finish, nothing new begins."""
    if state.at == "execute":
        state.finishing = tuple(runnable(state))
        state.paused = not state.finishing
    elif state.at == "approve":
        state.paused = True  # nothing runs that could finish
    state.pausing = True


def all_returned(state: State) -> None:
    """All function calls of the turn are answered: settle an output that waits, or close the turn."""
    if state.open:
        move(state, "settle")
        return
    results = state.results
    if (
        len(results) == 1
        and (only := results[0]) is not None
        and only.status is _RETURN
        and not only.stop_loop
    ):
        # The usual turn: one call, which gave something back.
        if state.tool_retries:
            state.tool_retries.pop(only.name, None)
        state.retries = 0
        close_calls(state, 1)
        next_turn(state)
        return
    ran = 0
    stop: ToolResult | None = None
    unknown: ToolResult | None = None
    failure: FlyballError | None = None
    told: list[str] = []
    for index, result in enumerate(results):
        if result is None or index in state.outputs:
            continue
        if result.status is not _RETRY:
            ran += result.status in RAN
            if state.tool_retries:
                state.tool_retries.pop(result.name, None)
            if stop is None and result.stop_loop and result.status is _RETURN:
                stop = result
        elif result.name in state.spec.tools:
            # However often it was called wrongly in one turn: the model has not been told before.
            if result.name not in told:
                told.append(result.name)
                failure = failure or _count_tool_retry(state, result)
        else:
            unknown = result
    close_calls(state, ran)
    if failure is None and not state.outputs:  # an output that was refused has been counted
        if unknown is not None:
            failure = count_retry(state, unknown.text)
        else:
            state.retries = 0
    if failure is not None:
        fail(state, failure)
    elif stop is not None:
        _stopped(state, stop)
    else:
        next_turn(state)


def _stopped(state: State, result: ToolResult) -> None:
    """A tool ended the loop: what it gave is the answer, read and checked as the model's would be."""
    output = state.spec.output
    wrapped = output.outer_key is not None and not result.is_error
    state.answer = as_text({output.outer_key: result.content}) if wrapped else result.text
    if output.checked:
        move(state, "settle")
    else:
        conclude(state)


def _count_tool_retry(state: State, result: ToolResult) -> FlyballError | None:
    """Count a call that the model must make again; the failure if that is once too often in a row."""
    name = result.name
    count = state.tool_retries[name] = state.tool_retries.get(name, 0) + 1
    own = state.spec.tools[name].retries
    allowed = state.spec.retries if own is None else own
    if count <= allowed:
        return None
    return cut_call(state, name) or ToolRetriesExceeded(
        f"the tool {name!r} was called wrongly {count} times in a row ({allowed} retries allowed); "
        f"the model was last told: {result.text[:500]}",
        tool=name,
        allowed=allowed,
    )
