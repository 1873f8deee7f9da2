"""RunTrace: a run, step by step, with times and durations: what exporters write. Its JSON is gollem's.

Steps are in the order in which they happened, and only ever added to. A request or call that nothing came of
was made again after a crash, or was under way when the run ended.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from msgspec import Struct, json

from flyball.core.forms.fields import Fields, decoded, malformed
from flyball.core.forms.gollem import read_run_usage, write_run_usage
from flyball.core.forms.times import ZERO_TIME, seconds, stamp
from flyball.core.messages import JSON
from flyball.core.usage import RunUsage

_NANOSECONDS = 1_000_000_000


class TraceStepKind(StrEnum):
    """What a step is: gollem's five."""

    MODEL_REQUEST = "model_request"
    MODEL_RESPONSE = "model_response"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    GUARDRAIL = "guardrail"


class TraceStep(Struct, frozen=True, repr_omit_defaults=True):
    """One step. `duration` is in seconds, and 0 of what only began. `data` is JSON, by kind.

    - model_request: turn, request_id, purpose, prompt (what the user said last), messages (how many).
    - model_response: turn, request_id, purpose, text, tool_calls (id, name, args_json), model, usage, error.
    - tool_call: turn, tool_call_id, tool_name, args_json.
    - tool_result: turn, tool_call_id, tool_name, result (what the model reads), error.
    - guardrail: turn, name, passed, error.
    """

    kind: TraceStepKind
    timestamp: float
    duration: float = 0.0
    data: Any = None


class RunTrace(Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """A run's trace. Times are seconds since the epoch, `duration` is in seconds.

    A fork's begins with what it went on from, as its usage does.
    """

    run_id: str
    prompt: str = ""
    start_time: float | None = None
    end_time: float | None = None
    duration: float = 0.0
    steps: tuple[TraceStep, ...] = ()
    usage: RunUsage = RunUsage()
    success: bool = False
    error: str = ""

    def to_json(self) -> bytes:
        """The trace in gollem's JSON: times as RFC 3339, durations in nanoseconds.

        Raises:
            InvalidMessage: a time is none.
        """
        document: dict[str, JSON] = {
            "run_id": self.run_id,
            "prompt": self.prompt,
            "start_time": stamp(self.start_time),
            "end_time": stamp(self.end_time),
            "duration": _whole(self.duration),
            "steps": [
                {
                    "kind": str(step.kind),
                    "timestamp": stamp(step.timestamp),
                    "duration": _whole(step.duration),
                    "data": step.data,
                }
                for step in self.steps
            ],
            "usage": write_run_usage(self.usage),
            "success": self.success,
        }
        if self.error:
            document["error"] = self.error
        return json.encode(document)

    @classmethod
    def from_json(cls, data: bytes | str) -> RunTrace:
        """A trace from gollem's JSON.

        Raises:
            InvalidMessage: it is none; it says where it is wrong.
        """
        fields = Fields(decoded(data, "trace"), "trace")
        usage = fields.any("usage")
        return cls(
            run_id=fields.text("run_id"),
            prompt=fields.text("prompt"),
            start_time=_moment(fields, "start_time"),
            end_time=_moment(fields, "end_time"),
            duration=(fields.whole("duration") or 0) / _NANOSECONDS,
            steps=tuple([_step(step, place) for step, place in fields.items("steps")]),
            usage=RunUsage() if usage is None else read_run_usage(usage),
            success=fields.flag("success") or False,
            error=fields.text("error"),
        )


def _whole(duration: float) -> int:
    return round(duration * _NANOSECONDS)


def _moment(fields: Fields, key: str) -> float | None:
    return seconds(fields.text(key) or ZERO_TIME, fields.place(key))


def _step(value: JSON, place: str) -> TraceStep:
    fields = Fields(value, place)
    kind = fields.text("kind")
    if kind not in list(TraceStepKind):
        raise malformed(fields.place("kind"), f"one of {', '.join(TraceStepKind)}", kind)
    return TraceStep(
        TraceStepKind(kind),
        _moment(fields, "timestamp") or 0.0,
        (fields.whole("duration") or 0) / _NANOSECONDS,
        fields.any("data"),
    )
