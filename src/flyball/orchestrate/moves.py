"""The moves of a loop: to the next turn, to another try, to the end; and what they say in the history.

Part of the machine, and as pure. Every move leaves the state such that `owed` can tell what comes next.
"""

from __future__ import annotations

from msgspec import UNSET
from msgspec.structs import replace

from flyball.core.errors import (
    FlyballError,
    IncompleteToolCall,
    SystemError,  # noqa: A004 - pagantic's name for it
    UnexpectedModelBehavior,
)
from flyball.core.events import Outcome
from flyball.core.messages import (
    FinishReason,
    Message,
    Part,
    ResultKind,
    Retry,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from flyball.orchestrate.state import Position, State

_SYSTEM, _USER, _ASSISTANT, _TOOL = Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL
RAN = frozenset({ResultKind.RETURN, ResultKind.INTERRUPTED, ResultKind.DEFERRED})
SUCCESS = Outcome.SUCCESS  # looked up once: an enum takes its time over that
"""What became of calls that count as tool calls made."""


# Where to


def move(state: State, position: Position) -> None:
    """Go to a position within the turn. Here a pause that was asked for begins."""
    state.at = position
    if state.pausing:
        state.paused = True


def next_turn(state: State) -> None:
    """Begin the next turn, if the limits allow one more model call."""
    if state.calls:
        state.calls, state.results, state.queue = (), [], ()
        # Most turns have none of these, and to look is cheaper than to set.
        if state.outputs or state.once or state.awaiting or state.deferred:
            state.outputs = state.once = state.awaiting = state.deferred = ()
        if state.detached or state.finishing or state.arguments is not None:
            state.detached = state.finishing = ()
            state.arguments = None
    if state.unread is not None:
        state.unread = state.mended = None
    if state.feedback:
        say(state, tuple([Text(text) for text in state.feedback]))
        state.feedback = ()
    spec = state.spec
    breach = spec.limits.before_request(state.usage, state.iterations)
    if breach is not None:
        fail(state, breach)
        return
    state.turn += 1
    if spec.prepares:
        state.offered, state.definitions = None, ()
        state.at = "prepare"
    else:
        state.at = "infer"
    if state.pausing:
        state.paused = True


def ask_again(state: State, feedback: str, error: SystemError | None = None) -> None:
    """The answer could not be taken: say why, and have another turn if there are retries left.

    `error` is what the run then fails with, where that is known better than by the feedback alone.
    """
    failure = count_retry(state, feedback)
    if failure is not None:
        fail(state, error or failure)
        return
    say(state, (Retry(feedback),))
    next_turn(state)


def count_retry(state: State, feedback: str) -> FlyballError | None:
    """Count one more answer that could not be taken; the failure if that is one too many in a row."""
    state.retries += 1
    if state.retries <= state.spec.retries:
        return None
    if (unfinished := cut_call(state)) is not None:
        return unfinished
    said = state.history[-1].finish_reason if state.history else None
    cut = " The last was cut off at its limit of tokens: raise max_tokens." if said == "length" else ""
    return UnexpectedModelBehavior(
        f"no acceptable answer after {state.spec.retries} retries.{cut} "
        f"The last feedback was: {feedback[:500]}",
        allowed=state.spec.retries,
        feedback=feedback[:2000],
    )


def cut_call(state: State, tool: str | None = None) -> IncompleteToolCall | None:
    """The failure of a model that had no tokens left for its last call, which may be that of one tool."""
    answer = next((message for message in reversed(state.history) if message.role is _ASSISTANT), None)
    if answer is None or answer.finish_reason is not FinishReason.LENGTH or not answer.tool_calls:
        return None
    call = answer.tool_calls[-1]
    if tool is not None and call.name != tool:
        return None
    try:
        _ = call.arguments
    except IncompleteToolCall:
        return IncompleteToolCall(
            f"the model used up its tokens in a call of {call.name!r}, again and again: raise max_tokens, or "
            f"have it say less. The call ends with: {call.args_json[-200:]!r}",
            tool=call.name,
            body=call.args_json[-2000:],
        )
    return None


def conclude(state: State) -> None:
    """End with the answer that is there; but first let the model read what somebody has told it meanwhile,
    and a person approve it, where one must.
    """
    if state.feedback and may_go_on(state):
        take_back(state, "Not run: there is feedback to read first.")
        next_turn(state)
    elif state.spec.output.approval:
        move(state, "approve")
    else:
        end(state, SUCCESS)


def may_go_on(state: State) -> bool:
    """Whether the limits allow one more model call."""
    return state.spec.limits.before_request(state.usage, state.iterations) is None


def take_back(state: State, why: str) -> None:
    """The answer that is there is none after all; calls that it left open are answered with why."""
    answer_open_calls(state, why)
    state.answer = state.answer_tool = None
    state.output, state.output_kind = UNSET, ""


def fail(state: State, error: FlyballError | SystemError) -> None:
    """End with an error."""
    state.error = error.record() if isinstance(error, FlyballError) else error
    end(state, Outcome.FAILED)


def end(state: State, outcome: Outcome) -> None:
    """Decide the outcome. Calls that are still open are answered, so that the history stays valid."""
    waited = state.at == "approve" and outcome is not SUCCESS
    if waited:
        take_back(state, "Not run: the answer was not approved.")
    state.outcome = outcome
    if not state.calls:
        pass
    elif outcome is SUCCESS:
        answer_open_calls(state, "Not run: the final result was already there.")
    else:
        why = state.error.message if state.error is not None else "the run ended"
        answer_open_calls(state, f"Not finished: {why}")
    if waited or (outcome is not SUCCESS and state.spec.output.approval and _has_answered(state)):
        # Nobody was given it: whoever goes on from here reads that behind it, as after a refusal.
        say(state, (Retry("The answer was not approved before the run ended: nobody was given it."),))
    if state.awaiting or state.deferred or state.detached:
        state.awaiting = state.deferred = state.detached = ()
    if state.pausing or state.paused:
        state.pausing = state.paused = False
    state.at = "deliver" if state.spec.delivers else "end"


def _has_answered(state: State) -> bool:
    """Whether the history ends with what the model has answered in this run."""
    asked = state.at in ("prepare", "compact", "review") or not state.turn
    return not asked and state.history[-1].role is _ASSISTANT


# The turn's calls


def close_calls(state: State, ran: int) -> None:
    """Move the results of the turn's calls, which are all there, into the history; `ran` of them ran."""
    state.history.append(Message(_TOOL, tuple(state.results)))  # pyright: ignore[reportArgumentType]
    if ran:
        state.usage = state.usage.add_tool_calls(ran)


def answer_open_calls(state: State, text: str) -> None:
    """Answer the turn's calls that have no result, and move them all into the history."""
    if not state.calls or state.history[-1].role is not _ASSISTANT:
        return
    if state.open:
        state.results = [
            result or _unfinished(state, index, text) for index, result in enumerate(state.results)
        ]
        state.open = 0
    if len(state.outputs) == len(state.calls):
        state.history.append(Message(_TOOL, tuple(state.results)))  # pyright: ignore[reportArgumentType]
    else:
        close_calls(state, _how_many_ran(state))


def _how_many_ran(state: State) -> int:
    """How many of the turn's calls, which are all answered, ran; those that carry the output do not count."""
    ran = [index for index, result in enumerate(state.results) if result and result.status in RAN]
    return len([index for index in ran if index not in state.outputs])


def deny(state: State, index: int, reason: str) -> None:
    """Answer a call that may not run."""
    call = state.calls[index]
    text = f"The call was not allowed: {reason}" if reason else "The call was not allowed."
    state.results[index] = ToolResult(call.id, call.name, error=text, status=ResultKind.DENIED)
    state.awaiting = tuple([waiting for waiting in state.awaiting if waiting != index])
    state.open -= 1


def interrupted(call: ToolCall) -> ToolResult:
    """The answer to a call that had started, may not start again, and never answered."""
    return ToolResult(
        call.id,
        call.name,
        error="interrupted: it had started when the run was stopped, and may or may not have had its effect",
        status=ResultKind.INTERRUPTED,
    )


def _unfinished(state: State, index: int, text: str) -> ToolResult:
    call = state.calls[index]
    if index in state.deferred:
        return ToolResult(call.id, call.name, error=text, status=ResultKind.DEFERRED)
    if index in state.once:
        return interrupted(call)
    return ToolResult(call.id, call.name, error=text, status=ResultKind.SKIPPED)


# The history


def instruct(state: State, instructions: tuple[str, ...], *, more: bool = False) -> None:
    """Set the leading system message; with `more`, add to what it says. Without any text it stays."""
    parts: tuple[Part, ...] = tuple([Text(text) for text in instructions if text])
    if not parts:
        return
    history = state.history
    state.sent = None
    if history and history[0].role is _SYSTEM:
        told = Message(_SYSTEM, (*history[0].parts, *parts) if more else parts)
        if told == history[0]:
            return
        history[0] = told
    else:
        history.insert(0, Message(_SYSTEM, parts))
    state.compaction = None  # what was summed up was said under other instructions


def say(state: State, parts: tuple[Part, ...]) -> None:
    """Add to what the user says; nobody speaks twice in a row."""
    history = state.history
    if history and history[-1].role is _USER:
        state.sent = None
        history[-1] = replace(history[-1], parts=(*history[-1].parts, *parts))
    else:
        history.append(Message(_USER, parts))


def replace_prompt(state: State, prompt: Message) -> None:
    """Put another prompt in the place of the one that the loop began with."""
    state.sent = state.compaction = None
    last = state.history[-1]
    before = len(last.parts) - (len(state.prompt.parts) if state.prompt is not None else 0)
    state.history[-1] = replace(last, parts=(*last.parts[:before], *prompt.parts))
    state.prompt = prompt
