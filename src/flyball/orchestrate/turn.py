"""A turn: from the model's answer over its tool calls to the next turn, or to the end.

Part of the machine, and as pure. The order within a turn:

    ModelAnswered ── [review] ── dropped, or the last one ────────> the next turn, or the end
          │
          ├── no calls ── text that counts ───────────────────────> the end
          │            ├── text that must be checked ─────────────> settle
          │            └── nothing, or not what was asked ────────> asked again
          └── calls ── unknown ones are answered at once
                   ├── an output among them (strategy early) ─────> settle, then what is left
                   ├── there are filters, or some need a judge ───> judge
                   └── execute ... the last returned ─────────────> settle, or the next turn

    TurnSettled ── accepted ──────────────────────────────────────> the end
          ├── it could not be read, and a model may repair it ────> repair, then settle; once a turn
          └── else ───────────────────────────────────────────────> what is left, or asked again
"""

from __future__ import annotations

from msgspec import UNSET

from flyball.core.encodable import as_text
from flyball.core.errors import (
    ContentFilterError,
    FlyballError,
    IncompleteToolCall,
    RunConditionError,
    ToolRetriesExceeded,
    UnexpectedModelBehavior,
)
from flyball.core.events import (
    AnswerReviewed,
    CallsJudged,
    ModelAnswered,
    ModelFailed,
    Outcome,
    ToolReturned,
    ToolStarted,
    TurnPrepared,
    TurnSettled,
)
from flyball.core.messages import FinishReason, Message, ResultKind, Retry, Text, ToolCall, ToolResult
from flyball.core.usage import CallUsage
from flyball.orchestrate.circles import going_round
from flyball.orchestrate.moves import (
    RAN,
    ask_again,
    close_calls,
    conclude,
    count_retry,
    deny,
    end,
    fail,
    move,
    next_turn,
    say,
)
from flyball.orchestrate.reaching import reach
from flyball.orchestrate.sending import send
from flyball.orchestrate.state import State, ToolStateBefore

_RETRY, _DEFERRED = ResultKind.RETRY, ResultKind.DEFERRED


def turn_prepared(state: State, event: TurnPrepared) -> None:
    """The tools on offer are known, and what is sent. A turn that is skipped counts all the same."""
    if event.error is not None:
        fail(state, event.error)
    elif event.skipped:
        state.iterations += 1
        next_turn(state)
    else:
        state.offered = event.tools
        state.definitions = event.definitions
        send(state, event.edits)
        move(state, "infer")


# The answer


def model_failed(state: State, event: ModelFailed) -> None:
    """The call failed for good: whatever could be tried again was, inside the effect."""
    partial = event.partial
    if (event.around is not None or state.reached is not None) and event.purpose == "turn":
        reach(state, event.around)
    state.usage = state.usage.add_request(None if partial is None else partial.usage)
    if partial is not None and partial.usage is not None:
        model, provider = state.spec.served_by(event.purpose)
        state.spent.append(CallUsage(event.at, partial.model, partial.usage, model, provider))
    if event.purpose == "repair":
        _not_mended(state)
    else:
        fail(state, event.error)


def model_answered(state: State, event: ModelAnswered) -> None:
    """The model has answered: it is looked at first, if somebody wants to, and then taken."""
    message, spec = event.message, state.spec
    if (event.around is not None or state.reached is not None) and event.purpose == "turn":
        reach(state, event.around)
    state.usage = state.usage.add_request(message.usage)
    if event.purpose == "repair":
        model, provider = spec.served_by("repair")
        state.spent.append(CallUsage(event.at, message.model, message.usage, model, provider))
        _mended(state, message)
        return
    state.spent.append(CallUsage(event.at, message.model, message.usage, spec.model, spec.provider))
    state.iterations += 1
    if spec.reviews:
        state.reviewing = message
        move(state, "review")
    else:
        _take_answer(state, message)


def answer_reviewed(state: State, event: AnswerReviewed) -> None:
    """The answer is taken as it is now, or dropped; or it is the last one."""
    message, state.reviewing = event.message or state.reviewing, None
    assert message is not None, "a review is of an answer"
    if event.error is not None:
        fail(state, event.error)
    elif event.dropped:
        next_turn(state)
    elif event.stop:
        _stop_with(state, message, event.stop)
    else:
        _take_answer(state, message)


def _take_answer(state: State, message: Message) -> None:
    """The answer joins the history; then it is an answer, or a wish for tools."""
    parts = message.parts
    if len(parts) == 1 and type(parts[0]) is Text:
        text = parts[0].text  # the usual answer
    else:
        usual = len(parts) == 1 and type(parts[0]) is ToolCall
        calls: tuple[ToolCall, ...] = parts if usual else message.tool_calls  # pyright: ignore[reportAssignmentType]
        if calls:
            state.history.append(message)
            _asked(state, calls)
            return
        text = message.text
    breach = state.spec.limits.after_answer(state.usage, 0)
    if text:
        state.history.append(message)
    if breach is not None:
        fail(state, breach)
    elif text:
        _answered(state, text)
    else:
        _said_nothing(state, message)


def _stop_with(state: State, message: Message, reason: str) -> None:
    """A condition ends the run: with this answer if it can be one, else with the reason. No call runs."""
    output, calls = state.spec.output, message.tool_calls
    if message.text or calls:
        state.history.append(message)
    if calls:
        _note_calls(state, calls)
    breach = state.spec.limits.after_answer(state.usage, 0)
    if breach is not None:
        fail(state, breach)
    elif not state.outputs and not (output.allows_text and message.text):
        fail(state, _stopped_by(reason))
    elif output.checked:
        state.stopping = reason
        move(state, "settle")
    else:
        state.answer = message.text
        end(state, Outcome.SUCCESS)


def _stopped_by(reason: str) -> RunConditionError:
    return RunConditionError(f"the run was stopped before it had an answer: {reason}", reason=reason)


def _answered(state: State, text: str) -> None:
    output = state.spec.output
    if not output.allows_text:
        names = " or ".join([definition.name for definition in output.tools])
        ask_again(state, f"Answer by calling {names}; plain text is not an answer here.")
    elif output.checked:
        move(state, "settle")
    else:
        state.answer = text
        if state.feedback:
            conclude(state)
        else:
            end(state, Outcome.SUCCESS)


def _said_nothing(state: State, message: Message) -> None:
    """No text and no calls. It does not join the history: no provider takes an empty message back."""
    if message.finish_reason is FinishReason.LENGTH:
        failure: FlyballError = UnexpectedModelBehavior(
            "the model used up its tokens before it answered: raise max_tokens or shorten the prompt",
            body=message.thinking[-500:],
        )
        fail(state, failure)
    elif message.finish_reason is FinishReason.CONTENT_FILTER:
        fail(state, ContentFilterError("the provider's content filter stopped the answer"))
    else:
        ask_again(state, "The answer was empty. Answer the request.")


# The calls


def _asked(state: State, calls: tuple[ToolCall, ...]) -> None:
    """Sort the calls, answer those that cannot run, and go on to what comes first."""
    spec = state.spec
    results = _note_calls(state, calls)
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
        if _runs_at_once(state, calls[0]):
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
        _to_execution(state)


def _note_calls(state: State, calls: tuple[ToolCall, ...]) -> list[ToolResult | None]:
    """The turn has these calls, none of which is answered; gives the list for their results."""
    for call in calls:
        state.ids.add(call.id)
    state.calls = calls
    state.open = len(calls)
    results: list[ToolResult | None] = [None] * len(calls)
    state.results = results
    definitions = state.spec.output.tools
    if not definitions:
        pass
    elif len(calls) == 1 and calls[0].name == definitions[0].name:
        state.outputs = (0,)
    else:
        names = [definition.name for definition in definitions]
        state.outputs = tuple([index for index, call in enumerate(calls) if call.name in names])
    return results


def _runs_at_once(state: State, call: ToolCall) -> bool:
    tool = state.spec.tools.get(call.name)
    return (
        tool is not None
        and not tool.approval
        and not state.spec.filters
        and (state.offered is None or call.name in state.offered)
    )


def _unknown(state: State, call: ToolCall) -> ToolResult:
    names = state.offered if state.offered is not None else tuple(state.spec.tools)
    known = ", ".join((*names, *(definition.name for definition in state.spec.output.tools)))
    there_are = f"The tools are: {known}." if known else "There are no tools."
    return ToolResult(
        call.id,
        call.name,
        f"There is no tool {call.name!r}. {there_are}",
        status=_RETRY,
        metadata={"code": "TOOL_NOT_FOUND"},
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
    _to_execution(state)


def _to_execution(state: State) -> None:
    """Go to the calls that are still to run, or past them if there are none."""
    if state.open and functions_open(state):
        _line_up(state)
        move(state, "execute")
    else:
        all_returned(state)


def _line_up(state: State) -> None:
    """Put the calls that are to run in order; those that no judge decides about wait for a person."""
    tools = state.spec.tools
    together: list[int] = []
    alone: list[int] = []
    awaiting: list[int] = []
    for index, result in enumerate(state.results):
        if result is None and index not in state.outputs:
            tool = tools[state.calls[index].name]
            (alone if tool.alone else together).append(index)
            if tool.approval and not state.spec.judges:
                awaiting.append(index)
    state.queue, state.first = (*together, *alone), 0
    state.awaiting = tuple(awaiting)


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
    results, queue, first = state.results, state.queue, state.first
    if event.result.status is _DEFERRED:
        state.deferred = (*state.deferred, event.index)
        results_came(state)
        return
    results[event.index] = event.result
    if event.state is not UNSET:
        _keep_state(state, event)
    state.open -= 1
    if state.deferred:
        state.deferred = tuple([index for index in state.deferred if index != event.index])
    if state.open == 0:
        all_returned(state)
        return
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
    state.pausing = True


def all_returned(state: State) -> None:
    """All function calls of the turn are answered: settle an output that waits, or close the turn."""
    if state.open:
        move(state, "settle")
        return
    ran = 0
    stop: ToolResult | None = None
    unknown: ToolResult | None = None
    failure: FlyballError | None = None
    told: list[str] = []
    for index, result in enumerate(state.results):
        if result is None or index in state.outputs:
            continue
        if result.status is not _RETRY:
            ran += result.status in RAN
            if state.tool_retries:
                state.tool_retries.pop(result.name, None)
            if stop is None and result.stop_loop and result.status is ResultKind.RETURN:
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
    return ToolRetriesExceeded(
        f"the tool {name!r} was called wrongly {count} times in a row ({allowed} retries allowed); "
        f"the model was last told: {result.text[:500]}",
        tool=name,
        allowed=allowed,
    )


# The output


def turn_settled(state: State, event: TurnSettled) -> None:
    """The answer was looked at: it counts, or the model reads why not."""
    if event.accepted and event.error is None:
        _accepted(state, event)
    elif event.unread is not None and _may_be_mended(state):
        state.unread = event
        move(state, "repair")
    elif state.mended is not None and event.unread is not None:
        _not_mended(state)
    else:
        state.mended = None
        _not_accepted(state, event)


def _not_accepted(state: State, event: TurnSettled) -> None:
    if event.error is not None:
        fail(state, event.error)
    elif event.reflected:
        _reflected(state, event.feedback[0])
    elif state.stopping:
        fail(state, _stopped_by(state.stopping))
    elif state.answer is not None:
        state.answer = None
        ask_again(state, event.feedback[0])
    elif state.outputs:
        _refused(state, event.feedback)
    else:
        ask_again(state, event.feedback[0])


def _may_be_mended(state: State) -> bool:
    """Whether a model may be asked to put an answer right: once a turn, and within the limits."""
    return (
        state.unread is None
        and state.spec.output.repairer is not None
        and not state.stopping
        and state.spec.limits.before_request(state.usage, 0) is None
    )


def _mended(state: State, message: Message) -> None:
    """A model has put the answer right, as far as it can be told: it is settled in its place."""
    breach = state.spec.limits.after_answer(state.usage, 0)
    reason = message.finish_reason
    if breach is not None:
        fail(state, breach)
    elif not message.text or (reason is not None and reason.cut_short):
        _not_mended(state)
    else:
        state.mended = message.text
        move(state, "settle")


def _not_mended(state: State) -> None:
    """The repair came to nothing: it goes on as if there had been none."""
    state.mended = None
    assert state.unread is not None, "a repair is of what was unreadable"
    _not_accepted(state, state.unread)


def _accepted(state: State, event: TurnSettled) -> None:
    state.output = event.output
    mended, state.mended = state.mended, None
    state.objection = event.reflected
    if state.answer is not None:
        state.answer = mended or state.answer  # a tool gave it
    elif event.index is None:
        state.answer = mended or state.history[-1].text
    else:
        answer = state.calls[event.index]
        state.answer, state.answer_tool = mended or answer.args_json, answer.name
        for index in state.outputs:
            call = state.calls[index]
            if index == event.index:
                result = ToolResult(call.id, call.name, "Final result processed.")
            else:
                text = "Not used: another final result was taken."
                result = ToolResult(call.id, call.name, text, status=ResultKind.SKIPPED)
            state.results[index] = result
            state.open -= 1
    if state.feedback:
        conclude(state)
    else:
        end(state, Outcome.SUCCESS)


def _refused(state: State, feedback: tuple[str, ...]) -> None:
    """No output call could be taken: each is answered with what is wrong with it; the others still run."""
    _answer_outputs(state, feedback)
    failure = count_retry(state, feedback[0])
    if failure is not None:
        fail(state, failure)
    else:
        _to_the_others(state)


def _reflected(state: State, feedback: str) -> None:
    """A valid output is sent back, to be made better. That is no retry: the model got nothing wrong."""
    state.reflections += 1
    state.retries = 0
    if state.outputs and state.answer is None:
        _answer_outputs(state, (feedback,))
        _to_the_others(state)
    else:
        state.answer = None
        say(state, (Retry(feedback),))
        next_turn(state)


def _answer_outputs(state: State, feedback: tuple[str, ...]) -> None:
    """Answer the calls that carry the output with what is wrong with each."""
    for number, index in enumerate(state.outputs):
        call = state.calls[index]
        text = feedback[min(number, len(feedback) - 1)]
        state.results[index] = ToolResult(call.id, call.name, text, status=_RETRY)
        state.open -= 1


def _to_the_others(state: State) -> None:
    """Go on to the turn's calls that do not carry the output."""
    if needs_judging(state):
        move(state, "judge")
    else:
        _to_execution(state)
