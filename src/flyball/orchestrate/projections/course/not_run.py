"""The tool calls that are answered without being run: unknown ones, forbidden ones, those not needed."""

from __future__ import annotations

from collections.abc import Iterator

from flyball.core.events import AnswerReviewed, Event, ModelAnswered
from flyball.core.messages import ToolCall
from flyball.orchestrate.projections.course.step import SHOWN, CourseStep, StepKind
from flyball.orchestrate.projections.shortened import one_line
from flyball.orchestrate.state import State


class NotRun:
    """Finds them as a loop is folded. They are in no event of their own: the machine answers them itself."""

    def __init__(self) -> None:
        self.begun: set[str] = set()
        """The ids of the calls that were begun."""
        self._asked: dict[str, tuple[ToolCall, int]] = {}
        self._heard = -1

    def steps(self, event: Event, state: State) -> Iterator[CourseStep]:
        """The calls that have their answer with this event, which was folded, and were never begun."""
        if self._heard < 0:
            self._heard = len(state.history)  # what was said before it began is none of its own
        said = state.history[self._heard :]
        self._heard = len(state.history)
        output = {definition.name for definition in state.spec.output.tools} if said else ()
        for message in said:
            if isinstance(event, ModelAnswered | AnswerReviewed):
                calls = [call for call in message.tool_calls if call.name not in output]
                self._asked |= {call.id: (call, event.turn) for call in calls}
            for result in message.tool_results:
                call, turn = self._asked.pop(result.call_id, (None, 0))
                if call is not None and call.id not in self.begun:
                    about = f"{one_line(call.args_json, SHOWN)} → {one_line(result.text, SHOWN)}"
                    kind = StepKind.NOT_RUN
                    yield CourseStep(event.at, kind, call.name, about, ok=False, turn=turn, call_id=call.id)
