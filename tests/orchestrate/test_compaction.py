"""Compaction: a model sums up what was said, once; from then on that is sent, and the history stays whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball import (
    Agent,
    AutoContext,
    Compactor,
    CostTracker,
    HistoryProcessor,
    Limits,
    MemoryJournal,
    ModelPricing,
    ModelSettings,
    Signal,
    SignalType,
    SummaryMemory,
    Usage,
    UsageLimits,
    by_words,
    estimate_tokens,
    send_signal,
    tool,
)
from flyball.core.codec import encode_event
from flyball.core.compaction import CompactionPlan, ContextCompaction
from flyball.core.cutting import GO_ON, can_be_summed_up
from flyball.core.effects import Infer, Prepare
from flyball.core.errors import EngineError, RuleFailed, UserError
from flyball.core.events import (
    VERSION,
    Event,
    ModelAnswered,
    ModelFailed,
    SignalReceived,
    Started,
    TurnPrepared,
)
from flyball.core.history import check_history
from flyball.core.messages import (
    FinishReason,
    Image,
    Message,
    Role,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    system,
    user,
)
from flyball.core.spec import CompactSpec, LoopSpec
from flyball.inference.answers import tool_call as call
from flyball.orchestrate.compacted import SUMMARY, remembered
from flyball.orchestrate.compacting import tokens_counted
from flyball.orchestrate.lifecycle import Phase, phase_of
from flyball.orchestrate.machine import accepts, apply, fold, owed, start
from flyball.orchestrate.projections import correlate, timeline
from flyball.orchestrate.requests import request_for
from flyball.orchestrate.sending import outgoing
from flyball.orchestrate.state import State
from flyball.testing import ScriptedEngine
from tests.histories import histories

PAGE = "many words " * 40
TALK = [user("How are you?"), assistant("Well, " * 100), user("Really?"), assistant("Yes. " * 100)]
SUMS_UP = LoopSpec(prepares=True, compactor=CompactSpec("auto_context", "Sum it up."))


@tool
async def read(page: int) -> str:
    """Read a page."""
    return f"page {page}: {PAGE}"


def pages(count: int) -> list[ToolCall]:
    return [call("read", {"page": page}, id=f"p{page}") for page in range(1, count + 1)]


def prepared(events: Sequence[Event]) -> list[TurnPrepared]:
    return [event for event in events if isinstance(event, TurnPrepared)]


def roles(messages: Sequence[Message]) -> str:
    return "".join([message.role.value[0] for message in messages])


async def test_a_summary_is_made_once_and_lasts() -> None:
    model, summing = ScriptedEngine(*pages(5), "the end"), ScriptedEngine(*["It is about words."] * 2)
    agent = Agent(model, tools=[read], instructions="Read it.", features=[AutoContext(300, 2, summing)])
    result = await agent.run("Go.", loop_id="book")
    sent = [request.messages for request in model.calls]
    assert [roles(messages) for messages in sent] == ["su", "suat", "suatat", "suauat", "suauatat", "suauat"]
    summary = sent[3][2]
    assert summary.text == (
        "[Conversation Summary] It is about words.\n\n"
        "[Still to be followed]\nInstructions: Read it.\nTask: Go."
    )
    assert (sent[3][:2], sent[3][3]) == (sent[0], user(GO_ON))
    assert sent[4][:6] == sent[3], "what was sent stays as it was, for whoever caches it"
    assert roles(result.messages) == "suatatatata" + "ta", "what was said is whole"
    assert [request.id for request in summing.calls] == ["book/1/4/compact/0", "book/1/6/compact/0"]


async def test_the_conversation_is_told_to_the_model_that_sums_it_up() -> None:
    model, summing = ScriptedEngine("Fine."), ScriptedEngine("All is well.")
    history = [
        user(["Look.", Image("https://example.org/a.png")]),
        Message(Role.ASSISTANT, (Text("I look."), ToolCall("a", "look", '{"at": 1}'))),
        Message(Role.TOOL, (ToolResult("a", "look", "x" * 90_000),)),
        assistant("I see."),
    ]
    features = [AutoContext(300, 1, summing, instructions="Be short.", settings=ModelSettings(max_tokens=50))]
    await Agent(model, features=features).run("And?", messages=history)
    (request,) = summing.calls
    told, asked = request.messages
    assert told == system("Be short.")
    assert asked.text.startswith(
        'The conversation:\n\nAssistant: I look.\ncalls look({"at": 1})\n\nTools: look gave: xxx'
    )
    assert asked.text.endswith("xxx\n\nAssistant: I see.")
    assert estimate_tokens([asked]) < 2_200, "a result is cut: it may be longer than all else"
    assert request.settings.max_tokens == 50
    assert not request.tools


async def test_it_is_told_by_how_much() -> None:
    model, summing = ScriptedEngine(*pages(3), "the end"), ScriptedEngine("Words.")
    result = await Agent(model, tools=[read], features=[AutoContext(300, 2, summing)]).run("Go.")
    first, second = prepared(await result.events())[-2:]
    assert first.compact == CompactionPlan(5, 7, 352)
    assert not first.compactions
    assert second.compact is None
    assert second.compactions == (ContextCompaction("auto_summary", 7, 5, 352, 139, "auto_context"),)
    assert second.turn == first.turn == 4
    assert not second.edits, "the summary stands in the journal once"
    written = b"".join([encode_event(event) for event in await result.events()])
    assert written.count(b"Words.") == 1


async def test_a_summary_is_summed_up_with_what_came_since() -> None:
    model = ScriptedEngine(*pages(7), "the end")
    summing = ScriptedEngine("First part.", "Second part.", "Third part.")
    agent = Agent(model, tools=[read], features=[AutoContext(300, 2, summing)])
    await agent.run("Go.")
    assert [f"{number} part." in summing.calls[1].messages[1].text for number in ("First", "Second")] == [
        True,
        False,
    ]
    assert "Second part." in model.calls[5].messages[1].text
    assert "First part." not in model.calls[5].messages[1].text


async def test_the_agents_own_model_sums_up_where_there_is_no_other() -> None:
    model = ScriptedEngine("A talk.", "Fine.")
    result = await Agent(model, features=[AutoContext(100, 1)]).run("So?", messages=TALK)
    assert result.output == "Fine."
    assert [roles(request.messages) for request in model.calls] == ["su", "uau"]
    assert result.usage.requests == 2
    assert result.state.iterations == 1, "a summary is no iteration"


async def test_what_a_summary_cost_is_counted() -> None:
    said = Message(Role.ASSISTANT, (Text("A talk."),), usage=Usage(7, 3), model="summing")
    tracker = CostTracker({"summing": ModelPricing(1, 10), "test": ModelPricing(0, 0)})
    agent = Agent(
        ScriptedEngine("Fine."), features=[AutoContext(100, 1, ScriptedEngine(said, name="summing")), tracker]
    )
    result = await agent.run("So?", messages=TALK)
    assert (result.usage.input_tokens, result.usage.output_tokens) == (7, 3)
    assert result.cost is not None
    assert result.cost.total == 37


@pytest.mark.parametrize(
    "answer",
    [
        EngineError("gone"),
        "",
        "   ",
        Message(Role.ASSISTANT, (Text("It is ab"),), finish_reason=FinishReason.LENGTH),
        Message(Role.ASSISTANT, (Text("It is"),), finish_reason=FinishReason.CONTENT_FILTER),
    ],
    ids=["failed", "empty", "blank", "cut off", "filtered"],
)
async def test_where_there_is_no_summary_all_goes_on_as_it_was(answer: Any) -> None:
    model, summing = ScriptedEngine("Fine."), ScriptedEngine(answer)
    result = await Agent(model, features=[AutoContext(100, 1, summing)]).run("So?", messages=TALK)
    assert result.output == "Fine."
    assert model.calls[0].messages == (*TALK, user("So?"))
    assert len(summing.calls) == 1, "it is not tried again in the same turn"
    assert [event.compactions for event in prepared(await result.events())] == [(), ()]


async def test_it_is_tried_again_in_the_next_turn() -> None:
    summing = ScriptedEngine(EngineError("busy"), "Words.")
    model = ScriptedEngine(*pages(4), "the end")
    await Agent(model, tools=[read], features=[AutoContext(300, 2, summing)]).run("Go.")
    assert [roles(request.messages) for request in model.calls[3:]] == ["uatatat", "uauat"]


async def test_without_room_for_the_turns_own_call_none_is_asked_for() -> None:
    model, summing = ScriptedEngine("Fine.", "Fine."), ScriptedEngine("A talk.")
    agent = Agent(model, features=[AutoContext(100, 1, summing)])
    result = await agent.run("So?", messages=TALK, usage_limits=UsageLimits(request_limit=1))
    assert result.output == "Fine."
    assert not summing.calls
    roomy = await agent.run("So?", messages=TALK, limits=Limits(usage=UsageLimits(request_limit=2)))
    assert len(summing.calls) == 1
    assert roomy.usage.requests == 2


# When


class Counting(AutoContext):
    """Remembers what it was told."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.told: list[int] = []

    def keeps(self, messages: Sequence[Message], tokens: int) -> int | None:
        self.told.append(tokens)
        return super().keeps(messages, tokens)


def used(call_: ToolCall, tokens: int) -> Message:
    return Message(Role.ASSISTANT, (call_,), usage=Usage(tokens, 0))


async def test_the_providers_count_is_taken_where_it_is_larger_and_was_made_since() -> None:
    first, second, third = pages(3)
    model = ScriptedEngine(used(first, 5), used(second, 900), used(third, 60), "the end")
    compactor = Counting(1000, 2, ScriptedEngine("Words."))
    result = await Agent(model, tools=[read], features=[compactor]).run("Go.")
    page = estimate_tokens([result.messages[2]])
    counted = compactor.told
    assert counted[0] == estimate_tokens(result.messages[:1])
    assert counted[1] == estimate_tokens(result.messages[:3]), "the estimate is larger"
    assert counted[2] == 900 + page, "the provider's is, and what was said since is added"
    assert len(counted) == 4, "in the turn of the summary it is asked once"
    after = [event.compactions for event in prepared(await result.events()) if event.compactions]
    assert [one.tokens_before for (one,) in after] == [900 + page]
    assert counted[3] < 1000, "what was counted before the summary was of more than is sent now"


@given(histories(), st.integers(0, 5000))
def test_the_count_of_an_answer_is_known_with_the_history(history: list[Message], tokens: int) -> None:
    """So a run that goes on from another's messages knows it, too."""
    last = [index for index, one in enumerate(history) if one.role is Role.ASSISTANT][-1:]
    for index in last:
        history[index] = Message(Role.ASSISTANT, history[index].parts, usage=Usage(tokens, 0))
    state = State("loop", LoopSpec(), history)
    since = estimate_tokens(history[last[0] + 1 :]) if last else 0
    assert tokens_counted(state, by_words) <= tokens_counted(state, len)
    assert (tokens_counted(state, by_words) > 0) == bool(last and tokens)
    if last and tokens:
        assert tokens_counted(state, lambda _: 0) >= tokens
        assert since >= 0


async def test_summary_memory_counts_messages() -> None:
    summing = ScriptedEngine(*["Words."] * 3)
    model = ScriptedEngine(*pages(6), "the end")
    result = await Agent(model, tools=[read], features=[SummaryMemory(summing, 8)]).run("Go.")
    assert [len(request.messages) for request in model.calls] == [1, 3, 5, 7, 7, 7, 7]
    told = [one for event in prepared(await result.events()) for one in event.compactions]
    assert {(one.by, one.messages_before, one.messages_after) for one in told} == {("summary_memory", 9, 7)}


class Odd(Compactor):
    name = "odd"

    def __init__(self, keeps: Any) -> None:
        super().__init__()
        self.kept = keeps

    def keeps(self, messages: Sequence[Message], tokens: int) -> int | None:
        kept: Any = self.kept
        return kept() if kept is fails else kept


def fails() -> int:
    raise LookupError("lost")


@pytest.mark.parametrize(
    ("kept", "error", "words"),
    [
        (0, UserError, "the compactor 'odd' keeps 0 messages"),
        ("all", UserError, "the compactor 'odd' keeps 'all' messages"),
        (fails, RuleFailed, "the compactor 'odd' failed: LookupError: lost"),
    ],
    ids=["none", "words", "fails"],
)
async def test_a_compactor_of_ones_own_is_held_to_its_word(kept: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        await Agent(ScriptedEngine("never"), features=[Odd(kept)]).run("So?", messages=TALK)


async def test_where_nothing_is_left_to_sum_up_none_is_asked_for() -> None:
    for kept in (4, 5, 99):
        model = ScriptedEngine("Fine.")
        await Agent(model, features=[Odd(kept)]).run("So?", messages=TALK)
        assert len(model.calls) == 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: AutoContext(0), "AutoContext takes a number of tokens"),
        (lambda: AutoContext(100, 0), "AutoContext takes a number of messages to keep"),
        (lambda: SummaryMemory(max_messages=0), "SummaryMemory takes a number of messages"),
        (lambda: AutoContext(100, instructions=""), "AutoContext's instructions are text"),
        (lambda: AutoContext(100, estimator=4), "AutoContext's estimator is a function"),  # pyright: ignore[reportArgumentType]
        (lambda: Agent("test", features=[AutoContext(9), SummaryMemory()]).spec, "one compactor at most"),
    ],
    ids=["tokens", "messages", "memory", "instructions", "estimator", "two"],
)
def test_what_cannot_be_is_refused(make: Any, words: str) -> None:
    with pytest.raises(UserError, match=words):
        make()


# The machine


@given(histories(), st.data())
def test_whatever_is_summed_up_what_is_sent_is_valid(history: list[Message], data: st.DataObject) -> None:
    state = start(Started(1.0, VERSION, "loop", SUMS_UP, None, tuple(history)))
    for turn in (1, 2):
        stops = [stop for stop in range(-1, len(state.history) + 2) if can_be_summed_up(state.history, stop)]
        done = state.compaction
        stops = [stop for stop in stops if done is None or done.made is None or stop > done.made.stop]
        for stop in range(-1, len(state.history) + 2):
            plan = TurnPrepared(2.0, turn, compact=CompactionPlan(stop, 1, 1))
            assert accepts(state, plan) == (stop in stops)
        if not stops:
            return
        apply(state, TurnPrepared(2.0, turn, compact=CompactionPlan(data.draw(st.sampled_from(stops)), 1, 1)))
        (effect,) = owed(state)
        assert isinstance(effect, Infer)
        assert (effect.id, effect.purpose) == (f"loop/1/{turn}/compact/0", "compact")
        check_history(request_for(state, effect).messages, complete=True)
        apply(state, ModelAnswered(3.0, turn, assistant(f"Summary {turn}."), purpose="compact"))
        (again,) = owed(state)
        assert again == Prepare(f"loop/1/{turn}/prepare/1", turn)
        for stop in stops:
            assert not accepts(state, TurnPrepared(4.0, turn, compact=CompactionPlan(stop, 1, 1))), (
                "once a turn"
            )
        sent = remembered(state)
        check_history(sent, complete=True)
        assert sum(message.text.startswith(SUMMARY) for message in sent) == 1
        assert sent[-1] == state.history[-1]
        apply(state, TurnPrepared(4.0, turn))
        assert outgoing(state) == list(sent)
        apply(state, ModelAnswered(5.0, turn, assistant("", ToolCall(f"new{turn}", "nobody"))))
        assert state.history[: len(history)] == history


def test_a_loop_that_waits_for_a_summary_is_preparing() -> None:
    state = start(Started(1.0, VERSION, "loop", SUMS_UP, user("So?"), tuple(TALK)))
    apply(state, TurnPrepared(2.0, 1, compact=CompactionPlan(4, 5, 300)))
    assert (state.at, phase_of(state)) == ("compact", Phase.PREPARE)
    assert not accepts(state, ModelAnswered(3.0, 1, assistant("no"))), "that would be the turn's"
    assert not accepts(state, TurnPrepared(3.0, 1))


def test_what_is_said_while_a_summary_waits_is_in_the_turns_request() -> None:
    state = start(Started(1.0, VERSION, "loop", SUMS_UP, user("So?"), tuple(TALK)))
    apply(state, SignalReceived(2.0, Signal(SignalType.PAUSE)))
    apply(state, TurnPrepared(2.0, 1, compact=CompactionPlan(4, 5, 300)))
    assert state.paused
    asked = request_for(state, Infer("", 1, "compact"))
    apply(state, SignalReceived(3.0, Signal(SignalType.FEEDBACK, text="Be quick.")))
    assert (state.at, state.paused) == ("compact", True)
    assert request_for(state, Infer("", 1, "compact")) == asked, "it is not summed up"
    apply(state, SignalReceived(3.0, Signal(SignalType.RESUME)))
    apply(state, ModelAnswered(4.0, 1, assistant("A talk."), purpose="compact"))
    apply(state, TurnPrepared(5.0, 1))
    assert [part.text for part in outgoing(state)[-1].parts if isinstance(part, Text)] == ["So?", "Be quick."]


def test_only_who_may_sum_up_may_ask_for_it() -> None:
    plan = TurnPrepared(2.0, 1, compact=CompactionPlan(4, 5, 300))
    assert not accepts(
        start(Started(1.0, VERSION, "loop", LoopSpec(prepares=True), user("?"), tuple(TALK))), plan
    )


# What was recorded


async def recorded(**options: Any) -> tuple[Agent[Any, str], MemoryJournal, ScriptedEngine, ScriptedEngine]:
    journal = MemoryJournal()
    model, summing = ScriptedEngine(*pages(5), "the end"), ScriptedEngine("First.", "Second.", "Third.")
    agent = Agent(
        model, tools=[read], instructions="Read it.", features=[AutoContext(300, 2, summing)], **options
    )
    await agent.run("Go.", journal=journal, loop_id="book")
    return agent, journal, model, summing


async def test_a_fork_goes_on_from_the_summary() -> None:
    agent, journal, model, summing = await recorded()
    model.reset()
    again = ScriptedEngine("the end")
    with agent.override(model=again):
        result = await agent.fork("book", journal, turn=4)
    assert result.output == "the end"
    assert roles(again.calls[0].messages) == "suauatat"
    assert "First." in again.calls[0].messages[2].text
    assert len(summing.calls) == 2, "nobody was asked again"


async def test_a_fork_that_is_told_something_else_sums_up_anew() -> None:
    agent, journal, *_ = await recorded()
    others: list[dict[str, Any]] = [
        {"instructions": "Skim it."},
        {"features": []},
        {"features": [AutoContext(9999, 2, instructions="In verse.")]},
    ]
    for changes in others:
        again = ScriptedEngine("the end")
        with agent.override(model=again, **changes):
            await agent.fork("book", journal, turn=4)
        summed_up = [message for message in again.calls[-1].messages if message.text.startswith(SUMMARY)]
        assert not any("First." in message.text for message in summed_up)


async def test_another_attempt_goes_on_from_the_summary() -> None:
    journal = MemoryJournal()
    model = ScriptedEngine(*pages(3), EngineError("down"), "the end")
    summing = ScriptedEngine("Words.")
    agent = Agent(model, tools=[read], features=[AutoContext(300, 2, summing)])
    with pytest.raises(EngineError):
        await agent.run("Go.", journal=journal, loop_id="book")
    await send_signal(journal, "book", Signal(SignalType.RETRY))
    result = await agent.resume("book", journal)
    assert result.output == "the end"
    assert roles(model.calls[-1].messages) == "uauat"
    assert len(summing.calls) == 1


async def test_a_run_that_goes_on_from_the_messages_or_a_snapshot_has_all_of_them() -> None:
    agent, journal, *_ = await recorded()
    whole = fold(await journal.read("book")).history
    for options in ({"messages": whole}, {"snapshot": (await agent.replay("book", journal)).snapshot()}):
        model = ScriptedEngine("Yes.")
        with agent.override(model=model, features=[]):
            await agent.run("Really?", **options)  # pyright: ignore[reportArgumentType]
        assert model.calls[0].messages[:-1] == tuple(whole)


async def test_it_is_in_the_views_of_the_journal() -> None:
    _, journal, *_ = await recorded()
    events = await journal.read("book")
    ids = [ids for ids, event in correlate(events) if getattr(event, "purpose", "") == "compact"]
    assert [one.model_request_id for one in ids] == ["book/1/4/compact/0", "book/1/6/compact/0"]
    spans = [ids.span_id for ids, event in correlate(events) if isinstance(event, TurnPrepared)]
    assert len(set(spans)) == len(spans) == 8
    assert len([event for event in timeline(events) if type(event).__name__ == "InferenceEndEvent"]) == 8


async def test_processors_are_asked_about_what_is_left() -> None:
    seen: list[str] = []

    def look(messages: Sequence[Message]) -> Sequence[Message]:
        seen.append(roles(messages))
        return messages

    model, summing = ScriptedEngine("Fine."), ScriptedEngine("A talk.")
    features = [AutoContext(100, 1, summing), HistoryProcessor(look)]
    await Agent(model, features=features).run("So?", messages=TALK)
    assert seen == ["uau"], "and once: not before the summary"


async def test_a_failure_of_the_call_is_recorded_as_the_summarys() -> None:
    summing = ScriptedEngine(EngineError("gone"))
    result = await Agent(ScriptedEngine("Fine."), features=[AutoContext(100, 1, summing)]).run(
        "So?", messages=TALK
    )
    (failed,) = [event for event in await result.events() if isinstance(event, ModelFailed)]
    assert (failed.purpose, failed.turn, failed.error.message) == ("compact", 1, "gone")
