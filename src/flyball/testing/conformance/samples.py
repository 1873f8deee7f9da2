"""Events to test with: one of every kind with all its fields filled, and plain ones in any number."""

from __future__ import annotations

from typing import cast

from msgspec import Struct

from flyball.core.around import Around, Sent
from flyball.core.carried import Carried
from flyball.core.compaction import CompactionPlan, ContextCompaction
from flyball.core.correlation import Correlation
from flyball.core.edits import Edit
from flyball.core.errors import FailureCategory, SystemError  # noqa: A004 - pagantic's name for it
from flyball.core.events import (
    VERSION,
    Admitted,
    AnswerReviewed,
    CallsJudged,
    ChildEnded,
    ChildStarted,
    Delivered,
    Ended,
    Event,
    FlowStarted,
    Forked,
    ModelAnswered,
    ModelFailed,
    Outcome,
    Reopened,
    Resumed,
    SignalReceived,
    Stage,
    StageMoved,
    Started,
    StepEnded,
    TimePassed,
    ToolReturned,
    ToolStarted,
    TurnPrepared,
    TurnSettled,
    Verdict,
)
from flyball.core.flow import FlowNode
from flyball.core.messages import Image, Message, Role, Text, Thinking, ToolCall, ToolResult, assistant, user
from flyball.core.settings import ModelSettings
from flyball.core.signals import Signal, SignalType
from flyball.core.spec import LoopSpec
from flyball.core.tools import ToolChoice, ToolDefinition, ToolSpec
from flyball.core.usage import CallUsage, RunUsage, Usage
from flyball.core.violation import Action, Finding, Severity

_ODD_TEXT = "Ünïcödé ☃ 漢字 🎛️ 'quoted' \"twice\" \\ \0 \n\t\u2028 </script>"
_SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "enum": ["Paris", None, 1.5]}}}
_CALL = ToolCall("call-1", "weather", '{"city": "Paris"}', metadata={"task": [1, {"deep": None}]})
_FOUND = Finding("chain", "pii", _ODD_TEXT, Severity.LOW, Action.REDACTED, 2**40, again=True)
_ERROR = SystemError(
    code="INFERENCE_ENGINE_ERROR",
    category=FailureCategory.INFERENCE,
    message=_ODD_TEXT,
    retryable=True,
    details={"status_code": 503, "body": {"nested": [True, False, None, 0.1]}},
    caused_by="OSError: gone",
    kind="EngineError",
)
_SPEC = LoopSpec(
    agent="forecaster",
    model="test",
    instructions=_ODD_TEXT,
    tools={"weather": ToolSpec(ToolDefinition("weather", _SCHEMA, description=_ODD_TEXT), state="sky")},
)
_ANSWER = Message(
    Role.ASSISTANT,
    (Thinking("hm", signature="c2ln"), Text(_ODD_TEXT), _CALL),
    timestamp=1_700_000_000.123456,
    usage=Usage(input_tokens=2**40, output_tokens=7, details={"audio": 1}),
    model="test",
)


def every_event() -> list[Event]:
    """One event of each kind there is (some twice), with odd texts, numbers and nested values in them."""
    return [
        Started(
            at=1_700_000_000.000001,
            version=VERSION,
            loop_id="loop",
            spec=_SPEC,
            prompt=user([_ODD_TEXT, Image("data:image/png;base64,AA==", mime_type="image/png")]),
            history=(user("before"), assistant("that")),
            correlation=Correlation(request_id="r", trace_id="t", loop_id="loop"),
            metadata={"k": [1, 2.5, None, {"deep": _ODD_TEXT}]},
            parent_loop_id="parent",
            depth=1,
            carried=Carried(
                "before",
                "above",
                3,
                _ODD_TEXT,
                RunUsage(5, requests=3),
                1,
                {"weather": 2},
                {"sky": [_ODD_TEXT]},
            ),
            tool_state={"sky": [1, None, {"deep": _ODD_TEXT}]},
            identity={"did": "did:key:z6Mk", "display_name": _ODD_TEXT, "credentials": [{"type": ["a"]}]},
        ),
        Started(at=0.0, version=VERSION, loop_id="bare", spec=LoopSpec()),
        Forked(
            at=1.0, version=VERSION, loop_id="fork", source="loop", turn=2, spec=_SPEC, prompt=user("else")
        ),
        Resumed(at=2.0, version=VERSION, epoch=3),
        Admitted(at=3.0, instructions=("be brief", _ODD_TEXT), prompt=user("now"), error=_ERROR),
        Admitted(at=3.5, instructions=(_ODD_TEXT,), degraded=("knowledge could not be asked", _ODD_TEXT)),
        TurnPrepared(at=4.0, turn=1, tools=("weather",)),
        TurnPrepared(at=4.5, turn=2, tools=(), error=_ERROR),
        TurnPrepared(at=4.6, turn=3, edits=(Edit(0, 1, (user("else"),)), Edit(2, 4)), notes=(_ODD_TEXT,)),
        TurnPrepared(at=4.7, turn=4, skipped=_ODD_TEXT, passed=("max_turns",)),
        TurnPrepared(at=4.8, turn=5, degraded=(_ODD_TEXT,), relevance=1 / 3),
        TurnPrepared(at=4.8, turn=5, compact=CompactionPlan(3, 9, 2**40)),
        TurnPrepared(at=4.8, turn=5, violations=(_FOUND, _FOUND)),
        TurnPrepared(at=4.9, turn=5, compactions=(ContextCompaction(_ODD_TEXT, 9, 6, 2**40, 7),)),
        ModelAnswered(at=5.0, turn=1, message=_ANSWER, duration=0.25, request_id="m", notes=("a note",)),
        ModelAnswered(at=5.5, turn=1, message=_ANSWER, purpose="repair"),
        ModelAnswered(at=5.5, turn=5, message=_ANSWER, purpose="compact"),
        ModelAnswered(
            at=5.5,
            turn=2,
            message=_ANSWER,
            around=Around(
                (
                    Sent((Edit(0, 1, (user(_ODD_TEXT),)),), ModelSettings(max_tokens=9), by=("cap",)),
                    Sent(by=(_ODD_TEXT, "twice"), times=2),
                    Sent(tools=("weather", ToolDefinition("more", _SCHEMA)), tool_choice=None),
                    Sent(tool_choice=ToolChoice("required"), rest={"grammar": None, "id": _ODD_TEXT}),
                ),
                compactions=(ContextCompaction("overflow", 9, 6, 100, 7, _ODD_TEXT),),
            ),
        ),
        ModelFailed(at=6.0, turn=1, error=_ERROR, partial=assistant("so f"), duration=1e-9),
        ModelFailed(at=6.1, turn=1, error=_ERROR, around=Around(skipped=_ODD_TEXT, fresh=True)),
        AnswerReviewed(at=6.5, turn=1, message=_ANSWER, stop=_ODD_TEXT, notes=("who: why",)),
        AnswerReviewed(at=6.6, turn=1, dropped=_ODD_TEXT, violations=(_FOUND,)),
        CallsJudged(
            at=7.0, turn=1, verdicts=(Verdict(0, allowed=False, reason="no"), Verdict(1, allowed=True))
        ),
        ToolStarted(at=8.0, turn=1, index=0),
        ToolReturned(at=9.0, turn=1, index=0, result=ToolResult("call-1", "weather", {"rain": [0.1, None]})),
        ToolReturned(at=9.5, turn=1, index=1, result=ToolResult("call-2", "weather", error=_ODD_TEXT)),
        ToolReturned(at=9.6, turn=1, index=2, result=ToolResult("call-3", "weather"), state={"sky": [0.5]}),
        ToolReturned(at=9.7, turn=1, index=3, result=ToolResult("call-4", "weather"), state=None),
        TurnSettled(at=10.0, turn=1, accepted=False, feedback=(_ODD_TEXT,), repairs=("comma",)),
        TurnSettled(at=10.1, turn=1, accepted=False, feedback=(_ODD_TEXT,), unread=1),
        TurnSettled(at=10.5, turn=2, accepted=True, index=0, output={"answer": [1, "two"]}),
        TurnSettled(at=10.6, turn=3, accepted=True, output=None),
        TurnSettled(at=10.65, turn=3, accepted=True, index=0, output={"name": "Rome"}, kind="City"),
        TurnSettled(at=10.7, turn=4, accepted=False, feedback=("again",), reflected=_ODD_TEXT),
        StageMoved(at=11.0, stage=Stage.REVIEWING),
        SignalReceived(
            at=12.0, signal=Signal(SignalType.FEEDBACK, id="s", by="ann", text=_ODD_TEXT, call_id="c")
        ),
        ChildStarted(at=12.5, loop_id="child", agent=_ODD_TEXT),
        ChildEnded(
            at=12.6,
            loop_id="child",
            call_id="call-1",
            spent=(CallUsage(12.55, "m", Usage(3, 2), "openai:m"), CallUsage(12.56)),
            requests=3,
        ),
        TimePassed(at=13.0),
        Delivered(at=14.0, error=_ERROR),
        Ended(at=15.0, outcome=Outcome.FAILED, error=_ERROR),
        Reopened(at=16.0, by="ann"),
        FlowStarted(
            at=17.0,
            version=VERSION,
            loop_id="flow",
            flow=FlowNode(
                "pipeline",
                _ODD_TEXT,
                (
                    FlowNode("agent", "writer", retries=2),
                    FlowNode(
                        "redundant", "votes", (FlowNode("agent"),), until=FlowNode("test"), concurrency=1
                    ),
                ),
            ),
            input={"deep": [_ODD_TEXT, None]},
            timeout=1.5,
            max_depth=3,
            identity={"did": "did:key:z6Mk", "display_name": _ODD_TEXT},
        ),
        StepEnded(at=18.0, path="0", output=[_ODD_TEXT], loop_id="flow-s0", usage=RunUsage(1, requests=1)),
        StepEnded(at=19.0, path="1.0", error=_ERROR, attempt=2, duration=0.5),
    ]


def numbered(count: int, first: int = 0) -> list[Event]:
    """Plain events, each telling its number by its time."""
    return [TimePassed(at=float(first + k)) for k in range(count)]


class Unheard(Struct, frozen=True, tag_field="event", tag="unheard_of"):
    """An event of a kind that only a later release has."""

    at: float


def from_a_later_release() -> list[Event]:
    """Events as workers of a later release write them: of a later version, and of a kind not known yet."""
    return [Resumed(at=1.0, version=VERSION + 1, epoch=1), cast("Event", Unheard(at=1.0))]


def long_event(size: int) -> Event:
    """An event that carries a text of this many characters."""
    return ModelAnswered(at=1.0, turn=1, message=assistant("x" * size))
