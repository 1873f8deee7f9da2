"""Workers of this release beside those of the next: what only newer ones can read is left to them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import msgspec
import pytest

from flyball.core.errors import InvalidMessage, JournalTooNew
from flyball.core.events import Event, ModelAnswered
from flyball.core.forms.semstreams import TaskMessage, UserMessage
from flyball.core.ids import new_id
from flyball.core.signals import Signal, SignalType
from flyball.runtime.nats import Crew, NatsJournal, NatsOptions
from flyball.runtime.nats.bus import Bus
from flyball.runtime.nats.crew import KINDS
from flyball.runtime.nats.dead import dead_letters
from flyball.runtime.nats.messages.frame import VERSION, read_exact, read_payload, write
from flyball.runtime.nats.messages.told import write_signal, write_task
from flyball.runtime.nats.runtime import NatsRuntime
from flyball.runtime.nats.subjects import (
    message_subject,
    signal_subject,
    task_subject,
)
from flyball.testing.conformance.samples import from_a_later_release
from tests.orchestrate.channels.test_dispatcher import agents
from tests.patience import PATIENCE
from tests.runtime.nats.conftest import emptied


@pytest.fixture
async def journal(nats: NatsOptions) -> AsyncIterator[NatsJournal]:
    async with emptied(nats) as made:
        yield made


class Tried(logging.Handler):
    """Hears of what is said on a subject: that it was tried, and is given again, or put aside."""

    def __init__(self, subject: str) -> None:
        super().__init__()
        self.subject = subject
        self.times = 0
        self.twice = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage().startswith(self.subject):
            self.times += 1
            if self.times > 1 or record.levelno >= logging.ERROR:
                self.twice.set()


def newer(data: bytes) -> bytes:
    """A message as the next release might write it."""
    message = msgspec.json.decode(data)
    message["flyball"]["version"] = VERSION + 1
    return msgspec.json.encode(message)


def test_what_a_newer_one_wrote_is_known_for_that() -> None:
    written = b'{"type":{"domain":"a","category":"b","version":"v1"},"flyball":{"version":%d,"body":%s}}'
    for body in (b"7", b'{"other":1}'):
        with pytest.raises(JournalTooNew, match="newer"):
            read_exact(written % (VERSION + 1, body), int, "here")
    with pytest.raises(InvalidMessage, match="another release"):
        read_exact(written % (VERSION - 1, b"7"), int, "here")
    assert read_exact(written % (VERSION, b"7"), int, "here") == 7


@pytest.mark.parametrize("payload", [b"{}", b'{"task_id":7}', b"null", b'"text"'])
@pytest.mark.parametrize("category", ["task", "of the next release"])
def test_an_envelope_of_a_later_version_is_known_for_that_whatever_it_holds(
    category: str, payload: bytes
) -> None:
    def written(version: str) -> bytes:
        kind = b'{"domain":"agentic","category":"%s","version":"%s"}' % (category.encode(), version.encode())
        return b'{"id":"m","type":%s,"payload":%s,"meta":{}}' % (kind, payload)

    for version in ("v2", "v17"):
        with pytest.raises(JournalTooNew, match="newer workers"):
            read_payload(written(version), "here")
    for version in ("v0", "v", "2", "v2.1", "v-2", "V2", "v02", "v" + "9" * 5000, "v²"):
        with pytest.raises(InvalidMessage):
            read_payload(written(version), "here")
    with pytest.raises(InvalidMessage, match="domain"):
        read_payload(written("v2").replace(b"agentic", b"others"), "here")


def test_what_only_flyball_says_is_known_for_newer_too() -> None:
    written = b'{"type":{"domain":"flyball","category":"time","version":"v%d"},"flyball":[]}'
    with pytest.raises(JournalTooNew, match="newer"):
        read_exact(written % (VERSION + 1), int, "here")
    with pytest.raises(InvalidMessage):
        read_exact(written % VERSION, int, "here")


async def test_what_others_say_in_a_later_version_waits_for_a_newer_worker(journal: NatsJournal) -> None:
    task = TaskMessage(task_id=new_id(), role="general", model="default", prompt="Hello")
    said = UserMessage(
        message_id=new_id(), channel_type="slack", channel_id="v", user_id="ann", content="Hello"
    )
    sent = {task_subject(task.task_id): write(task, "t"), message_subject("slack", "v"): write(said, "m")}
    bus, agent = Bus(journal.connection, journal.layout), agents()[0]
    await bus.set_up()
    # By each kind of worker, these are read as those are.
    sent |= {"agent.request.one": sent[task_subject(task.task_id)], "tool.execute.book": write(task, "x")}
    before = len(await dead_letters(bus))
    async with Crew(journal, agents(), KINDS, hold=1.0):
        for subject, data in sent.items():
            await bus.publish(subject, data.replace(b'"v1"', b'"v2"'), new_id())
        runtime = NatsRuntime(journal)
        other = await runtime.submit(agent, "Beside it")
        assert (await runtime.result(agent, other)).output == "Beside it"
        await asyncio.sleep(1.0)  # one that is put aside is so at the first try
    assert len(await dead_letters(bus)) == before, "nothing is put aside"
    await journal.connection.js.purge_stream("AGENT")  # no worker of another test can do anything with them


async def test_a_task_of_a_newer_release_waits_for_a_newer_worker(
    journal: NatsJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = agents()[0]
    _, started, _ = agent.begun("Hello", {"loop_id": new_id()})
    bus, runtime = Bus(journal.connection, journal.layout), NatsRuntime(journal)
    await bus.set_up()
    before = len(await dead_letters(bus))
    async with Crew(journal, agents(), hold=1.0):
        await bus.publish(task_subject(started.loop_id), newer(write_task(started)), new_id())
        other = await runtime.submit(agent, "Beside it")
        assert (await runtime.result(agent, other)).output == "Beside it"
        await asyncio.sleep(1.5)  # for as long as five tries would take, and they would be the end of it
        assert not await journal.read(started.loop_id)
    assert len(await dead_letters(bus)) == before, "it is not put aside"
    monkeypatch.setattr("flyball.runtime.nats.messages.frame.VERSION", VERSION + 1)
    async with Crew(journal, agents(), hold=1.0), asyncio.timeout(PATIENCE):
        await journal.wait(started.loop_id, 0)
        assert (await runtime.result(agent, started.loop_id)).output == "Hello"


async def test_however_many_messages_wait_for_newer_workers_others_go_on(journal: NatsJournal) -> None:
    agent, bus, runtime = agents()[0], Bus(journal.connection, journal.layout), NatsRuntime(journal)
    await bus.set_up()
    data = b'{"type":{"domain":"flyball","category":"x","version":"v999"}}'
    async with Crew(journal, agents(), hold=1.0), asyncio.timeout(2 * PATIENCE):
        for number in range(10_500):
            await journal.connection.publish(f"tool.result.{number}", data)
        loop = await runtime.submit(agent, "Beside them")
        assert (await runtime.result(agent, loop)).output == "Beside them"
        while (await journal.connection.js.consumer_info("AGENT", "loop")).num_ack_pending < 10_500:  # noqa: ASYNC110 - the server counts
            await asyncio.sleep(0.1)
        loop = await runtime.submit(agent, "And then")
        assert (await runtime.result(agent, loop)).output == "And then"
    await journal.connection.js.purge_stream("AGENT")


@pytest.mark.parametrize("number", range(len(from_a_later_release())))
async def test_a_loop_that_a_newer_worker_went_on_with_is_left_to_it(
    journal: NatsJournal, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    agent = agents()[0]
    runtime = NatsRuntime(journal)
    bus = Bus(journal.connection, journal.layout)
    await bus.set_up()
    before = len(await dead_letters(bus))
    async with Crew(journal, agents(), hold=1.0):
        loop = await runtime.submit(agent, "book it")
        events: list[Event] = []
        async with asyncio.timeout(PATIENCE):
            while not any(isinstance(event, ModelAnswered) for event in events):
                await journal.wait(loop, len(events))
                events = await journal.read(loop)
        await journal.append(loop, [from_a_later_release()[number]], len(events))
        with pytest.raises(JournalTooNew):
            await journal.read(loop)
        tried = Tried(signal_subject(loop))
        monkeypatch.setattr(logging.getLogger("flyball.nats"), "handlers", [tried])
        logging.getLogger("flyball.nats").setLevel(logging.DEBUG)
        approval = Signal(SignalType.APPROVE, new_id())
        await bus.publish(tried.subject, write_signal(loop, approval, events[-1].at), approval.id)
        other = await runtime.submit(agent, "Beside it")
        assert (await runtime.result(agent, other)).output == "Beside it"
        async with asyncio.timeout(PATIENCE):
            await tried.twice.wait()
        logging.getLogger("flyball.nats").setLevel(logging.NOTSET)
    assert len(await dead_letters(bus)) == before, "nothing is put aside"
    with pytest.raises(JournalTooNew):
        await runtime.result(agent, loop)
    await journal.connection.js.purge_stream("AGENT")
