"""Workers of one kind each, with credentials of their own: all that loops do, and nothing else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from nats.js.errors import NotFoundError

from flyball import Agent, RunContext, tool
from flyball.core.errors import (
    CancelledTimeout,
    FlyballError,
    JournalFailure,
    JournalFull,
    JournalUnreachable,
    PermissionDenied,
    UserError,
    WorkPutAside,
)
from flyball.core.events import ChildEnded, ModelAnswered, SignalReceived, TimePassed
from flyball.core.forms.semstreams import UserMessage, UserResponse
from flyball.core.limits import Limits
from flyball.core.signals import Signal, SignalType
from flyball.core.tools import Safety
from flyball.orchestrate.channels import signal_of
from flyball.orchestrate.channels.conversations import Conversation
from flyball.orchestrate.commands import Report
from flyball.orchestrate.permissions import Policy
from flyball.runtime.nats import Crew, NatsJournal, NatsRuntime
from flyball.runtime.nats.bus import KEPT, Bus
from flyball.runtime.nats.channel import NatsChannel
from flyball.runtime.nats.connection import Connection, connect
from flyball.runtime.nats.crew import KINDS
from flyball.runtime.nats.dead import dead_letters
from flyball.runtime.nats.entry import LENGTH
from flyball.runtime.nats.fetching import after
from flyball.runtime.nats.hiring import UNUSED, Post, hire
from flyball.runtime.nats.identity import Role
from flyball.runtime.nats.messages.frame import own
from flyball.runtime.nats.messages.told import write_signal
from flyball.runtime.nats.naming import LoopSubjects, bucket_key
from flyball.runtime.nats.wire import Kind
from flyball.runtime.services import NatsDeadLetters
from flyball.testing import ScriptedEngine, tool_call
from tests.inference.wrapped import logged
from tests.patience import PATIENCE
from tests.runtime.nats.accounts.conftest import Operated

LARGE = 2_000_000
"""Characters that are too many for a message."""


@asynccontextmanager
async def split(given: Operated, *agents: Agent[Any, Any]) -> AsyncGenerator[NatsRuntime]:
    """A worker of each kind, with its own credentials, and a caller with those of the API."""
    kinds: tuple[Kind, ...] = ("loop", "model", "tools")
    async with (
        await NatsJournal.open(given.creds("acme", Role.LOOP)) as loop,
        await NatsJournal.open(given.creds("acme", Role.MODEL)) as model,
        await NatsJournal.open(given.creds("acme", Role.TOOLS)) as tools,
    ):
        crews = [Crew(one, agents, [kind]) for one, kind in zip((loop, model, tools), kinds, strict=True)]
        api = await NatsRuntime.open(given.creds("acme", Role.API))
        async with api as runtime, crews[0], crews[1], crews[2]:
            working = [asyncio.ensure_future(crew.work()) for crew in crews]
            try:
                yield runtime
                assert not [task for task in working if task.done()], "a worker has ended"
            finally:
                for task in working:
                    task.cancel()
                await asyncio.gather(*working, return_exceptions=True)


@tool
async def price(item: str) -> str:
    """The price of an item."""
    return f"4 {item}"


@tool(approval=True)
async def pay() -> str:
    """Pay."""
    return "paid"


@tool(safety=Safety.AT_MOST_ONCE)
async def launch(size: int) -> str:
    """Launch, once."""
    return "x" * size


async def test_a_loop_goes_through_workers_that_may_do_no_more_than_their_own(acme: Operated) -> None:
    """With what is too large for a message, what may start once, and the pieces of answers."""
    script = (tool_call("price", {"item": "tea"}), tool_call("launch", {"size": LARGE}), "Done.")
    agent = Agent(ScriptedEngine(*script), tools=[price, launch], name="shop")
    async with split(acme, agent) as runtime:
        async with asyncio.timeout(PATIENCE):
            async with agent.run_stream("Buy.", runtime=runtime, loop_id="one") as stream:
                pieces = [piece async for piece in stream.text()]
        assert "".join(pieces) == "Done."
        result = await runtime.result(agent, "one")
        assert await runtime.journal.loops() == ["one"]
        results = [one for message in result.messages for one in message.tool_results]
        assert [len(one.text) for one in results] == [5, LARGE]
        assert not await dead_letters(runtime.bus)


async def test_people_are_talked_with_by_a_worker_that_may_do_that(acme: Operated) -> None:
    agent = Agent(ScriptedEngine(tool_call("pay", {}), "Done."), tools=[pay], name="shop")
    async with (
        split(acme, agent) as runtime,
        await NatsJournal.open(acme.creds("acme", Role.DISPATCH)) as journal,
        Crew(journal, [agent], ["dispatch"], dispatch={"policy": Policy(roles={"ann": ("admin",)})}),
    ):
        channel = NatsChannel(runtime.bus, "web", "shop")
        said = UserMessage(
            message_id="m", channel_type="web", channel_id="shop", user_id="ann", content="Buy."
        )
        await channel.say(said)
        told: list[UserResponse] = []
        async with asyncio.timeout(PATIENCE), aclosing(channel.responses()) as responses:
            async for _, response in responses:
                told.append(response)
                if response.type == "prompt":
                    await channel.say(signal_of(response.actions[0], response, "s", "ann"))
                if response.type in ("result", "error"):
                    break
        assert (told[-1].type, told[-1].content) == ("result", "Done.")
        assert not await dead_letters(runtime.bus)


async def _up_to_the_result(
    responses: AsyncGenerator[tuple[int, UserResponse]],
) -> AsyncGenerator[UserResponse]:
    async for _, response in responses:
        yield response
        if response.type == "result":
            return


async def test_nobody_can_keep_people_from_being_told_but_who_tells_them(acme: Operated) -> None:
    """And what cannot be read is as if nothing had been told."""
    agent = Agent(ScriptedEngine("Hello."), name="greeter")
    async with (
        await NatsJournal.open(acme.creds("acme", Role.DISPATCH)) as journal,
        asyncio.timeout(PATIENCE),
    ):
        bus = Bus(journal.connection, journal.layout)
        await bus.set_up()
        await bus.note_told("a loop", 7)
        for role in (Role.TOOLS, Role.MODEL, Role.API):
            line = await connect(acme.creds("acme", role))
            try:
                with pytest.raises(PermissionDenied):
                    await line.request(f"$KV.CLAIMS.told.{bucket_key('a loop')}", b"999999")
            finally:
                await line.aclose()
        assert await bus.told_up_to("a loop") == 7
        for garbage in (b"", b"x", b"-1", b"7.5", b"9" * 5000, "٣".encode(), b"\xff"):
            await journal.connection.request(f"$KV.CLAIMS.told.{bucket_key('a loop')}", garbage)
            assert await bus.told_up_to("a loop") == 0
        # Nor do they end the worker who reads them.
        async with split(acme, agent) as runtime, Crew(journal, [agent], ["dispatch"]):
            channel = NatsChannel(runtime.bus, "web", "shop")
            talk = Conversation("web/shop/user:ann").loop_id(1)
            await journal.connection.request(f"$KV.CLAIMS.told.{bucket_key(talk)}", b"garbage")
            await channel.say(
                UserMessage(
                    message_id="m", channel_type="web", channel_id="shop", user_id="ann", content="Hi."
                )
            )
            async with aclosing(channel.responses()) as responses:
                told = [one async for one in _up_to_the_result(responses)]
            assert (told[-1].content, told[-1].in_reply_to) == ("Hello.", talk)


async def test_what_may_start_once_is_not_started_again_by_another_worker(acme: Operated) -> None:
    begun, runs = asyncio.Event(), list[str]()

    @tool(safety=Safety.AT_MOST_ONCE)
    async def start() -> str:
        """Start something, once."""
        runs.append("start")
        begun.set()
        await asyncio.sleep(600)
        return ""

    agent = Agent(ScriptedEngine(tool_call("start", {}), "Who knows."), tools=[start], name="starter")
    async with (
        await NatsJournal.open(acme.creds("acme", Role.LOOP)) as loop,
        await NatsJournal.open(acme.creds("acme", Role.MODEL)) as model,
        await NatsJournal.open(acme.creds("acme", Role.TOOLS)) as tools,
        await NatsRuntime.open(acme.creds("acme", Role.API)) as runtime,
        Crew(loop, [agent], ["loop"]),
        Crew(model, [agent], ["model"]),
        asyncio.timeout(PATIENCE),
    ):
        await runtime.submit(agent, "go", loop_id="one")
        async with Crew(tools, [agent], ["tools"]):
            await begun.wait()
        async with Crew(tools, [agent], ["tools"]):
            assert (await runtime.result(agent, "one")).output == "Who knows."
    assert runs == ["start"]


async def test_signals_reach_loops_and_time_passes_for_them(acme: Operated) -> None:
    asked, stopped = asyncio.Event(), asyncio.Event()

    @tool
    async def wait(ctx: RunContext[None]) -> str:
        """Work on until told to detach."""
        asked.set()
        await ctx.detach.wait()
        return "detached"

    @tool
    async def sleep() -> str:
        """Never return."""
        try:
            asked.set()
            await asyncio.sleep(600)
        finally:
            stopped.set()
        return ""

    def agent(name: str, using: Any, **more: Any) -> Agent[Any, Any]:
        engine = ScriptedEngine(tool_call(using.name, {}), "Done.")
        return Agent(engine, tools=[using], name=name, **more)

    waiting, sleeping = agent("waiting", wait), agent("sleeping", sleep)
    asking = agent("asking", pay, limits=Limits(timeout=0.5))
    async with split(acme, waiting, sleeping, asking) as runtime, asyncio.timeout(PATIENCE):
        await runtime.submit(waiting, "go", loop_id="waiting")
        await asked.wait()
        await runtime.signal("waiting", "detach")
        assert (await runtime.result(waiting, "waiting")).output == "Done."
        asked.clear()
        await runtime.submit(sleeping, "go", loop_id="sleeping")
        await asked.wait()
        await runtime.signal("sleeping", "cancel")
        await stopped.wait()
        await runtime.submit(asking, "go", loop_id="asking")
        with pytest.raises(CancelledTimeout):
            await runtime.result(asking, "asking")


FORBIDDEN = [
    "$JS.API.STREAM.INFO.JOURNAL_0",
    "$JS.API.STREAM.MSG.GET.JOURNAL_0",
    "$JS.API.DIRECT.GET.JOURNAL_0",
    "$JS.API.DIRECT.GET.JOURNAL_0.fly.j.0.one.begin",
    "$JS.API.DIRECT.GET.AGENT",
    "$JS.API.STREAM.MSG.GET.AGENT",
    "$JS.API.STREAM.MSG.GET.AGENT_TOOLS",
    "$JS.API.STREAM.INFO.AGENT",
    "$JS.API.STREAM.NAMES",
    "$JS.API.STREAM.LIST",
    "$JS.API.CONSUMER.CREATE.JOURNAL_0",
    "$JS.API.CONSUMER.CREATE.AGENT_TOOLS.mine.tool.execute.price",
    "$JS.API.CONSUMER.DURABLE.CREATE.AGENT.mine",
    "$JS.API.CONSUMER.DURABLE.CREATE.AGENT_TOOLS.mine",
    "$JS.API.CONSUMER.CREATE.OBJ_FLYBALL_WIRE_TOOLS",
    "$JS.API.CONSUMER.MSG.NEXT.AGENT.model",
    "$JS.API.CONSUMER.MSG.NEXT.AGENT.loop",
    "$JS.API.CONSUMER.MSG.NEXT.AGENT_MODELS.model-for-shop",
    "$JS.ACK.AGENT.loop.1.1.1.1.1",
    "$JS.API.CONSUMER.DELETE.AGENT_TOOLS.tool-price",
    "$JS.API.STREAM.CREATE.SPY",
    "$JS.API.STREAM.UPDATE.AGENT_TOOLS",
    "$JS.API.STREAM.DELETE.JOURNAL_0",
    "$JS.API.STREAM.DELETE.AGENT_TOOLS",
    "$JS.API.STREAM.PURGE.JOURNAL_0",
    "$JS.API.STREAM.PURGE.AGENT_TOOLS",
    "$JS.API.STREAM.PURGE.KV_CLAIMS",
    "$JS.API.STREAM.MSG.DELETE.AGENT_DEAD",
    "$JS.API.STREAM.MSG.GET.OBJ_FLYBALL_BLOBS",
    "$JS.API.STREAM.MSG.GET.OBJ_FLYBALL_WIRE",
    "$JS.API.DIRECT.GET.OBJ_FLYBALL_WIRE",
    "$JS.API.DIRECT.GET.OBJ_FLYBALL_WIRE_TOOLS",
    "$JS.API.DIRECT.GET.KV_CLAIMS.$KV.CLAIMS.x",
    "$JS.API.DIRECT.GET.KV_AGENT_LOOPS.$KV.AGENT_LOOPS.one",
    "$JS.API.STREAM.MSG.GET.KV_AGENT_TRAJECTORIES",
    "$O.FLYBALL_WIRE.M.x",
    "$KV.AGENT_LOOPS.one",
    "$KV.CLAIMS.told.one",
    "$KV.CLAIMS.begun.AGENT.1",
    "$KV.CLAIMS.begun.JOURNAL_0.1",
    "fly.j.0.one.ended",
    "agent.response.one",
    "agent.request.one",
    "agent.task.one",
    "agent.signal.one",
    "tool.execute.price",
    "timer.at.one",
    "fly.d.one",
    "fly.n.0.one.ended",
    "fly.dead.one.agent.response.one",
    "fly.hire.model",
    "_INBOX.loop.x",
]
UNHEARD = [
    "agent.>", "agent.request.>", "agent.response.>", "fly.>", "fly.d.*", "fly.n.>", "tool.>", "_INBOX.>",
    "_INBOX.api.>", "$JS.API.>", "$JS.>", ">", "$KV.>", "$O.>", "fly.hire.*",
]  # fmt: skip


async def test_a_tools_worker_breaks_in_nowhere(acme: Operated) -> None:
    async def heard(message: Any) -> None:
        raise AssertionError(f"{message.subject} was heard")

    line = await connect(acme.creds("acme", Role.TOOLS))
    try:
        async with asyncio.timeout(PATIENCE):
            elsewhere = [one.replace("$JS.API", "fly.api") for one in FORBIDDEN if "$JS.API" in one]
            for subject in (*FORBIDDEN, *elsewhere):
                with pytest.raises(PermissionDenied, match="a user of the role tools of the tenant 'acme'"):
                    await line.request(subject, b"{}")
            with pytest.raises(PermissionDenied, match=r"direct\.get\.journal_0"):
                await after(line, "JOURNAL_0", "fly.j.0.>")
            for subject in UNHEARD:
                await line.subscribe(subject, heard)
                with pytest.raises(PermissionDenied, match="may not hear"):
                    await line.flush(subject)
    finally:
        await line.aclose()


async def test_what_a_server_answers_is_taken_for_nothing_wherever_it_is_sent(acme: Operated) -> None:
    """Who asks says on which subject the answer comes: it is a way to say something where one may not."""
    asking = {
        "fly.api.CONSUMER.MSG.NEXT.AGENT_TOOLS.tools-for-x": b'{"batch": 1, "expires": 100000000}',
        "fly.api.STREAM.MSG.GET.KV_CLAIMS": b'{"last_by_subj": "$KV.CLAIMS.forged"}',
        "fly.api.CONSUMER.INFO.AGENT_TOOLS.tools-for-x": b"",
        "tool.result.forged": b"{}",
        "fly.hire.tools": b"{}",
    }
    sent_to = (
        "fly.j.0.one.ended",
        "agent.response.one",
        "agent.signal.one",
        "fly.dead.one.agent.request.one",
        "fly.d.one",
        "fly.n.0.one.ended",
        "$JS.API.STREAM.PURGE.JOURNAL_0",
        "$JS.API.STREAM.DELETE.AGENT",
    )
    agent = Agent(ScriptedEngine("One.", "Two."), name="counter")
    forged = own("time", "x", Report("one", TimePassed(1.0)))
    async with split(acme, agent) as runtime, asyncio.timeout(PATIENCE):
        assert (await agent.run("?", runtime=runtime, loop_id="one")).output == "One."
        before = await runtime.journal.read("one")
        line = await connect(acme.creds("acme", Role.TOOLS))
        try:
            await hire(line, Post("AGENT_TOOLS", "tools-for-x", ("tool.for.x",)))
            await line.request("$KV.CLAIMS.forged", forged)
            for where in sent_to:
                await line.request("tool.for.x", forged, {"Flyball-Length": "9"})
                for subject, data in asking.items():
                    await line.publish(subject, data, reply=where)
            await line.flush()
        finally:
            await line.aclose()
        assert await runtime.journal.read("one") == before
        assert (await agent.run("?", runtime=runtime)).output == "Two."
        assert (await runtime.result(agent, "one")).output == "One."
        assert await runtime.journal.read("one") == before


def _asking(role: Role) -> tuple[str, str, dict[str, bytes]]:
    """For a role: a stream and a consumer, and all that its users may ask, which the server answers."""
    stream, kind, said, blobs, key = {
        Role.TOOLS: ("AGENT_TOOLS", "tools", "tool", "FLYBALL_WIRE_TOOLS", "mine"),
        Role.MODEL: ("AGENT_MODELS", "model", "model", "FLYBALL_WIRE", "begun.AGENT.999"),
    }[role]
    mine = f"{stream}.{kind}-for-x"
    wishes = (b'{"no_wait": true}', b'{"batch": 1, "expires": 50000000}', b'{"batch": -1}')
    asked = {f"fly.api.CONSUMER.MSG.NEXT.{mine}|{number}": wish for number, wish in enumerate(wishes)}
    asked |= {
        f"fly.api.CONSUMER.MSG.NEXT.{stream}.nobody": wishes[0],
        f"fly.api.CONSUMER.INFO.{mine}": b"",
        f"{said}.for.x": b"{}",
        f"$KV.CLAIMS.{key}": b"",
        "fly.api.STREAM.MSG.GET.KV_CLAIMS": b'{"seq": 1}',
        f"fly.api.STREAM.MSG.GET.OBJ_{blobs}": b'{"seq": 1}',
        f"fly.api.STREAM.PURGE.OBJ_{blobs}": b"",
        f"$O.{blobs}.M.x": b"",
        f"fly.hire.{kind}": b"{}",
    }
    return stream, f"{kind}-for-x", asked


@pytest.mark.parametrize("role", [Role.TOOLS, Role.MODEL])
async def test_no_answer_of_a_server_purges_or_deletes_a_stream(acme: Operated, role: Role) -> None:
    """The JetStream API takes an empty body, as of a status, or of an acknowledgement of a message's."""
    stream, consumer, asked = _asking(role)
    agent = Agent(ScriptedEngine("Hello.", "Hello."), name="greeter")
    async with split(acme, agent) as runtime, asyncio.timeout(PATIENCE):
        assert (await agent.run("?", runtime=runtime, loop_id="one")).output == "Hello."
        before = await _streams(runtime)
        line = await connect(acme.creds("acme", role))
        try:
            where = "tool.for.x" if role is Role.TOOLS else "model.for.x"
            await hire(line, Post(stream, consumer, (where,)))
            given: asyncio.Queue[Any] = asyncio.Queue()
            inbox = line.new_inbox()
            await line.subscribe(inbox, given.put)
            for deed in ("PURGE", "DELETE"):
                for name in before:
                    for subject, data in asked.items():
                        await line.publish(subject.partition("|")[0], data, f"$JS.API.STREAM.{deed}.{name}")
            wish = b'{"batch": 1, "expires": 100000000}'
            for word in (b"+WPI", b"-NAK", b"+ACK", b"+TERM", b'+NXT {"no_wait": true, "batch": 1}'):
                message = None
                while message is None or not message.reply:  # wishes of before may have had what was there
                    await line.request(where, b"{}")
                    await line.publish(f"fly.api.CONSUMER.MSG.NEXT.{stream}.{consumer}", wish, inbox)
                    message = await given.get()
                await line.publish(message.reply, word, "$JS.API.STREAM.DELETE.JOURNAL_0")
            # A message with a chosen id, given out into another stream.
            await line.request(where, b"x", {"Nats-Msg-Id": "two/task"})
            await line.publish(f"fly.api.CONSUMER.MSG.NEXT.{stream}.{consumer}", wish, "agent.response.x")
            await line.request(f"fly.api.CONSUMER.INFO.{stream}.{consumer}", b"")
        finally:
            await line.aclose()
        assert (await agent.run("?", runtime=runtime, loop_id="two")).output == "Hello."
        after = await _streams(runtime)
        assert set(after) == set(before)
        held = [name for name in before if not name.startswith(("KV_", "OBJ_", stream))]
        assert {name: after[name] >= before[name] for name in held} == dict.fromkeys(held, True)
        assert (await runtime.result(agent, "one")).output == "Hello."


async def _streams(runtime: NatsRuntime) -> dict[str, int]:
    """The streams of the account, and how many messages each has."""
    js, names = runtime.connection.js, ["JOURNAL_0", "AGENT", "AGENT_TOOLS", "AGENT_MODELS", "AGENT_RESULTS"]
    names += ["AGENT_TIMERS", "AGENT_DEAD", "GOVERNANCE", "KV_CLAIMS", "OBJ_FLYBALL_BLOBS"]
    return {name: (await js.stream_info(name)).state.messages for name in names}


async def test_who_asks_to_be_hired_is_answered_on_no_subject_of_the_tenants(acme: Operated) -> None:
    """Also in the tenant's account, where users of an earlier release are."""
    agent = Agent(ScriptedEngine("Hello."), name="greeter")
    async with split(acme, agent) as runtime, asyncio.timeout(PATIENCE):
        before = await _streams(runtime)
        visitor = acme.folder.visitor("acme")
        inside = await connect(msgspec.structs.replace(acme.options, credentials=visitor))
        try:
            for where in ("$KV.CLAIMS.kept", "agent.signal.one", "$JS.API.STREAM.PURGE.KV_CLAIMS"):
                await inside.publish("fly.hire.tools", b"{}", where)
            assert b"cannot be read" in (await inside.request("fly.hire.tools", b"{}")).data
        finally:
            await inside.aclose()
        assert await _streams(runtime) == before


async def test_what_is_given_to_one_user_no_other_of_its_role_hears(acme: Operated) -> None:
    lines = [await connect(acme.creds("acme", Role.TOOLS))]
    acme.folder.creds("acme", Role.TOOLS)
    lines.append(await connect(acme.creds("acme", Role.TOOLS)))

    async def heard(message: Any) -> None:
        raise AssertionError(f"{message.subject} was heard")

    try:
        for subject in ("_INBOX.tools.>", f"{lines[0].identity.inbox}.>"):
            await lines[1].subscribe(subject, heard)
            with pytest.raises(PermissionDenied, match="may not hear"):
                await lines[1].flush(subject)
    finally:
        for line in lines:
            await line.aclose()


async def test_what_a_message_may_have_a_stream_do_is_done_for_nobody(acme: Operated) -> None:
    """Sending another one at a time, taking all others away: not by who may send one."""
    line = await connect(acme.creds("acme", Role.TOOLS))
    later = {"Nats-Schedule": "@at 2020-01-01T00:00:00Z", "Nats-Schedule-Target": "agent.response.one"}
    try:
        for headers in (later, {"Nats-Rollup": "all"}):
            for subject in ("tool.result.x", "tool.for.x", "$KV.CLAIMS.x"):
                await line.request("$KV.CLAIMS.kept", b"1")
                await line.request(subject, b"{}", headers)
        kept = await line.request("fly.api.STREAM.MSG.GET.KV_CLAIMS", b'{"last_by_subj": "$KV.CLAIMS.kept"}')
        assert b'"message"' in kept.data
    finally:
        await line.aclose()
    async with await NatsJournal.open(acme.creds("acme", Role.API)) as journal:
        info = await journal.connection.js.stream_info("AGENT", ">")
        assert info.state.messages == 0


async def test_what_a_worker_asks_to_be_hired_for_is_its_own(acme: Operated) -> None:
    asked = {
        "loop": Post("AGENT", "loop", ("agent.task.>",)),
        "another's": Post("AGENT", "model", ("agent.request.>",)),
        "more": Post("AGENT_TOOLS", "tool-x", ("tool.execute.>",)),
        "two": Post("AGENT_TOOLS", "tool-x", ("tool.execute.x", "tool.for.x")),
        "journal": Post("JOURNAL_0", "tool-x", ("fly.j.0.>",)),
        "other name": Post("AGENT_TOOLS", "tools-for-x", ("tool.execute.x",)),
    }
    agent = Agent(ScriptedEngine("Hello."), name="greeter")
    async with (
        await NatsJournal.open(acme.creds("acme", Role.LOOP)) as journal,
        Crew(journal, [agent], ["loop"]),
    ):
        line = await connect(acme.creds("acme", Role.TOOLS))
        try:
            await hire(line, Post("AGENT_TOOLS", "tool-x", ("tool.execute.x",)))
            await hire(line, Post("AGENT_TOOLS", "tools-for-x", ("tool.for.x",)))
            for post in asked.values():
                with pytest.raises(PermissionDenied, match="a tools worker has no messages from"):
                    await hire(line, post)
        finally:
            await line.aclose()


async def test_names_that_nobody_knows_leave_places_for_those_that_are_known(
    acme: Operated, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flyball.runtime.nats.hiring._FOR_STRANGERS", 3)
    agent = Agent(ScriptedEngine("Hello."), tools=[price], name="greeter")
    async with (
        await NatsJournal.open(acme.creds("acme", Role.LOOP)) as journal,
        Crew(journal, [agent], ["loop"]),
    ):
        line = await connect(acme.creds("acme", Role.TOOLS))
        try:
            for name in ("a", "b", "c"):
                await hire(line, Post("AGENT_TOOLS", f"tool-{name}", (f"tool.execute.{name}",)))
            with pytest.raises(JournalFull, match=r"no place for the consumer tool-d.*revoke"):
                await hire(line, Post("AGENT_TOOLS", "tool-d", ("tool.execute.d",)))
            await hire(line, Post("AGENT_TOOLS", "tool-a", ("tool.execute.a",)))
            await hire(line, Post("AGENT_TOOLS", "tool-price", ("tool.execute.price",)))
            await hire(line, Post("AGENT_TOOLS", "tools-for-greeter", ("tool.for.greeter",)))
        finally:
            await line.aclose()
        info = await journal.connection.js.consumer_info("AGENT_TOOLS", "tool-price")
        assert KEPT < (info.config.inactive_threshold or 0) == UNUSED, "what it did is gone before it goes"


async def test_what_a_server_has_no_place_for_is_told_and_waited_for(acme: Operated) -> None:
    visitor = msgspec.structs.replace(acme.options, credentials=acme.folder.visitor("acme"))
    admin = await connect(visitor)
    config = (await admin.js.stream_info("AGENT_TOOLS")).config
    config.max_consumers = 1
    try:
        # Not to be changed where it is there: it is made anew, as a server would limit it.
        await admin.js.delete_stream("AGENT_TOOLS")
        await admin.js.add_stream(config)
        agent = Agent(ScriptedEngine(tool_call("price", {"item": "tea"}), "4"), tools=[price], name="greeter")
        with logged("flyball.nats") as lines:
            async with split(acme, agent) as runtime, asyncio.timeout(PATIENCE):
                while not [one for one in lines if "has no place for the consumer" in one]:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
                assert (await runtime.connection.js.stream_info("AGENT_TOOLS")).state.consumer_count == 1
        assert [one for one in lines if one.startswith("tool") and "waits" in one]
    finally:
        await admin.aclose()


async def test_a_worker_whose_consumer_was_taken_away_has_it_made_again(acme: Operated) -> None:
    admin = await connect(msgspec.structs.replace(acme.options, credentials=acme.folder.visitor("acme")))
    agent = Agent(ScriptedEngine(tool_call("price", {"item": "tea"}), "4"), tools=[price], name="greeter")
    try:
        async with split(acme, agent) as runtime, asyncio.timeout(PATIENCE):
            while True:
                try:
                    await admin.js.delete_consumer("AGENT_TOOLS", "tool-price")
                    break
                except NotFoundError:  # the worker has only just asked for it
                    await asyncio.sleep(0.05)
            assert (await agent.run("How much?", runtime=runtime)).output == "4"
    finally:
        await admin.aclose()


async def test_results_of_tools_cannot_speak_for_models(acme: Operated) -> None:
    """What a tools worker may say, it may say of its calls."""
    asked = asyncio.Event()

    @tool
    async def sleep() -> str:
        """Never return."""
        asked.set()
        await asyncio.sleep(600)
        return ""

    agent = Agent(ScriptedEngine(tool_call("sleep", {}), "Done."), tools=[sleep], name="sleeping")
    async with split(acme, agent) as runtime, asyncio.timeout(PATIENCE):
        await runtime.submit(agent, "go", loop_id="one")
        await asked.wait()
        line = await connect(acme.creds("acme", Role.TOOLS))
        try:
            forged = write_signal("one", Signal(SignalType.CANCEL, "s1", "eve"), 1.0)
            await line.request("tool.result.forged", forged)
        finally:
            await line.aclose()
        while not (letters := await dead_letters(runtime.bus)):  # noqa: ASYNC110 - it is looked for
            await asyncio.sleep(0.05)
        assert (letters[0][1].subject, letters[0][1].code) == ("tool.result.forged", "CONFIG_INVALID_MESSAGE")
        assert not [one for one in await runtime.journal.read("one") if isinstance(one, SignalReceived)]


GOOD: dict[str, Any] = {"subject": "x", "headers": {}, "code": "X", "reason": "r", "at": 1.0, "times": 1}
"""What a worker writes beside a message that it puts aside."""


async def test_what_anybody_can_say_was_put_aside_fails_no_run_and_can_be_dropped(acme: Operated) -> None:
    gate, asked = asyncio.Event(), asyncio.Event()

    @tool
    async def slow() -> str:
        """Wait."""
        asked.set()
        await gate.wait()
        return "done"

    agent = Agent(ScriptedEngine(tool_call("slow", {}), "Done."), tools=[slow], name="slowly")
    later = json.dumps(GOOD | {"at": 1e300})
    async with split(acme, agent) as runtime, asyncio.timeout(PATIENCE):
        loop_id = await runtime.submit(agent, "go", loop_id="one")
        waiting = asyncio.ensure_future(runtime.result(agent, loop_id))
        await asked.wait()
        line = await connect(acme.creds("acme", Role.TOOLS))
        try:
            for place in ("fly.dead._.tool.execute.x", "fly.dead.one.tool.execute.slow"):
                for said in ("garbage", later, ""):
                    await line.request(place, b"?", {"Flyball-Dead": said})
            forged = {"Flyball-Dead": json.dumps(GOOD), "Nats-Subject": "fly.dead.one.agent.task.one"}
            await line.request("fly.dead.one.tool.execute.another", b"?", forged)
            # What the loop worker puts aside, of the loop that its sender names.
            await line.request("tool.result.forged", b"garbage", {"Flyball-Loop": "one"})
            # What was passed on can only be a tool call.
            passed_on = {"Flyball-Loop": "one", "Flyball-Subject": "agent.task.evil"}
            await line.request("tool.for.slowly", b"garbage", passed_on)
        finally:
            await line.aclose()
        while len(letters := await dead_letters(runtime.bus)) < 9:  # noqa: ASYNC110 - it is looked for
            await asyncio.sleep(0.05)
        codes = [one.code for _, one in letters]
        assert codes.count("UNREADABLE") == 6
        assert not [one for _, one in letters if one.subject.startswith("agent.task.")]
        later_on = asyncio.ensure_future(runtime.result(agent, loop_id))
        await asyncio.sleep(0.2)
        gate.set()
        assert (await waiting).output == (await later_on).output == "Done."
        letters_of = NatsDeadLetters(runtime)
        for number, one in letters:
            if one.code == "UNREADABLE":
                with pytest.raises(UserError, match="can be dropped"):
                    await letters_of.requeue(number)
            assert await letters_of.drop(number)
            assert not await letters_of.drop(number)
        assert not await letters_of.list()


async def test_a_call_that_is_waited_for_and_was_put_aside_holds_up_its_loop(acme: Operated) -> None:
    asked = asyncio.Event()

    @tool
    async def stuck() -> str:
        """Never return."""
        asked.set()
        await asyncio.sleep(600)
        return ""

    agent = Agent(ScriptedEngine(tool_call("stuck", {}), "Done."), tools=[stuck], name="stuck")
    async with split(acme, agent) as runtime, asyncio.timeout(PATIENCE):
        waiting = asyncio.ensure_future(agent.run("go", runtime=runtime, loop_id="one"))
        await asked.wait()
        line = await connect(acme.creds("acme", Role.TOOLS))
        try:
            await line.request("fly.dead.one.tool.execute.stuck", b"?", {"Flyball-Dead": json.dumps(GOOD)})
        finally:
            await line.aclose()
        with pytest.raises(WorkPutAside, match=r"tool\.execute\.stuck"):
            await waiting
        with pytest.raises(WorkPutAside, match=r"tool\.execute\.stuck"):
            await runtime.result(agent, "one")


@pytest.mark.parametrize(
    ("role", "kinds", "told"),
    [
        (Role.TOOLS, ["loop", "tools"], "is no worker of the kind loop: serve only tools"),
        (Role.MODEL, ["tools"], "is no worker of the kind tools: serve only model"),
        (Role.API, ["loop"], "is no worker at all"),
    ],
)
async def test_a_worker_of_another_kind_does_not_begin(
    acme: Operated, role: Role, kinds: list[Kind], told: str
) -> None:
    agent = Agent(ScriptedEngine("Hello."), name="greeter")
    async with await NatsJournal.open(acme.creds("acme", role)) as journal:
        with pytest.raises(UserError, match=told):
            Crew(journal, [agent], kinds)


async def test_one_worker_of_all_kinds_may_begin_loops_in_its_tools(acme: Operated) -> None:
    expert = Agent(ScriptedEngine("42"), name="expert")
    agent = Agent(
        ScriptedEngine(tool_call("expert", {"prompt": "?"}), "It is 42."),
        tools=[expert.as_tool()],
        name="boss",
    )
    async with (
        await NatsJournal.open(acme.creds("acme", Role.ALL)) as journal,
        Crew(journal, [agent, expert], nearby=False),
        await NatsRuntime.open(acme.creds("acme", Role.API)) as runtime,
        asyncio.timeout(PATIENCE),
    ):
        assert (await agent.run("?", runtime=runtime)).output == "It is 42."


async def test_no_call_is_answered_with_the_output_of_a_loop_that_it_has_not_begun(acme: Operated) -> None:
    """Whoever may answer for tools may say that one is over: it counts where that is recorded."""
    asked, go_on = asyncio.Event(), asyncio.Event()

    @tool
    async def slow() -> str:
        """Take a while."""
        asked.set()
        await go_on.wait()
        return "slept"

    victim = Agent(ScriptedEngine("a secret"), name="victim")
    helper = Agent(ScriptedEngine(tool_call("slow", {}), "helped"), tools=[slow], name="helper")
    boss = Agent(
        ScriptedEngine(tool_call("helper", {"prompt": "?"}), "Done."), tools=[helper.as_tool()], name="boss"
    )
    async with (
        await NatsJournal.open(acme.creds("acme", Role.ALL)) as journal,
        Crew(journal, [boss, helper, victim], nearby=False),
        await NatsRuntime.open(acme.creds("acme", Role.API)) as runtime,
        asyncio.timeout(PATIENCE),
    ):
        await victim.run("?", runtime=runtime, loop_id="victim-1")
        await runtime.submit(boss, "go", loop_id="boss-1")
        await asked.wait()
        answered = [one for one in await runtime.journal.read("boss-1") if isinstance(one, ModelAnswered)]
        (call,) = answered[0].message.tool_calls
        line = await connect(acme.creds("acme", Role.TOOLS))
        try:
            said = own("ended", "x", Report("boss-1", ChildEnded(1.0, "victim-1", call.id)))
            await line.request("tool.result.forged", said, {"Flyball-Loop": "boss-1"})
        finally:
            await line.aclose()
        js = journal.connection.js
        last = (await js.stream_info("AGENT_RESULTS")).state.last_seq
        while (await js.consumer_info("AGENT_RESULTS", "loop")).ack_floor.stream_seq < last:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        go_on.set()
        result = await runtime.result(boss, "boss-1")
        assert [one.text for message in result.messages for one in message.tool_results] == ["helped"]


async def test_an_id_that_somebody_has_taken_keeps_no_message_from_being_sent(acme: Operated) -> None:
    """Whoever may write to a stream may bear the id of any message there."""
    agent = Agent(ScriptedEngine("Hello."), name="greeter")
    async with split(acme, agent) as runtime, asyncio.timeout(PATIENCE):
        line = await connect(acme.creds("acme", Role.MODEL))
        try:
            await line.request("agent.response.x", b"x", {"Nats-Msg-Id": "one/task"})
        finally:
            await line.aclose()
        assert (await agent.run("?", runtime=runtime, loop_id="one")).output == "Hello."


async def test_one_worker_of_all_kinds_talks_with_people_too(acme: Operated) -> None:
    agent = Agent(ScriptedEngine("Hello."), name="greeter")
    async with (
        await NatsJournal.open(acme.creds("acme", Role.ALL)) as journal,
        Crew(journal, [agent], KINDS),
        await NatsRuntime.open(acme.creds("acme", Role.API)) as runtime,
        asyncio.timeout(PATIENCE),
    ):
        channel = NatsChannel(runtime.bus, "web", "shop")
        await channel.say(
            UserMessage(message_id="m", channel_type="web", channel_id="shop", user_id="ann", content="Hi.")
        )
        async with aclosing(channel.responses()) as responses:
            told = [one async for one in _up_to_the_result(responses)]
        assert told[-1].content == "Hello."


def test_the_page_has_a_row_for_each_role() -> None:
    page = (Path(__file__).parents[4] / "docs" / "tenants.md").read_text()
    assert not [role for role in Role if f"\n| `{role}` | " not in page]


async def test_a_worker_whose_credentials_are_revoked_ends_and_says_why(acme: Operated) -> None:
    agent = Agent(ScriptedEngine("Hello."), name="greeter")
    journal = await NatsJournal.open(acme.creds("acme", Role.LOOP))
    async with journal, Crew(journal, [agent], ["loop"]) as crew:
        working = asyncio.ensure_future(crew.work())
        await acme.tenancy.revoke("acme", Role.LOOP)
        with pytest.raises(
            PermissionDenied, match=r"role loop of the tenant 'acme' in no more.*revoked"
        ) as no:
            await asyncio.wait_for(working, PATIENCE)
        assert "fly.api" not in str(no.value)


async def test_nobody_is_told_the_secret_of_the_journals_subjects(acme: Operated) -> None:
    """Neither by an error, nor in a log, nor with what was put aside; the loop is named all the same."""
    agent = Agent(ScriptedEngine(), name="shop")
    told: list[str] = []

    async def ask(line: Connection, subject: str, data: bytes, expected: type[FlyballError]) -> None:
        with pytest.raises(expected) as caught:
            await line.request(subject, data)
        assert ".loop." in str(caught.value)
        told.extend([str(caught.value), str(caught.value.details)])

    async with asyncio.timeout(PATIENCE), await NatsRuntime.open(acme.creds("acme", Role.API)) as runtime:
        salt, line = runtime.journal.layout.salt, runtime.connection
        assert len(salt) == 24
        subjects = LoopSubjects("loop", runtime.journal.partitions, salt)
        await ask(line, subjects.entry("ended"), b"x" * (line.max_payload + 1), JournalFailure)
        await ask(line, subjects.noticed[:-1] + "x", b"", PermissionDenied)
        with logged("flyball.nats") as said:
            journal = await NatsJournal.open(acme.creds("acme", Role.ALL))
            aside: asyncio.Queue[str] = asyncio.Queue()

            async def heard(message: Any) -> None:
                await aside.put(message.subject)

            await line.subscribe("fly.dead.>", heard)
            await line.flush()
            async with journal, Crew(journal, [agent]):
                await line.request(subjects.entry("ended"), b"no entry", {LENGTH: "1"})
                await aside.get()
        await ask(journal.connection, subjects.entry("ended"), b"", JournalUnreachable)
        ((_, dead),) = await dead_letters(runtime.bus)
        assert salt in dead.subject
        assert dead.shown == "fly.j.0.loop.ended"
        assert [line for line in said if line.startswith("fly.j.0.loop.ended is put aside: ")]
        told += [*said, dead.shown, dead.reason, repr([*await NatsDeadLetters(runtime).list()])]
    assert not [text for text in told if salt in text]
