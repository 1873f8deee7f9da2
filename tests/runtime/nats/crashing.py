"""Workers that die at a moment of their work that a test chooses, as a process does that is killed.

    Life      one crew's: counts what the crew does, and ends it before or after a point
    Doom      which crew dies, and where
    Story     what became of a loop whose crews lived and died
    lived     has a loop carried on by crews, apart or together, one of which may die

A point is what others can see of a crew: everything it publishes (journal entries, commands, reports, claims,
timers, acknowledgements) and every effect (model calls, tool calls, the agent's own functions). Wishes for
messages, questions to the server and signs of life are none: who dies there has done nothing more.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import msgspec
from nats.errors import ConnectionClosedError

from flyball import Agent
from flyball.core.errors import FlyballError
from flyball.core.events import Event
from flyball.inference.answers import Answer
from flyball.runtime.nats import Crew, Layout, NatsJournal, NatsOptions, NatsRuntime
from flyball.runtime.nats.connection import Connection
from flyball.runtime.nats.crew import ALL, Kind
from flyball.runtime.nats.dead import dead_letters
from flyball.runtime.nats.fetching import after, header
from flyball.runtime.nats.naming import journal_stream
from flyball.runtime.nats.wire import AGENT
from flyball.runtime.nats.workers.projector import LOOPS
from tests.orchestrate.models import Script
from tests.patience import PATIENCE

HOLD = 1.0
"""Seconds after which the work of the dead is given to others."""
_LAYOUT = Layout(partitions=1)
Moment: TypeAlias = Literal["before", "after"]
MOMENTS: tuple[Moment, ...] = ("before", "after")
Crews: TypeAlias = Mapping[str, tuple[Kind, ...]]
"""Crews by name, and what each serves."""
APART: Crews = {"loop": ("loop",), "model": ("model",), "tools": ("tools",)}
TOGETHER: Crews = {"all": ALL}
"""One process for all: what it can do for its own loops does not go over the wire."""
_QUESTIONS = ("$JS.API.", "fly.nowhere")
"""Subjects on which the server is asked something, if only whether it has all that was said."""
_ANNOUNCED = ("created", "complete", "failed", "cancelled")


class Doom(NamedTuple):
    """A crew dies before or after it does a thing, the first time that it does it or a later one."""

    victim: str
    what: str
    time: int
    moment: Moment


class Point(NamedTuple):
    """What a crew did, and what it said by it."""

    what: str
    data: bytes = b""


class Life:
    """One crew's life. Nothing that the crew does after its end is seen by anybody."""

    def __init__(self, doom: Doom | None = None) -> None:
        self._doom = doom
        self.dead = False
        """Whether it has ended as it was to."""
        self._flush: Callable[[], Awaitable[None]] | None = None
        self._times: Counter[str] = Counter()
        self.points: list[Point] = []
        """What it did, up to its end."""
        self._ending: asyncio.Future[None] | None = None
        self.over = asyncio.Event()
        """It has ended, and what it did last has arrived."""

    @asynccontextmanager
    async def point(self, what: str, data: bytes = b"") -> AsyncGenerator[None]:
        """Do something that others see.

        Raises:
            ConnectionClosedError: it is not done, or nobody here learns that it was.
        """
        self._check()
        self._times[what] += 1
        moment = self._doom.moment if self._doom and self._doom[1:3] == (what, self._times[what]) else None
        if moment == "before":
            await self._end()
        self.points.append(Point(what, data))
        yield
        if moment == "after":
            await self._end()
        self._check()

    @asynccontextmanager
    async def effect(self, what: str) -> AsyncGenerator[None]:
        """Do something to the world. Code that is dead does not see its own end: it just stops.

        It is cleared away when the connection is cut. Not by cancelling it alone: up to Python 3.11 that is
        lost where an answer comes at that very moment.
        """
        try:
            async with self.point(what):
                yield
        except ConnectionClosedError:
            await self.over.wait()
            raise

    def lead(self, connection: Connection) -> None:
        """Have everything that goes out over a connection counted, and ended with this life."""
        client: Any = connection._client  # pyright: ignore[reportPrivateUsage] - all ways out lead through it
        say: Callable[..., Awaitable[None]] = client.publish

        async def publish(
            subject: str, payload: bytes = b"", reply: str = "", headers: dict[str, str] | None = None
        ) -> None:
            if subject.startswith(_QUESTIONS):
                self._check()
                await say(subject, payload, reply=reply, headers=headers)
            elif payload == b"+WPI":
                if not self.dead:
                    await say(subject, payload, reply=reply, headers=headers)
            else:
                async with self.point(_named(subject, payload), payload):
                    await say(subject, payload, reply=reply, headers=headers)

        client.publish = publish
        self._flush = client.flush

    def _check(self) -> None:
        if self.dead:
            raise ConnectionClosedError

    async def _end(self) -> None:
        self.dead = True
        # Not in this task: others notice the end before it has come, and may cancel this one.
        self._ending = asyncio.ensure_future(self._arrived())
        await asyncio.shield(self._ending)
        raise ConnectionClosedError

    async def _arrived(self) -> None:
        try:
            if self._flush is not None:
                await self._flush()  # what was done before arrives: the kernel would see to that
        finally:
            self.over.set()


def _named(subject: str, payload: bytes) -> str:
    """A point that is published: its subject without what is different each time."""
    if subject.startswith("$JS.ACK."):
        return f"{payload[:5].decode().strip()} {subject.split('.')[3]}"
    words = subject.split(".")
    if words[0] == "_INBOX":
        return "a reply"
    if subject.startswith("$KV.CLAIMS.begun."):
        return "begun"  # that a message is worked on alone: it was given out often
    return ".".join([*words[:2], words[-1]] if words[:2] == ["fly", "j"] else words[:2])


class World:
    """What crews do to the outside, counted over all of their lives."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        self._scripts: dict[str, Script] = {}

    def script(self, *answers: Answer) -> Script:
        """The one model of all crews' agents of a kind: they must ask the very same thing for one effect."""
        return self._scripts.setdefault(repr(answers), Script(*answers))


class Reference(Protocol):
    """A loop to be crashed: how its agent is made in a crew's life, and what the caller does."""

    def agent(self, life: Life, world: World) -> Agent[Any, Any]:
        """The agent, whose code says what it does."""
        ...

    async def drive(self, agent: Agent[Any, Any], runtime: NatsRuntime, loop_id: str) -> Any:
        """Ask for the loop, say to it what is to be said, and wait for its end."""
        ...


@dataclass
class Story:
    """What became of a loop."""

    end: Any
    events: list[Event]
    world: World
    lives: dict[str, list[Life]] = field(repr=False)
    dead: list[Any]
    """What was put aside."""
    announced: list[str]
    """What others were told of it, in order."""
    stage: str
    """Where it is, as it is written down for others to look at."""

    def first(self, crew: str) -> Life:
        """The first crew of a name."""
        return self.lives[crew][0]

    def dooms(self) -> list[Doom]:
        """All ends that its first crews could have had."""
        return [
            Doom(crew, what, time, moment)
            for crew in self.lives
            for what, times in Counter(point.what for point in self.first(crew).points).items()
            for time in range(1, times + 1)
            for moment in MOMENTS
        ]


async def lived(
    options: NatsOptions,
    reference: Reference,
    doom: Doom | None,
    loop_id: str,
    *,
    crews: Crews = APART,
    lines: Mapping[str, NatsOptions] | None = None,
) -> Story:
    """Have a loop carried on by crews, one of which may die; another takes its place at once.

    `lines` are for those who do not go to the server directly: crews, or the `caller`. It ends when the loop
    is over and no message is left for any worker.
    """
    world, by = World(), lines or {}
    opened = await NatsRuntime.open(by.get("caller", options), _LAYOUT)
    async with asyncio.timeout(PATIENCE), opened as runtime:
        serving: dict[str, _Crews] = {}
        async with asyncio.TaskGroup() as tasks:
            for name, kinds in crews.items():
                first = Life(doom if doom is not None and doom.victim == name else None)
                one = serving[name] = _Crews(by.get(name, options), kinds, reference, world, first)
                tasks.create_task(one.serve())
                await one.ready.wait()
            try:
                end = await reference.drive(reference.agent(Life(), World()), runtime, loop_id)
            except* FlyballError as errors:
                end = [error.code for error in errors.exceptions if isinstance(error, FlyballError)]
            await nothing_left(runtime)
            for one in serving.values():
                one.stop()
        events, dead = await runtime.journal.read(loop_id), await dead_letters(runtime.bus)
        announced = await after(runtime.connection, AGENT, f"agent.*.{loop_id}")
        entry = await _entry(runtime, loop_id)
    return Story(
        end,
        events,
        world,
        {name: one.lives for name, one in serving.items()},
        dead,
        [word for one in announced if (word := header(one, "Nats-Subject").split(".")[1]) in _ANNOUNCED],
        msgspec.json.decode(entry.value)["state"],
    )


async def _entry(runtime: NatsRuntime, loop_id: str) -> Any:
    """What is written down of a loop for others to look at."""
    connection = runtime.connection
    bucket = await connection.patiently(lambda: connection.js.key_value(LOOPS))
    return await connection.patiently(lambda: bucket.get(loop_id))


class _Crews:
    """The crews of one name, one after the other, each on a connection of its own."""

    def __init__(
        self, options: NatsOptions, kinds: tuple[Kind, ...], reference: Reference, world: World, first: Life
    ) -> None:
        self.lives = [first]
        self.ready = asyncio.Event()
        self._options = options
        self._kinds = kinds
        self._reference = reference
        self._world = world
        self._stopped = False
        self._burials: list[asyncio.Task[None]] = []

    def stop(self) -> None:
        """Let nobody come after the one who lives now."""
        # Told, not cancelled: up to Python 3.11 a cancellation is lost where an answer comes at that moment.
        self._stopped = True
        self.lives[-1].over.set()

    async def serve(self) -> None:
        """Have the next one come when one has died."""
        while not self._stopped:
            life = self.lives[-1]
            agent = self._reference.agent(life, self._world)
            journal = await NatsJournal.open(self._options, _LAYOUT)
            crew = await Crew(journal, [agent], self._kinds, hold=HOLD).__aenter__()
            life.lead(journal.connection)
            self.ready.set()
            try:
                await life.over.wait()
            finally:
                # It may try to say that it goes, as no process does that is killed: nobody hears it.
                self._burials.append(asyncio.create_task(crew.__aexit__(None, None, None)))
                await asyncio.sleep(0)
                await journal.aclose()
            if not self._stopped:
                self.lives.append(Life())
        await asyncio.gather(*self._burials)


async def nothing_left(runtime: NatsRuntime) -> None:
    """Wait until no message is left for any worker, nor is being worked on."""
    connection = runtime.connection
    streams = [AGENT, *map(journal_stream, range(runtime.journal.partitions))]
    while streams:
        infos = await connection.patiently(partial(connection.js.consumers_info, streams[-1]))
        if any(info.num_pending or info.num_ack_pending for info in infos):
            await asyncio.sleep(0.05)
        else:
            streams.pop()
