"""Middleware on an agent: the model gets what it makes of a request, and the journal tells what that was."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from flyball import (
    Agent,
    ChangeRequest,
    CostTracker,
    DualMiddleware,
    Limits,
    Logging,
    MaxTokens,
    MemoryJournal,
    Message,
    Middleware,
    ModelPricing,
    ModelRepair,
    ModelSettings,
    Request,
    RequestMiddleware,
    Result,
    RunResult,
    StreamMiddleware,
    Timing,
    Usage,
)
from flyball.core.around import Around, Sent
from flyball.core.codec import decode_event, encode_event
from flyball.core.edits import Edit
from flyball.core.errors import CancelledSignal, EngineError, InvalidMessage, MiddlewareFailed, UserError
from flyball.core.events import Event, ModelAnswered, ModelFailed
from flyball.core.messages import Role, assistant, user
from flyball.inference.answers import tool_call as call
from flyball.inference.middleware.engine import MiddlewareEngine
from flyball.inference.middleware.kinds import CallNext, StreamNext
from flyball.inference.profile import profile_for
from flyball.inference.scripted import ScriptedEngine
from flyball.inference.stream import StreamEvent
from flyball.orchestrate.machine import accepts, fold, inference_owed
from flyball.orchestrate.reaching import as_recorded
from flyball.orchestrate.replay import steps
from flyball.orchestrate.requests import request_parts
from flyball.orchestrate.sent import Asking
from tests.orchestrate.conftest import Runner
from tests.orchestrate.middleware_scenarios import FINDING, MIDDLEWARE, Remembered, Twice, find, redacted
from tests.orchestrate.models import Hanging, NeverAsked, Script, turn_of
from tests.orchestrate.scenario import Scenario
from tests.orchestrate.test_recorded import ending
from tests.orchestrate.where import Where


def requests_sent(events: Sequence[Event]) -> list[Request]:
    """The requests that reached the model, as the journal alone tells them."""
    sent: list[Request] = []
    asking: Asking | None = None
    for event, state in steps([decode_event(encode_event(event)) for event in events]):
        if isinstance(event, ModelAnswered | ModelFailed):
            assert asking is not None
            for one, said in zip(asking.sent(event.around), counted(event.around), strict=True):
                sent += [one] * said
        if (owed := inference_owed(state)) is not None:
            asking = Asking.of(state, owed, request_parts(state.spec))
    return sent


def counted(around: Around | None) -> list[int]:
    return [1] if around is None else [sent.times for sent in around.sent]


class Watched:
    """Keeps what reached an engine, as bytes."""

    def __init__(self, engine: Any, calls: list[bytes] | None = None) -> None:
        self.engine = engine
        self.calls: list[bytes] = [] if calls is None else calls
        self.model_info = engine.model_info

    def infer(self, request: Request) -> Any:
        self.calls.append(msgspec.json.encode(request))
        return self.engine.infer(request)

    def stream(self, request: Request) -> Any:
        self.calls.append(msgspec.json.encode(request))
        return self.engine.stream(request)


@pytest.mark.parametrize("scenario", MIDDLEWARE, ids=repr)
async def test_the_journal_gives_back_the_very_bytes_that_were_sent(scenario: Scenario) -> None:
    agent, calls = scenario.make(), list[bytes]()
    changes = {"features": [watched_repair(feature, calls) for feature in agent.config.features]}
    agent = agent.clone(model=Watched(agent.config.model, calls), **changes)
    result, _ = await ending(agent.run(scenario.prompt, **scenario.options))
    sent = requests_sent(await result.events())
    assert [msgspec.json.encode(request) for request in sent] == calls


def watched_repair(feature: Any, calls: list[bytes]) -> Any:
    """A model that puts answers right is a model, too."""
    return ModelRepair(Watched(feature.model, calls)) if isinstance(feature, ModelRepair) else feature


_kept = st.lists(st.integers(0, 12), max_size=6)


@given(st.lists(st.tuples(_kept, st.sampled_from(["keep", "mark", "add"])), min_size=1, max_size=6))
async def test_whatever_is_changed_can_be_told_again(changes: list[tuple[list[int], str]]) -> None:
    """Turn by turn: exchanges left out and added, messages marked, in any place."""

    @ChangeRequest
    def changing(request: Request) -> Request:
        places, how = changes[turn_of(request) - 1]
        messages = list(request.messages)
        for place in places:
            at = place % len(messages)
            if how == "mark":
                messages[at] = replace(messages[at], extra={"marked": True})
            elif how == "add" and messages[at].role in (Role.USER, Role.TOOL):
                messages[at + 1 : at + 1] = [assistant(f"added {place}"), user("Go on.")]
            elif how == "keep" and messages[at].role is Role.ASSISTANT:
                del messages[at : at + 2]
        return replace(request, messages=tuple(messages))

    answers = [call("find", {"name": str(turn)}) for turn in range(len(changes) - 1)]
    engine = Watched(Script(*answers, "done"))
    result = await Agent(engine, tools=[find], features=[changing], instructions="Go.").run("hello")
    events = await result.events()
    assert [msgspec.json.encode(request) for request in requests_sent(events)] == engine.calls
    assert fold([decode_event(encode_event(event)) for event in events]) == result.state


SENDS_NOTHING_VALID: dict[str, tuple[Callable[[Request], tuple[Message, ...]], str]] = {
    "nothing": (lambda _: (), "ends with a user or a tool message"),
    "begins with an answer": (lambda request: (assistant("Hm."), *request.messages), "message 0"),
    "speaks twice": (lambda request: (*request.messages, user("And?")), "message 2"),
    "a prefilled answer": (lambda request: (*request.messages, assistant("It is")), "ends with a user"),
}


@pytest.mark.parametrize("case", SENDS_NOTHING_VALID)
async def test_messages_that_no_provider_takes_are_not_sent(run: Runner, case: str) -> None:
    make, why = SENDS_NOTHING_VALID[case]

    @ChangeRequest
    def careless(request: Request) -> Request:
        return replace(request, messages=make(request))

    agent = Agent(NeverAsked(), features=[careless], instructions="Be brief.")
    error = await run.failing(InvalidMessage, agent, "hello")
    assert "the middleware 'careless' made messages that cannot be sent" in str(error)
    assert why in str(error)


async def test_what_one_middleware_breaks_another_may_mend(run: Runner) -> None:
    @ChangeRequest
    def more(request: Request) -> Request:
        return replace(request, messages=(*request.messages, user("And?")))

    @ChangeRequest
    def the_last(request: Request) -> Request:
        return replace(request, messages=request.messages[-1:])

    result = await run(Agent(Script("done"), features=[more, the_last]), "hello")
    assert result.output == "done"


async def written_about_middleware(turns: int) -> int:
    """How many bytes a run of so many turns records of what middleware changed: all that was ever said."""
    answers = [call("find", {"name": str(turn)}) for turn in range(turns - 1)]
    agent = Agent(Script(*answers, "done"), tools=[find], features=[redacted, MaxTokens(50)])
    result = await agent.run("555-0100?", limits=Limits(max_iterations=turns))
    arounds = [event.around for event in await result.events() if isinstance(event, ModelAnswered)]
    assert all(around is not None for around in arounds)
    return sum(len(msgspec.json.encode(around)) for around in arounds)


async def test_what_is_recorded_grows_with_the_work_and_not_with_its_square() -> None:
    short, long = await written_about_middleware(12), await written_about_middleware(48)
    assert 3.5 < long / short < 4.5


async def test_an_old_change_is_not_written_down_again(run: Runner) -> None:
    agent = Agent(Script(*FINDING[:2], "done"), tools=[find], features=[redacted])
    result = await run(agent, "555-0100?")
    first, second, third = [
        event.around for event in await result.events() if isinstance(event, ModelAnswered)
    ]
    assert first == Around((Sent((Edit(0, 1, (user("***-0100?"),)),), by=("redacted",)),))
    for around, place in ((second, 2), (third, 4)):
        assert around is not None
        assert [(edit.start, edit.stop) for edit in around.sent[0].edits] == [(place, place + 1)]


async def test_what_reaches_the_model_is_not_what_was_said(run: Runner) -> None:
    script = Script(FINDING[0], "done")
    result = await run(Agent(script, tools=[find], features=[redacted]), "555-0100?")
    assert [message.text for message in script.last.messages if message.role == "user"] == ["***-0100?"]
    assert result.messages[0].text == "555-0100?"
    assert result.messages[2].tool_results[0].text == "Ann: 555-0199"


@pytest.mark.parametrize("failing", [False, True], ids=["answered", "failed"])
async def test_who_changes_nothing_is_not_in_the_journal(run: Runner, *, failing: bool) -> None:
    features = [Logging(str), Timing(str), MaxTokens(500)]
    script = Script(EngineError("busy") if failing else "done")
    agent = Agent(script, features=features, settings=ModelSettings(max_tokens=100))
    result, _ = await ending(run(agent, "go"))
    (event,) = [event for event in await result.events() if isinstance(event, ModelAnswered | ModelFailed)]
    assert event.around is None
    assert b"around" not in encode_event(event)


# Sides


def one_sided(way: str) -> Middleware:
    async def request(request: Request, call_next: CallNext) -> Result:
        return await call_next(replace(request, messages=(user("whole"),)))

    async def stream(request: Request, call_next: StreamNext) -> AsyncGenerator[StreamEvent]:
        async for piece in call_next(replace(request, messages=(user("in pieces"),))):
            yield piece

    if way == "both":
        return DualMiddleware(request, stream)
    return RequestMiddleware(request) if way == "request" else StreamMiddleware(stream)


def echo(request: Request) -> str:
    return request.messages[-1].text


@pytest.mark.parametrize(
    ("side", "plain", "streamed"),
    [("request", "whole", "go"), ("stream", "go", "in pieces"), ("both", "whole", "in pieces")],
)
async def test_the_side_is_that_of_the_call(where: Where, side: str, plain: str, streamed: str) -> None:
    def agent() -> Agent[Any, Any]:
        return Agent(Script(echo), features=[one_sided(side)])

    result = await where.run(agent(), "go", f"plain-{side}-{where.kind}")
    assert result.output == plain
    async with where.stream(agent()) as stream:
        async for _ in stream.events():
            pass
    assert stream.result.output == streamed
    (batch,) = await agent().run_batch(["go"])
    assert isinstance(batch, RunResult)
    assert batch.output == plain
    async with where.iter(agent()) as steps:
        async for _ in steps:
            pass
    assert steps.result.output == plain


def test_what_an_agent_has_is_in_its_stages() -> None:
    features = [one_sided("request"), one_sided("stream"), MaxTokens(5)]
    stages = Agent("test", features=features).bindings().stages
    assert stages.middleware == tuple(features)
    assert stages.request_middleware == (features[0], features[2])
    assert stages.stream_middleware == (features[1], features[2])


# Around the agent


def test_without_middleware_the_engine_is_the_model() -> None:
    engine = ScriptedEngine("hi")
    bindings = Agent(engine, features=[]).bindings()
    assert bindings.engine is bindings.model is engine


async def test_it_stays_around_another_model_and_with_other_settings() -> None:
    agent = Agent(ScriptedEngine("one", "four"), features=[MaxTokens(7)])
    await agent.run("go")
    other, third = ScriptedEngine("two"), ScriptedEngine("three")
    assert (await agent.run("go", model=other)).output == "two"
    with agent.override(model=third):
        assert (await agent.run("go")).output == "three"
    await agent.run("go", settings=ModelSettings(temperature=0.5))
    first = agent.config.model
    assert isinstance(first, ScriptedEngine)
    assert [call.settings for engine in (first, other, third) for call in engine.calls] == [
        ModelSettings(max_tokens=7),
        ModelSettings(max_tokens=7, temperature=0.5),
        ModelSettings(max_tokens=7),
        ModelSettings(max_tokens=7),
    ]
    assert isinstance(agent.bindings().engine, MiddlewareEngine)
    assert isinstance(agent.bindings().model, ScriptedEngine)
    plain = agent.clone(features=[])
    assert isinstance(plain.bindings().engine, ScriptedEngine)
    assert agent.spec == plain.spec, "it is no policy"
    assert profile_for(agent.bindings().engine) == profile_for(plain.bindings().engine)


async def test_who_counts_costs_hears_of_the_calls_that_are_made() -> None:
    def answer(request: Request) -> Message:
        return replace(assistant(echo(request)), usage=Usage(1, 1))

    tracker = CostTracker({"test": ModelPricing(1, 1)})
    agent = Agent(ScriptedEngine(*[answer] * 6), features=[tracker, Twice(), Remembered()], tools=[find])
    assert (await agent.run("go")).output == "Once more!"
    assert tracker.total_cost == 6, "three calls of two tokens each: all that middleware made"
    model = agent.bindings().model
    assert isinstance(model, ScriptedEngine)
    assert len(model.calls) == 3


async def test_a_loop_goes_on_without_the_middleware_it_was_begun_with(journal: Any) -> None:
    script = Script(FINDING[0], FINDING[1], "done")
    agent = Agent(script, tools=[find], features=[redacted])
    async with agent.iter("555-0100?", journal=journal, loop_id=f"left-{id(script)}") as run:
        await run.next()
    result = await agent.clone(features=[]).resume(run.loop_id, journal)
    assert result.output == "done"
    told = requests_sent(await result.events())
    assert [request.messages[0].text for request in told] == ["***-0100?", "555-0100?", "555-0100?"]
    assert told == script.requests
    again = await agent.clone(model=NeverAsked()).replay(run.loop_id, journal)
    assert again.output == "done"


async def test_it_is_told_which_run_asks(run: Runner) -> None:
    asked: list[str] = []

    @ChangeRequest
    def look(request: Request) -> Request:
        asked.append(request.run_id)
        return request

    result = await run(Agent(Script(call("nope"), "2"), features=[look]), "go")
    assert set(asked) == {result.run_id}


async def test_a_call_behind_it_is_stopped_and_closed(where: Where) -> None:
    hanging = Hanging("some ")
    place = hanging.place
    agent = Agent(hanging, features=[MaxTokens(5), redacted, Timing(str)])

    async def drain() -> None:
        async for _ in stream.events():
            pass

    async with where.stream(agent) as stream:
        reading = asyncio.create_task(drain())
        await place.entered.wait()
        await stream.cancel()
        with pytest.raises(CancelledSignal):
            await reading
    assert place.cancelled == place.times
    assert hanging.closed >= place.times


# What fits


def asked() -> list[Event]:
    journal: list[Event] = []

    async def begin() -> None:
        kept = MemoryJournal()
        async with Agent(Script("done")).iter("go", journal=kept, loop_id="loop"):
            journal.extend(await kept.read("loop"))

    asyncio.run(begin())
    return journal


def answered(around: Around) -> Event:
    return ModelAnswered(2.0, 1, assistant("done"), around=around)


def failed(around: Around) -> Event:
    return ModelFailed(2.0, 1, EngineError("busy").record(), around=around)


@pytest.mark.parametrize("make", [answered, failed])
def test_edits_of_another_request_do_not_fit(make: Callable[[Around], Event]) -> None:
    state = fold(asked())
    edit = Sent((Edit(0, 1, (user("else"),)),))
    assert accepts(state, make(Around((edit, Sent()))))
    assert not accepts(state, make(Around((Sent(), Sent((Edit(1, 2),))))))
    fresh = make(Around((edit,), fresh=True))
    assert not accepts(state, fresh), "it is not as it is recorded"
    assert accepts(state, as_recorded(fresh, state))
    foreign = make(Around((Sent((Edit(5, 6),)),), fresh=True))
    assert as_recorded(foreign, state) is foreign
    assert not accepts(state, foreign)


async def test_errors_name_the_middleware(run: Runner) -> None:
    def odd(request: Request) -> Request:
        raise KeyError("city")

    error = await run.failing(MiddlewareFailed, Agent(Script("never"), features=[ChangeRequest(odd)]), "go")
    assert str(error) == "the middleware 'odd' failed: KeyError: 'city'"
    (failed,) = [event for event in await error.partial.events() if isinstance(event, ModelFailed)]
    assert failed.around == Around(skipped="odd")


def test_middleware_is_no_function() -> None:
    with pytest.raises(UserError, match="features= takes objects"):
        Agent("test", features=cast("Any", [one_sided]))
