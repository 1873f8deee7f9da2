"""Hypothesis strategies for the vocabulary: JSON, messages, specs, and every event and effect.

All that they make can be encoded; what is drawn is small, because it is the shapes that matter.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec import UNSET

from flyball.core import effects, events
from flyball.core.around import Around, Sent
from flyball.core.carried import Carried
from flyball.core.compaction import CompactionPlan, ContextCompaction
from flyball.core.correlation import Correlation
from flyball.core.edits import Edit
from flyball.core.errors import FailureCategory, SystemError  # noqa: A004 - pagantic's name for it
from flyball.core.flow import COMPOSED, FlowNode
from flyball.core.limits import Limits, UsageLimits, UsageQuota
from flyball.core.messages import (
    Audio,
    Document,
    FinishReason,
    Image,
    Message,
    Part,
    ResultKind,
    Retry,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from flyball.core.settings import ModelSettings
from flyball.core.signals import Signal, SignalType
from flyball.core.spec import CompactSpec, LoopSpec, OutputMode, OutputSpec, RepairSpec
from flyball.core.tools import Safety, ToolChoice, ToolDefinition, ToolKind, ToolSpec
from flyball.core.usage import CallUsage, RunUsage, Usage

texts = st.text(max_size=12)
names = st.text(st.characters(categories=("L", "N")), min_size=1, max_size=6)
counts = st.integers(0, 1 << 40)
finite = st.floats(allow_nan=False, allow_infinity=False)
moments = st.floats(1e9, 4e9)
"""Seconds since the epoch, in the years that matter."""

scalars: SearchStrategy[Any] = st.none() | st.booleans() | st.integers() | finite | texts
json_values: SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
json_objects: SearchStrategy[dict[str, Any]] = st.dictionaries(texts, json_values, max_size=3)
filled_objects: SearchStrategy[dict[str, Any]] = st.dictionaries(texts, json_values, min_size=1, max_size=3)
extras: SearchStrategy[dict[str, Any] | None] = st.none() | filled_objects


def maybe(strategy: SearchStrategy[Any]) -> SearchStrategy[Any]:
    """None, or what the strategy gives."""
    return st.none() | strategy


usages = st.builds(
    Usage,
    input_tokens=counts,
    output_tokens=counts,
    reasoning_tokens=counts,
    cache_read_tokens=counts,
    cache_write_tokens=counts,
    context_tokens=counts,
    context_window=counts,
    tokens_per_second=st.floats(0, 1e6),
    details=maybe(st.dictionaries(names, counts, min_size=1, max_size=3)),
)
call_usages = st.builds(
    CallUsage,
    at=moments,
    model=maybe(names),
    usage=maybe(usages),
    asked=names,
    provider=names,
)
run_usages = st.builds(
    RunUsage,
    input_tokens=counts,
    output_tokens=counts,
    reasoning_tokens=counts,
    cache_read_tokens=counts,
    cache_write_tokens=counts,
    context_tokens=counts,
    context_window=counts,
    tokens_per_second=st.floats(0, 1e6),
    details=maybe(st.dictionaries(names, counts, min_size=1, max_size=3)),
    requests=st.integers(0, 1000),
    tool_calls=st.integers(0, 1000),
)

text_parts = st.builds(Text, texts, extras)
thinking_parts = st.builds(Thinking, texts, maybe(texts), extras, extras)
tool_calls = st.builds(ToolCall, names, names, texts, extras, extras, maybe(names), maybe(names), extras)
image_parts = st.builds(Image, texts, maybe(texts), st.sampled_from([None, "auto", "low", "high"]), extras)
audio_parts = st.builds(Audio, texts, maybe(texts), extras)
document_parts = st.builds(Document, texts, maybe(texts), maybe(texts), extras)
retry_parts = st.builds(Retry, texts, extras)
tool_results = st.builds(
    ToolResult,
    call_id=names,
    name=names,
    content=json_values,
    error=maybe(texts),
    status=st.sampled_from(ResultKind),
    images=st.lists(image_parts, max_size=1).map(tuple),
    metadata=extras,
    stop_loop=st.booleans(),
    loop_id=maybe(names),
    trace_id=maybe(names),
    extra=extras,
)

PARTS: dict[Role, SearchStrategy[Part]] = {
    Role.SYSTEM: text_parts,
    Role.USER: text_parts | retry_parts | image_parts | audio_parts | document_parts,
    Role.ASSISTANT: text_parts | thinking_parts | tool_calls | image_parts | audio_parts,
    Role.TOOL: tool_results,
}
"""What each role may carry."""


def messages_of(role: Role) -> SearchStrategy[Message]:
    """Valid messages of a role."""
    return st.builds(
        Message,
        role=st.just(role),
        parts=st.lists(PARTS[role], min_size=1, max_size=3).map(tuple),
        name=maybe(names),
        timestamp=maybe(moments),
        usage=maybe(usages),
        model=maybe(names),
        finish_reason=maybe(st.sampled_from(FinishReason)),
        extra=extras,
    )


messages = st.one_of([messages_of(role) for role in Role])

errors = st.builds(
    SystemError,
    code=names,
    category=st.sampled_from(FailureCategory),
    message=texts,
    retryable=st.booleans(),
    details=extras,
    caused_by=maybe(texts),
    kind=texts,
)
settings = st.builds(
    ModelSettings,
    max_tokens=maybe(counts),
    temperature=maybe(st.floats(0, 2)),
    top_p=maybe(st.floats(0, 1)),
    seed=maybe(counts),
    stop=st.lists(texts, max_size=2).map(tuple),
    thinking=maybe(st.booleans()),
    thinking_budget=maybe(counts),
    reasoning_effort=maybe(texts),
    options=maybe(json_objects),
)
definitions = st.builds(
    ToolDefinition,
    name=names,
    parameters=json_objects,
    description=texts,
    kind=st.sampled_from(ToolKind),
    strict=maybe(st.booleans()),
    sequential=st.booleans(),
    outer_key=maybe(names),
    extra=extras,
)
choices = st.builds(
    ToolChoice,
    mode=st.sampled_from(["auto", "required", "none", "function"]),
    tool_name=names,
    auto_reset=st.booleans(),
    extra=extras,
) | st.builds(ToolChoice, mode=st.sampled_from(["auto", "required", "none"]), extra=extras)
limits = st.builds(
    Limits,
    max_iterations=maybe(counts),
    usage=st.builds(UsageLimits, maybe(counts), maybe(counts), maybe(counts), maybe(counts), maybe(counts)),
    quota=maybe(st.builds(UsageQuota, counts, counts, counts, counts)),
    timeout=maybe(st.floats(0, 1e6)),
)
specs = st.builds(
    LoopSpec,
    agent=names,
    model=texts,
    instructions=texts,
    tools=st.dictionaries(
        names,
        st.builds(
            ToolSpec,
            definition=definitions,
            safety=st.sampled_from(Safety),
            retries=maybe(counts),
            timeout=maybe(st.floats(0, 1e6)),
            approval=st.booleans(),
            state=maybe(names),
        ),
        max_size=2,
    ),
    output=st.builds(
        OutputSpec,
        mode=st.sampled_from(OutputMode),
        schema=maybe(json_objects),
        tools=st.lists(definitions, max_size=1).map(tuple),
        outer_key=maybe(names),
        repairer=maybe(st.builds(RepairSpec, texts, model=texts, settings=settings, native=st.booleans())),
    ),
    settings=settings,
    tool_choice=maybe(choices),
    limits=limits,
    retries=counts,
    end_strategy=st.sampled_from(["early", "exhaustive"]),
    provider=texts,
    briefed=st.booleans(),
    compactor=maybe(st.builds(CompactSpec, texts, texts, model=texts, provider=texts, settings=settings)),
)
correlations = st.builds(Correlation, request_id=texts, trace_id=texts, loop_id=texts, tool_call_id=texts)
signals = st.builds(
    Signal, type=st.sampled_from(SignalType), id=texts, by=texts, text=texts, call_id=maybe(names)
)
carried = st.builds(
    Carried,
    run_id=texts,
    parent_run_id=texts,
    step=st.integers(0, 1000),
    prompt=texts,
    usage=run_usages,
    retries=st.integers(0, 3),
    tool_retries=maybe(st.dictionaries(names, st.integers(0, 3), min_size=1, max_size=2)),
    tool_state=extras,
)
_turn = st.integers(0, 1000)
_version = st.just(events.VERSION)
_several_texts = st.lists(texts, max_size=2).map(tuple)
_edits = st.lists(
    st.builds(Edit, start=_turn, stop=_turn, messages=st.lists(messages, max_size=1).map(tuple)), max_size=2
).map(tuple)
_compactions = st.lists(
    st.builds(ContextCompaction, texts, counts, counts, counts, counts, texts), max_size=2
).map(tuple)
arounds = st.builds(
    Around,
    sent=st.lists(
        st.builds(
            Sent,
            edits=_edits,
            settings=maybe(settings),
            tools=maybe(st.lists(texts | definitions, max_size=2).map(tuple)),
            tool_choice=st.just(UNSET) | maybe(choices),
            rest=extras,
            by=_several_texts,
            times=counts,
        ),
        max_size=2,
    ).map(tuple),
    skipped=texts,
    fresh=st.booleans(),
    compactions=_compactions,
)

_purposes = st.sampled_from(["turn", "compact", "repair", "judge", "plan", "rerank"])

flow_nodes: SearchStrategy[FlowNode] = st.recursive(
    st.builds(FlowNode, kind=st.sampled_from(["agent", "transform", "test"]), name=texts, retries=counts),
    lambda inner: st.builds(
        FlowNode,
        kind=st.sampled_from(sorted(COMPOSED)),
        name=texts,
        steps=st.lists(inner, max_size=3).map(tuple),
        until=maybe(inner),
        concurrency=maybe(counts),
    ),
    max_leaves=4,
)

EVENTS: dict[type[Any], SearchStrategy[events.Event]] = {
    events.Started: st.builds(
        events.Started,
        at=moments,
        version=_version,
        loop_id=names,
        spec=specs,
        prompt=maybe(messages),
        history=st.lists(messages, max_size=2).map(tuple),
        correlation=correlations,
        metadata=extras,
        parent_loop_id=texts,
        depth=counts,
        carried=maybe(carried),
        tool_state=extras,
        deadline=maybe(moments),
        paused=st.booleans(),
    ),
    events.Forked: st.builds(
        events.Forked,
        at=moments,
        version=_version,
        loop_id=names,
        source=names,
        turn=_turn,
        spec=specs,
        prompt=maybe(messages),
    ),
    events.Resumed: st.builds(events.Resumed, at=moments, version=_version, epoch=counts),
    events.Admitted: st.builds(
        events.Admitted,
        at=moments,
        instructions=_several_texts,
        prompt=maybe(messages),
        error=maybe(errors),
        passed=_several_texts,
        degraded=_several_texts,
    ),
    events.TurnPrepared: st.builds(
        events.TurnPrepared,
        at=moments,
        turn=_turn,
        tools=maybe(_several_texts),
        error=maybe(errors),
        definitions=st.lists(definitions, max_size=1).map(tuple),
        edits=_edits,
        skipped=texts,
        passed=_several_texts,
        notes=_several_texts,
        degraded=_several_texts,
        compactions=_compactions,
        compact=maybe(st.builds(CompactionPlan, counts, counts, counts)),
    ),
    events.ModelAnswered: st.builds(
        events.ModelAnswered,
        at=moments,
        turn=_turn,
        message=messages_of(Role.ASSISTANT),
        duration=st.floats(0, 1e6),
        request_id=maybe(texts),
        notes=_several_texts,
        purpose=_purposes,
        around=maybe(arounds),
    ),
    events.ModelFailed: st.builds(
        events.ModelFailed,
        at=moments,
        turn=_turn,
        error=errors,
        partial=maybe(messages_of(Role.ASSISTANT)),
        duration=st.floats(0, 1e6),
        purpose=_purposes,
        around=maybe(arounds),
    ),
    events.AnswerReviewed: st.builds(
        events.AnswerReviewed,
        at=moments,
        turn=_turn,
        message=maybe(messages_of(Role.ASSISTANT)),
        dropped=texts,
        stop=texts,
        error=maybe(errors),
        notes=_several_texts,
    ),
    events.CallsJudged: st.builds(
        events.CallsJudged,
        at=moments,
        turn=_turn,
        verdicts=st.lists(
            st.builds(
                events.Verdict, index=_turn, allowed=st.booleans(), reason=texts, args_json=maybe(texts)
            ),
            max_size=2,
        ).map(tuple),
        error=maybe(errors),
    ),
    events.ToolStarted: st.builds(events.ToolStarted, at=moments, turn=_turn, index=_turn),
    events.ToolReturned: st.builds(
        events.ToolReturned,
        at=moments,
        turn=_turn,
        index=_turn,
        result=tool_results,
        duration=st.floats(0, 1e6),
        state=st.just(UNSET) | json_values,
    ),
    events.TurnSettled: st.builds(
        events.TurnSettled,
        at=moments,
        turn=_turn,
        accepted=st.booleans(),
        index=maybe(_turn),
        output=st.just(UNSET) | json_values,
        feedback=_several_texts,
        repairs=_several_texts,
        error=maybe(errors),
        unread=maybe(_turn),
        reflected=texts,
    ),
    events.StageMoved: st.builds(events.StageMoved, at=moments, stage=st.sampled_from(events.Stage)),
    events.SignalReceived: st.builds(events.SignalReceived, at=moments, signal=signals),
    events.ChildEnded: st.builds(
        events.ChildEnded,
        at=moments,
        loop_id=names,
        call_id=names,
        spent=st.lists(call_usages, max_size=2).map(tuple),
        requests=st.integers(0, 9),
    ),
    events.ChildStarted: st.builds(events.ChildStarted, at=moments, loop_id=names, agent=texts),
    events.TimePassed: st.builds(events.TimePassed, at=moments),
    events.Delivered: st.builds(events.Delivered, at=moments, error=maybe(errors)),
    events.Ended: st.builds(
        events.Ended, at=moments, outcome=st.sampled_from(events.Outcome), error=maybe(errors)
    ),
    events.Reopened: st.builds(events.Reopened, at=moments, by=texts),
    events.FlowStarted: st.builds(
        events.FlowStarted,
        at=moments,
        version=st.just(events.VERSION),
        loop_id=names,
        flow=flow_nodes,
        input=json_values,
        timeout=maybe(st.floats(0.1, 1e6)),
        correlation=st.builds(Correlation, request_id=texts, trace_id=texts),
        metadata=extras,
        parent_loop_id=texts,
        depth=_turn,
        max_depth=maybe(_turn),
    ),
    events.StepEnded: st.builds(
        events.StepEnded,
        at=moments,
        path=names,
        output=json_values,
        error=maybe(errors),
        attempt=_turn,
        loop_id=texts,
        usage=maybe(run_usages),
        duration=st.floats(0, 1e6),
    ),
}
"""A strategy for each event there is."""

all_events = st.one_of(list(EVENTS.values()))

EFFECTS: dict[type[Any], SearchStrategy[effects.Effect | effects.FlowEffect]] = {
    effects.Admit: st.builds(effects.Admit, id=names),
    effects.Prepare: st.builds(effects.Prepare, id=names, turn=_turn),
    effects.Infer: st.builds(
        effects.Infer,
        id=names,
        turn=_turn,
        purpose=_purposes,
    ),
    effects.Review: st.builds(effects.Review, id=names, turn=_turn),
    effects.Judge: st.builds(
        effects.Judge, id=names, turn=_turn, indices=st.lists(_turn, max_size=3).map(tuple)
    ),
    effects.Execute: st.builds(effects.Execute, id=names, turn=_turn, index=_turn, once=st.booleans()),
    effects.Settle: st.builds(effects.Settle, id=names, turn=_turn),
    effects.Wait: st.builds(
        effects.Wait,
        id=names,
        signals=st.lists(st.sampled_from(SignalType), max_size=2).map(tuple),
        until=maybe(moments),
        calls=st.lists(names, max_size=2).map(tuple),
    ),
    effects.Deliver: st.builds(effects.Deliver, id=names),
    effects.End: st.builds(
        effects.End,
        id=names,
        outcome=st.sampled_from(events.Outcome),
        error=maybe(errors),
        cancels=st.lists(names, max_size=2).map(tuple),
        editor=texts,
    ),
    effects.RunStep: st.builds(
        effects.RunStep, id=names, path=names, input=json_values, attempt=_turn, loop_id=texts, history=texts
    ),
    effects.SignalChild: st.builds(effects.SignalChild, id=names, loop_id=names, signal=signals),
}
"""A strategy for each effect there is."""
