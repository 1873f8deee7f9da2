"""People on a channel over NATS: what they say is taken once, and they are told what becomes of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from flyball import Agent, tool
from flyball.core.deferred import DeferredToolResult
from flyball.core.errors import OrchestrationFailure
from flyball.core.events import Event, SignalReceived, Started
from flyball.core.forms.semstreams import UserMessage, UserResponse
from flyball.core.ids import new_id
from flyball.inference.answers import tool_call_answer
from flyball.inference.request import Request
from flyball.inference.scripted import FunctionEngine
from flyball.orchestrate.channels import signal_of
from flyball.orchestrate.channels.conversations import Conversation
from flyball.orchestrate.permissions import Policy
from flyball.orchestrate.recorded import calls_waiting
from flyball.runtime.nats import Crew, NatsJournal, NatsOptions
from flyball.runtime.nats.bus import Bus
from flyball.runtime.nats.channel import NatsChannel
from flyball.runtime.nats.crew import KINDS
from flyball.runtime.nats.dead import dead_letters, requeue
from flyball.runtime.nats.fetching import after as messages_after
from flyball.runtime.nats.messages.frame import write
from flyball.runtime.nats.naming import token
from flyball.runtime.nats.runtime import NatsRuntime
from flyball.runtime.nats.subjects import message_subject
from flyball.runtime.nats.wire import AGENT
from flyball.runtime.nats.workers.dispatch import DispatchWorker
from flyball.tool.errors import CallDeferred
from tests.orchestrate.channels.test_dispatcher import ROLES, agents, book
from tests.patience import PATIENCE
from tests.runtime.nats.conftest import emptied
from tests.runtime.nats.test_kills import Worker
from tests.runtime.nats.test_runtime import dead
from tests.runtime.nats.worker_child import make_agent, make_bomber

# pyright: reportPrivateUsage=false


@tool
async def find() -> str:
    """Find a city; somebody says later which."""
    raise CallDeferred("somebody looks for one")


async def _travelling(request: Request) -> Any:
    results = [result.text for one in request.messages for result in one.tool_results]
    return tool_call_answer("find", {}) if not results else tool_call_answer("book", {"city": results[0]})


def traveller() -> Agent[Any, Any]:
    """Has a city found, and then books a trip, which somebody has to approve."""
    return Agent(FunctionEngine(_travelling, info="travelling"), name="traveller", tools=[find, book])


async def _drafted(request: Request) -> str:
    return f"draft {len(request.messages)}"


def drafter() -> Agent[Any, Any]:
    """Writes drafts, which somebody has to approve."""
    return Agent(FunctionEngine(_drafted, info="drafts"), name="clerk", output_approval=True)


OPTIONS: dict[str, Any] = {"policy": Policy(roles=ROLES)}


@pytest.fixture
async def journal(nats: NatsOptions) -> AsyncIterator[NatsJournal]:
    async with emptied(nats) as made:
        yield made


@asynccontextmanager
async def working(journal: NatsJournal, **options: Any) -> AsyncGenerator[NatsChannel]:
    """All workers, and a channel that nobody else has."""
    async with Crew(journal, agents(), KINDS, dispatch=OPTIONS, **options):
        yield NatsChannel(Bus(journal.connection, journal.layout), "slack", new_id())


def message(channel: NatsChannel, content: str, by: str = "ann") -> UserMessage:
    kind, name = channel.channel_type, channel.channel_id
    return UserMessage(
        message_id=new_id(), channel_type=kind, channel_id=name, user_id=by, content=content, timestamp=1.0
    )


async def until(channel: NatsChannel, kind: str, after: int = 0) -> tuple[int, list[UserResponse]]:
    """What is told, up to the first response of a kind; and the place of that."""
    told: list[UserResponse] = []
    async with asyncio.timeout(PATIENCE), aclosing(channel.responses(after)) as responses:
        async for place, response in responses:
            told.append(response)
            if response.type == kind:
                return place, told
    raise AssertionError("it does not end")


async def until_recorded(journal: NatsJournal, loop_id: str) -> list[Event]:
    """The events of a loop, once it has any."""
    assert await journal.wait(loop_id, 0, PATIENCE)
    return await journal.read(loop_id)


async def test_what_is_said_is_answered_on_the_channel(journal: NatsJournal) -> None:
    async with working(journal) as channel:
        said = message(channel, "Hello")
        await channel.say(said)
        place, told = await until(channel, "result")
        assert (told[-1].content, told[-1].user_id) == ("Hello", "ann")
        assert told[0].type == "status"
        await channel.say(said)  # the same again is on the wire once
        await channel.say(message(channel, "more"))
        _, told = await until(channel, "result", place)
        assert told[-1].content == "Hello | more"


async def test_two_people_may_have_messages_of_the_same_id(journal: NatsJournal) -> None:
    async with working(journal) as channel:
        one = message(channel, "Hello")
        await channel.say(one)
        place, _ = await until(channel, "result")
        await channel.say(replace(one, user_id="cat", content="Good day"))
        _, told = await until(channel, "result", place)
        assert (told[-1].user_id, told[-1].content) == ("cat", "Good day")


async def before_anybody_works(journal: NatsJournal) -> NatsChannel:
    """A channel on which things can be said that nobody takes yet."""
    bus = Bus(journal.connection, journal.layout)
    await bus.set_up()
    return NatsChannel(bus, "slack", new_id())


@pytest.mark.parametrize("crews", [1, 2])
async def test_what_is_said_is_taken_in_the_order_in_which_it_was_said(
    journal: NatsJournal, crews: int
) -> None:
    """Also where much of it waits, and several workers share it: none overtakes another in a conversation."""
    channel = await before_anybody_works(journal)
    words = [f"/new word {number}" for number in range(8)]
    async with AsyncExitStack() as stack:
        for word in words:
            await channel.say(message(channel, word))
        for _ in range(crews):
            own = await stack.enter_async_context(await NatsJournal.open(journal.connection.options))
            await stack.enter_async_context(Crew(own, agents(), KINDS, dispatch=OPTIONS))
        said: list[str] = []
        talk = Conversation(f"slack/{channel.channel_id}/user:ann")
        for number in range(1, len(words) + 1):
            (started, *_) = await until_recorded(journal, talk.loop_id(number))
            assert isinstance(started, Started)
            said.append("" if started.prompt is None else started.prompt.text)
        assert said == [word.removeprefix("/new ") for word in words]
        place = 0
        for _ in words:
            place, _ = await until(channel, "result", place)


async def test_a_stop_does_not_overtake_what_it_stops(journal: NatsJournal) -> None:
    channel = await before_anybody_works(journal)
    await channel.say(message(channel, "book"))
    await channel.say(message(channel, "/cancel"))
    async with Crew(journal, agents(), KINDS, dispatch=OPTIONS):
        _, told = await until(channel, "text")
        assert told[-1].content.startswith("cancel: "), [one.content for one in told]


async def test_a_slash_in_who_speaks_is_none_in_what_is_told(journal: NatsJournal) -> None:
    """What one is told is not taken for what another was told before."""
    async with working(journal) as channel:
        commands = [("a/b", "m"), ("a", "b/m")]
        for who, name in commands:
            await channel.say(replace(message(channel, "/help", who), message_id=name))
        told: list[str] = []
        async with asyncio.timeout(PATIENCE), aclosing(channel.responses()) as responses:
            async for _, response in responses:
                told.append(response.user_id)
                if len(told) == len(commands):
                    break
        assert sorted(told) == ["a", "a/b"]


async def test_what_failed_is_not_part_of_what_was_said(journal: NatsJournal) -> None:
    async with working(journal) as channel:
        place = 0
        for content, kind in (("one", "result"), ("fail", "error"), ("two", "result")):
            await channel.say(message(channel, content))
            place, told = await until(channel, kind, place)
        assert told[-1].content == "one | two"


async def test_a_call_is_asked_about_approved_and_told(journal: NatsJournal) -> None:
    async with working(journal) as channel:
        await channel.say(message(channel, "book it"))
        place, told = await until(channel, "prompt")
        prompt = told[-1]
        await channel.say(signal_of(prompt.actions[0], prompt, new_id(), "ann"))
        place, told = await until(channel, "error", place)
        assert "may not approve" in told[-1].content
        await channel.say(signal_of(prompt.actions[0], prompt, new_id(), "ben"))
        _, told = await until(channel, "result", place)
        assert told[-1].content == "book it | booked Rome"
        events = await journal.read(prompt.in_reply_to)
        assert [one.signal.by for one in events if isinstance(one, SignalReceived)] == ["ben"]


async def test_who_was_asked_by_another_worker_sends_an_answer_back_by_words(journal: NatsJournal) -> None:
    bus = Bus(journal.connection, journal.layout)
    await bus.set_up()
    channel = NatsChannel(bus, "slack", new_id())
    async with Crew(journal, [drafter()], ["loop", "model", "tools"]):
        async with Crew(journal, [drafter()], ["dispatch"], dispatch=OPTIONS, hold=1.0):
            await channel.say(message(channel, "write", by="ben"))
            place, told = await until(channel, "prompt")
            async with asyncio.timeout(PATIENCE):
                noted = 0
                while not noted:
                    noted = await bus.told_up_to(told[-1].in_reply_to)
                    await asyncio.sleep(0.05)  # a worker notes it
        async with Crew(journal, [drafter()], ["dispatch"], dispatch=OPTIONS, hold=1.0):
            await channel.say(message(channel, "softer", by="ben"))
            _, told = await until(channel, "prompt", place)
        assert told[-1].blocks[0].content == "draft 3"


async def test_a_reviewer_in_the_thread_is_asked_and_who_comes_again_is_told_the_rest(
    journal: NatsJournal,
) -> None:
    async with Crew(journal, [drafter()], KINDS, dispatch=OPTIONS):
        channel = NatsChannel(Bus(journal.connection, journal.layout), "slack", new_id())
        await channel.say(replace(message(channel, "write", by="ben"), thread_id="t"))
        place, told = await until(channel, "prompt")
        await channel.say(replace(message(channel, "/approve", by="ben"), thread_id="t"))
        place, _ = await until(channel, "result", place)
        await channel.say(replace(message(channel, "another"), thread_id="t"))
        place, told = await until(channel, "prompt", place)
        prompt = told[-1]
        assert (prompt.user_id, prompt.blocks[0].content) == ("ben", "draft 3")
        # Whoever was asked goes away, and comes again after the prompt.
        again = NatsChannel(Bus(journal.connection, journal.layout), "slack", channel.channel_id)
        await again.say(signal_of(prompt.actions[0], prompt, new_id(), "ben"))
        _, told = await until(again, "result", place)
        assert (told[-1].user_id, told[-1].content) == ("ann", "draft 3")
        assert not [one for one in told if one.type == "prompt"]


async def test_what_others_say_to_a_loop_is_told_on_its_channel(journal: NatsJournal) -> None:
    async with working(journal) as channel:
        await channel.say(message(channel, "book it"))
        place, told = await until(channel, "prompt")
        await NatsRuntime(journal).signal(told[-1].in_reply_to, "approve", by="the API")
        _, told = await until(channel, "result", place)
        assert any("approved by the API" in one.content for one in told)


async def test_who_comes_later_goes_on_telling(journal: NatsJournal) -> None:
    async with Crew(journal, agents(), ["loop", "model", "tools"], hold=1.0):
        async with working(journal, hold=1.0) as channel:
            await channel.say(message(channel, "book it"))
            place, told = await until(channel, "prompt")
        # Nobody talks with people now; what happens meanwhile is told by who comes next.
        await NatsRuntime(journal).signal(told[-1].in_reply_to, "approve", by="root")
        await NatsRuntime(journal).result(agents()[0], told[-1].in_reply_to)
        async with Crew(journal, agents(), ["dispatch"], dispatch=OPTIONS, hold=1.0):
            _, later = await until(channel, "result", place)
        names = [one.response_id for one in (*told, *later)]
        assert len(set(names)) == len(names)


async def test_what_could_not_be_told_is_told_when_it_is_given_out_again(
    journal: NatsJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell = DispatchWorker._tell

    async def fails(*_: object) -> None:
        raise OrchestrationFailure("no", retryable=False)

    monkeypatch.setattr(DispatchWorker, "_tell", fails)
    async with working(journal) as channel, await NatsRuntime.open(journal.connection.options) as runtime:
        await channel.say(message(channel, "Hello"))
        _, told = await until(channel, "status")
        loop_id = told[0].in_reply_to
        await dead(runtime, 2)  # its beginning, and its end
        recorded = await journal.read(loop_id)
        monkeypatch.setattr(DispatchWorker, "_tell", tell)
        for number, aside in await dead_letters(runtime.bus):
            await requeue(runtime.bus, number, aside)
        _, told = await until(channel, "result")
        assert [one.content for one in told if one.type == "result"] == ["Hello"]
    assert await journal.read(loop_id) == recorded


async def test_loops_of_nobody_are_told_to_nobody(journal: NatsJournal) -> None:
    async with working(journal):
        runtime = NatsRuntime(journal)
        loop = await runtime.submit(agents()[0], "Hello")
        assert (await runtime.result(agents()[0], loop)).output == "Hello"
        told = await messages_after(journal.connection, AGENT, "user.response.>")
        assert not [one for one in told if loop.encode() in one.data]


async def test_what_is_no_message_is_put_aside(journal: NatsJournal) -> None:
    async with working(journal) as channel:
        bus = Bus(journal.connection, journal.layout)
        await bus.publish("user.message.slack.x", b"nonsense", new_id())
        await bus.publish("user.message.elsewhere", b"{}", new_id())
        await channel.say(message(channel, "Hello"))
        assert (await until(channel, "result"))[1][-1].content == "Hello"


def _edited(said: UserMessage, **payload: Any) -> bytes:
    """A message with other things in its payload than its form takes."""
    document = msgspec.json.decode(write(said, said.message_id))
    document["payload"] |= payload
    return msgspec.json.encode(document)


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        ({"attachments": [{"type": "film", "name": "x"}]}, "film"),
        ({"attachments": [{"type": 7}]}, "attachments"),
        ({"content": ""}, "content"),
        ({"content": ["x"]}, "content"),
        ({"reply_to": "a\nb"}, "reply_to"),
    ],
)
async def test_who_says_what_cannot_be_taken_is_told_why(
    journal: NatsJournal, payload: dict[str, Any], why: str
) -> None:
    async with working(journal) as channel:
        bus, said = Bus(journal.connection, journal.layout), message(channel, "Hello")
        where = message_subject(channel.channel_type, channel.channel_id)
        await bus.publish(where, _edited(said, thread_id="t", **payload), new_id())
        told = (await until(channel, "error"))[1][-1]
        assert (told.user_id, told.thread_id, told.in_reply_to) == ("ann", "t", said.message_id)
        assert why in told.content
        assert not await dead_letters(bus)
    assert not await journal.loops("", 10)


@pytest.mark.parametrize("payload", [{"user_id": ""}, {"message_id": 7}, {"user_id": "a\nb"}])
async def test_what_nobody_can_be_answered_is_put_aside(
    journal: NatsJournal, payload: dict[str, Any]
) -> None:
    async with working(journal) as channel:
        bus, said = Bus(journal.connection, journal.layout), message(channel, "Hello")
        where = message_subject(channel.channel_type, channel.channel_id)
        film = [{"type": "film", "name": "x"}]
        await bus.publish(where, _edited(said, attachments=film, **payload), new_id())
        async with asyncio.timeout(PATIENCE):
            aside: list[str] = []
            while aside != [where]:
                aside = [one.subject for _, one in await dead_letters(bus)]
                await asyncio.sleep(0.05)  # a worker puts it there


async def test_what_is_said_elsewhere_than_it_says_is_put_aside(journal: NatsJournal) -> None:
    """Who may publish for one channel speaks on no other."""
    subjects = {"user.message.slack.other", "user.message.mail", "user.message.a.b.c"}
    async with working(journal) as channel:
        bus, forged = Bus(journal.connection, journal.layout), message(channel, "Hello", by="root")
        for subject in subjects:
            await bus.publish(subject, write(forged, forged.message_id), new_id())
        async with asyncio.timeout(PATIENCE):
            aside: set[str] = set()
            while not subjects <= aside:
                aside = {one.subject for _, one in await dead_letters(bus)}
                await asyncio.sleep(0.05)  # a worker puts them there
    assert not await journal.loops("", 10)


@pytest.mark.parametrize("name", ["slack", "id"])
async def test_semstreams_subjects_have_one_name(journal: NatsJournal, name: str) -> None:
    async with working(journal) as channel:
        said = message(channel, "Hello")
        word = token(channel.channel_id) if name == "id" else name
        data = write(said, said.message_id)
        await Bus(journal.connection, journal.layout).publish(f"user.message.{word}", data, new_id())
        assert (await until(channel, "result"))[1][-1].content == "Hello"


async def test_a_prompt_after_a_result_from_outside_is_told(journal: NatsJournal) -> None:
    """A loop rests while it waits for the result; when it goes on, somebody is asked."""
    async with Crew(journal, [traveller()], KINDS, dispatch=OPTIONS):
        channel = NatsChannel(Bus(journal.connection, journal.layout), "slack", new_id())
        await channel.say(message(channel, "book it"))
        place, waits = 0, None
        async with asyncio.timeout(PATIENCE), aclosing(channel.responses(0)) as responses:
            while waits is None or "waits for its result" not in waits.content:
                place, waits = await anext(responses)
        (call,) = await calls_waiting(journal, waits.in_reply_to)
        result = DeferredToolResult("find", call.call.id, "Rome")
        await NatsRuntime(journal).answer(waits.in_reply_to, [result])
        _, told = await until(channel, "prompt", place)
        assert "wants to run book" in told[-1].content


async def test_a_stream_of_pieces_is_joined(journal: NatsJournal) -> None:
    async with working(journal) as channel:
        await channel.say(message(channel, "word " * 50))
        _, told = await until(channel, "result")
        pieces = [one for one in told if one.type == "stream"]
        assert "".join([one.content for one in pieces]) in ("", told[-1].content)
        assert len(pieces) <= 3


async def test_who_talks_with_people_is_killed_and_everybody_is_told_once(
    nats: NatsOptions, journal: NatsJournal, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    log.touch()
    walkers = [make_agent(), make_bomber()]
    dispatch = Worker(nats, log, "dispatch")
    try:
        async with Crew(journal, walkers, ["loop", "model", "tools"]):
            bus = Bus(journal.connection, journal.layout)
            channels = [NatsChannel(bus, "slack", new_id()) for _ in range(8)]
            for number, channel in enumerate(channels):
                await channel.say(message(channel, "Walk.", by=f"user{number}"))
                if number % 3 == 2:
                    dispatch.kill()
            for number in (20, 30):
                await asyncio.sleep(number / 100)  # wherever it is just then
                dispatch.kill()
            for channel in channels:
                _, told = await until(channel, "result")
                assert told[-1].content == "all done"
                lasting = [one.response_id for one in told if one.type != "stream"]
                assert len(set(lasting)) == len(lasting), lasting
    finally:
        dispatch.stop()
