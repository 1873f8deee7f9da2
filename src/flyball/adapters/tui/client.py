"""The HTTP API's operations that are used here, typed. What can go wrong is the connection's to say.

What is said to a loop (a request, a signal, a result) is sent until it arrives, in the order in which it was
said: it is known by an id, and so done once. What is asked is asked once.

`follow` ends with the loop, and never before: a connection that is lost is had again, after waits that grow,
just after the last thing that was told. Nothing is lost and nothing comes twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import cache
from typing import Any, TypeVar
from urllib.parse import quote
from weakref import WeakValueDictionary

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from flyball.adapters.tui.connection import Connection, Problem, Unreachable
from flyball.core.backoff import Backoff
from flyball.core.deferred import DeferredToolResult
from flyball.core.errors import FlyballError, UserError
from flyball.core.ids import new_id
from flyball.core.signals import Signal
from flyball.inference.stream import StreamEvent
from flyball.orchestrate.cards import AgentCard, ModelCard
from flyball.orchestrate.catalogue import LoopPage
from flyball.orchestrate.contracts import SystemRequest
from flyball.orchestrate.family import WaitingCall
from flyball.orchestrate.followed import Recorded
from flyball.orchestrate.projections.course import CourseStep
from flyball.orchestrate.projections.explanation import Explanation
from flyball.orchestrate.projections.summary import LoopSummary

T = TypeVar("T")

_AGAIN = Backoff(0.25, factor=2, most=5.0)


class Fork(Struct, frozen=True, omit_defaults=True):
    """A loop that shares another's first turns, with what is changed."""

    turn: int
    prompt: str | None = None
    model: str | None = None


class _Agents(Struct, frozen=True):
    agents: tuple[AgentCard, ...]


class _Models(Struct, frozen=True):
    models: tuple[ModelCard, ...]


class _Course(Struct, frozen=True):
    steps: tuple[CourseStep, ...]


class _Waiting(Struct, frozen=True):
    calls: tuple[WaitingCall, ...]


class _Begun(Struct, frozen=True):
    loop_id: str


_encode = msgspec.json.Encoder().encode


class Client:
    """Asks one server. See the module for what it guarantees."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.owed = 0
        """How much was said that has not arrived yet."""
        self.watch: Callable[[], None] = lambda: None
        """Is told when there is more of it, or less."""
        self._lines: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """Where what is said to a loop waits for what was said before it."""

    async def agents(self) -> tuple[AgentCard, ...]:
        """Who is served."""
        return (await self._get(_Agents, "/api/agents")).agents

    async def models(self) -> tuple[ModelCard, ...]:
        """The models that may be chosen."""
        return (await self._get(_Models, "/api/models")).models

    async def loops(self, text: str = "", cursor: str = "", limit: int = 100) -> LoopPage:
        """A page of the loops that have a text in them, the newest first; without one, of the roots."""
        roots = "" if text else "true"
        return await self._get(
            LoopPage, "/api/loops", text=text, cursor=cursor, limit=str(limit), roots_only=roots
        )

    async def loop(self, loop_id: str) -> LoopSummary:
        """A loop in a few words."""
        return await self._get(LoopSummary, _path(loop_id))

    async def course(self, loop_id: str) -> tuple[CourseStep, ...]:
        """A loop step by step."""
        return (await self._get(_Course, _path(loop_id, "course"))).steps

    async def waiting(self, loop_id: str) -> tuple[WaitingCall, ...]:
        """The calls of a loop, and of those under it, that wait for somebody."""
        return (await self._get(_Waiting, _path(loop_id, "waiting"))).calls

    async def why(self, loop_id: str, turn: int) -> Explanation:
        """A turn explained: what was sent and received."""
        return await self._get(Explanation, _path(loop_id, "why"), turn=str(turn))

    async def signal(self, loop_id: str, signal: Signal) -> None:
        """Say something to a loop. It is sent until it arrives: by its id it is taken once."""
        signal = signal if signal.id else replace(signal, id=new_id())
        await self._send(loop_id, _path(loop_id, "signals"), _encode(signal))

    async def answer(self, loop_id: str, result: DeferredToolResult) -> None:
        """Give a loop the result of a call that waits for it. It is sent until it arrives, and taken once."""
        await self._send(loop_id, _path(loop_id, "results"), _encode({"results": [result]}))

    async def resume(self, loop_id: str) -> None:
        """Have a loop driven on that nobody drives; sent until it arrives, as one that is driven stays so."""
        await self._send(loop_id, _path(loop_id, "resume"), b"{}")

    async def fork(self, loop_id: str, fork: Fork) -> str:
        """Begin a loop from another's first turns; gives its id."""
        document = await self._post(_path(loop_id, "fork"), fork)
        return read(document, _Begun).loop_id

    async def begin(self, agent: str, request: SystemRequest, loop_id: str, after: str = "") -> None:
        """Have an agent begin to serve a request. It is sent until it arrives: by its id it is done once.

        `after` is the loop that it goes on from: what was said there need not be sent again.
        """
        path = f"/api/agents/{quote(agent, safe='')}/loops"
        query = {"loop_id": loop_id, "after": after} if after else {"loop_id": loop_id}
        await self._send(loop_id, path, _encode(request.to_json()), **query)

    async def follow(self, loop_id: str) -> AsyncGenerator[Recorded | StreamEvent]:
        """What happens in a loop, from its beginning to its end.

        Raises:
            FlyballError: the server refuses, or can tell no more of it; not that it cannot be reached.
        """
        last, tries = "", 0
        while True:
            try:
                async with aclosing(self.connection.stream(_path(loop_id, "stream"), last)) as frames:
                    async for frame in frames:
                        tries = 0
                        if frame.event == "event":
                            yield read(frame.data, Recorded)
                        elif frame.event == "piece":
                            yield read(frame.data, StreamEvent)
                        elif frame.event == "problem":
                            raise read(frame.data, Problem).error()
                        else:
                            return
                        last = frame.id
            except FlyballError as error:
                if not error.retryable:
                    raise
                self.connection.lost(error.message)
            else:
                return
            tries += 1
            await asyncio.sleep(_AGAIN.wait(tries))

    async def _get(self, kind: type[T], path: str, **query: str) -> T:
        document = await self.connection.ask(
            "GET", path, {name: value for name, value in query.items() if value}
        )
        return read(document, kind)

    async def _send(self, whom: str, path: str, document: bytes, **query: str) -> None:
        """Send what was said to a loop until it arrives, after all that was said to it before."""
        line, tries = self._lines.setdefault(whom, asyncio.Lock()), 0
        self._owe(1)
        try:
            async with line:
                while True:
                    try:
                        await self.connection.ask("POST", path, query, document)
                    except Unreachable:
                        tries += 1
                        await asyncio.sleep(_AGAIN.wait(tries))
                    else:
                        return
        finally:
            self._owe(-1)

    def _owe(self, more: int) -> None:
        self.owed += more
        self.watch()

    async def _post(self, path: str, document: Any) -> bytes:
        return await self.connection.ask("POST", path, {}, _encode(document))


def _path(loop_id: str, what: str = "") -> str:
    return f"/api/loops/{quote(loop_id, safe='')}" + (f"/{what}" if what else "")


@cache
def _reader(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def read(data: bytes | str, kind: Any) -> Any:
    """A document of a server's.

    Raises:
        UserError: it is none of flyball's.
    """
    try:
        return _reader(kind).decode(data)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise UserError(
            f"the server's answer is none of flyball's ({error}): is --server that of a flyball, and as new?"
        ) from error
