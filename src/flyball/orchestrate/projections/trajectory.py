"""The way that a loop has gone, as SemStreams keeps it: its model calls and its tool calls, step by step.

Steps are in the order in which they were recorded, and are only ever added to. All that cost tokens is there:
a fork's trajectory begins with what it went on from, and another attempt goes on with that of the first. A
call that never ran, was still running when the loop ended, or whose result never came, is no step.

Where a person approves answers, a step says what was answered once that is approved; until then, and of an
answer that nobody approved, it says what it cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, cast

from msgspec.structs import replace

from flyball.core.errors import JournalCorrupt
from flyball.core.events import (
    AnswerReviewed,
    CallsJudged,
    Event,
    ModelAnswered,
    ModelFailed,
    Outcome,
    ToolReturned,
)
from flyball.core.forms.flat import RAW_ARGUMENTS
from flyball.core.forms.semstreams import (
    StepType,
    Trajectory,
    TrajectoryStep,
    portable_message,
    read_messages,
    read_tool_call,
    write_messages,
    write_tool_call,
)
from flyball.core.messages import Message, ResultKind, Retry, Role, Text, ToolCall
from flyball.core.usage import Usage
from flyball.orchestrate.machine import inference_owed
from flyball.orchestrate.projections.deciding import decided_when
from flyball.orchestrate.projections.tool_calls import arguments_of, calls_to_run
from flyball.orchestrate.replay import steps
from flyball.orchestrate.requests import request_for
from flyball.orchestrate.state import State

Detail = Literal["summary", "full"]


def trajectory(events: Iterable[Event], detail: Detail = "summary") -> Trajectory:
    """The trajectory of a journal; in full it has each request's messages and the calls that were asked for.

    Its totals are those of the loop's usage.

    Raises:
        JournalCorrupt: the events are no journal.
    """
    teller = _Teller(full=detail == "full")
    told: list[TrajectoryStep] = []
    for event, state in steps(events):
        told += teller.told(event, state)
        if state.outcome is Outcome.SUCCESS:
            for number, step in teller.approved():
                told[number] = step
    state = teller.state
    if state is None:
        raise JournalCorrupt("journal: no events")
    gone = Trajectory.new(state.loop_id, teller.began_at).add_steps(*told)
    if teller.decided_at is None:
        return gone
    return gone.complete(str(state.outcome or ""), teller.decided_at)


class _Teller:
    """Goes through a journal, and remembers what the next step will need."""

    def __init__(self, *, full: bool) -> None:
        self._full = full
        self._calls: tuple[ToolCall, ...] = ()
        self._request = self._prompt = ""
        self._messages: tuple[Message, ...] = ()
        self._count = 0
        self._held: list[tuple[int, TrajectoryStep]] = []
        """The steps of the turn that say what may be approved, as they are then, by their numbers."""
        self.state: State | None = None
        self.began_at = 0.0
        self.decided_at: float | None = None

    def told(self, event: Event, state: State) -> Iterator[TrajectoryStep]:
        """The step that an event is, if it is one."""
        if self.state is None:
            self.began_at = event.at
        self.state = state
        if isinstance(event, ModelAnswered | AnswerReviewed | CallsJudged):
            self._calls = calls_to_run(event, self._calls)
        if isinstance(event, ModelAnswered | ModelFailed):
            if event.purpose == "turn":
                self._held = []  # another answer was asked for: what there was, nobody has approved
            step = self._model_call(event, state)
            yield self._shown(step, _without_answer(step, event, state), state)
        elif isinstance(event, ToolReturned) and event.result.status is not ResultKind.DEFERRED:
            step = self._tool_call(event)
            without = replace(step, tool_arguments=None, tool_result="") if event.result.stop_loop else None
            yield self._shown(step, without, state)
        self.decided_at = decided_when(self.decided_at, event, state)
        called = inference_owed(state)
        if called is not None:
            self._request = called.id
            sent = state.history if called.purpose == "turn" else request_for(state, called).messages
            self._prompt = last_said(sent)
            self._messages = tuple(sent) if self._full else ()

    def _shown(self, step: TrajectoryStep, without: TrajectoryStep | None, state: State) -> TrajectoryStep:
        """The step as it may be shown by now; `without` what may be the answer, if it has any of that."""
        number, self._count = self._count, self._count + 1
        if without is None or not state.spec.output.approval:
            return step
        self._held.append((number, step))
        return without

    def approved(self) -> list[tuple[int, TrajectoryStep]]:
        """The steps that say what was approved just now, with it, by their numbers."""
        held, self._held = self._held, []
        return held

    def _model_call(self, event: ModelAnswered | ModelFailed, state: State) -> TrajectoryStep:
        message = event.message if isinstance(event, ModelAnswered) else event.partial
        usage = (message.usage if message is not None else None) or Usage()
        calls = message.tool_calls if message is not None and self._full else ()
        return TrajectoryStep(
            timestamp=event.at,
            step_type=StepType.MODEL_CALL,
            request_id=self._request,
            prompt=self._prompt,
            response=message.text if message is not None else "",
            tokens_in=usage.input_tokens,
            tokens_out=usage.output_tokens,
            duration=round(event.duration * 1000),
            messages=_on_the_wire(self._messages),
            tool_calls=tuple([read_tool_call(write_tool_call(call)) for call in calls]),
            model=(message.model if message is not None else None) or state.spec.served_by(event.purpose)[0],
        )

    def _tool_call(self, event: ToolReturned) -> TrajectoryStep:
        call = self._calls[event.index]
        arguments = arguments_of(call)
        if not isinstance(arguments, dict):
            arguments = {RAW_ARGUMENTS: arguments}
        return TrajectoryStep(
            timestamp=event.at,
            step_type=StepType.TOOL_CALL,
            request_id=self._request,
            tool_name=call.name,
            tool_arguments=cast("dict[str, Any]", arguments) or None,
            tool_result=event.result.text,
            duration=round(event.duration * 1000),
        )


def _without_answer(
    step: TrajectoryStep, event: ModelAnswered | ModelFailed, state: State
) -> TrajectoryStep | None:
    """A model call's step without what may be the loop's answer; None where it has nothing of that."""
    message = event.message if isinstance(event, ModelAnswered) else event.partial
    if message is None or event.purpose == "compact":
        return None
    outputs = [definition.name for definition in state.spec.output.tools]
    others = tuple([call for call in step.tool_calls if call.name not in outputs])
    if message.tool_calls and not any(call.name in outputs for call in message.tool_calls):
        return None
    return replace(step, response="", tool_calls=others)


def last_said(history: Sequence[Message]) -> str:
    """What the user said last: the prompt, feedback, or why to answer again."""
    for message in reversed(history):
        if message.role is Role.USER:
            return _words(message)
    return ""


def _words(message: Message) -> str:
    return "\n\n".join([part.text for part in message.parts if isinstance(part, Text | Retry)])


class LastSaid:
    """`last_said` of a state's history, asked for again and again: it looks only at what is new.

    Of a history that grows only the last message is replaced by another; what was found before is looked
    for anew where it does not stand there any more.
    """

    __slots__ = ("_at", "_found", "_history", "_until")

    def __init__(self) -> None:
        self._history: Sequence[Message] = ()
        self._until = 0
        self._at = 0
        self._found: Message | None = None

    def __call__(self, history: Sequence[Message]) -> str:
        """What the user said last in it."""
        if history is not self._history:
            self._history, self._until, self._found = history, 0, None
        if not self._look(history, max(self._until - 1, 0)) and not self._stands(history):
            self._found = None
            self._look(history, 0)
        self._until = len(history)
        return "" if self._found is None else _words(self._found)

    def _look(self, history: Sequence[Message], first: int) -> bool:
        for index in range(len(history) - 1, first - 1, -1):
            if history[index].role is Role.USER:
                self._at, self._found = index, history[index]
                return True
        return False

    def _stands(self, history: Sequence[Message]) -> bool:
        return self._found is not None and self._at < len(history) and history[self._at] is self._found


def _on_the_wire(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Messages as the wire holds them: flat, and with a word in the place of what it cannot hold."""
    return read_messages(write_messages([portable_message(message) for message in messages]))
