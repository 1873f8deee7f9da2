"""A run that somebody waits for: its response, or the calls in it that wait for a person.

The run itself goes on whoever waits. Who waits no longer, because its call was cancelled, cancels the run;
but not a server that ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import anyio
from mcp import MCPError
from mcp_types import ElicitResult, InputResponses
from msgspec import Struct

from flyball.adapters.mcp.approving import decision, form, question
from flyball.adapters.mcp.client import Client
from flyball.adapters.mcp.watching import Watch, waiting_for_approval
from flyball.core.errors import AgentRunClosed, Deferred, LoopNotFound, NotPermitted, SignalRefused
from flyball.core.signals import Signal, SignalType
from flyball.orchestrate.contracts import SystemRequest, SystemResponse
from flyball.orchestrate.family import WaitingCall
from flyball.orchestrate.service import Service

_PATIENCE = 5.0
"""Seconds in which a run must have been told that it is cancelled, or a client how it went on."""


class Desk(Struct, frozen=True):
    """Where calls are served. `how` says how to approve by other means; `ending` whether the server ends."""

    service: Service
    how: str
    ending: Callable[[], bool]


class _Question(Struct, frozen=True):
    """What the user is being asked."""

    key: str
    call: WaitingCall
    answer: asyncio.Task[ElicitResult]


class Run:
    """A run of an agent's, for the client that asked for it."""

    def __init__(self, desk: Desk, agent: str, asked: SystemRequest, loop_id: str, client: Client) -> None:
        self._desk = desk
        self._agent = agent
        self._asked = asked
        self._loop_id = loop_id
        self._client = client
        self._decided: set[str] = set()
        self.undecided = False
        """Whether the user was asked, and did not decide."""

    async def response(self, *, watched: bool) -> SystemResponse | dict[str, WaitingCall]:
        """What came of it; or the calls that wait for a person who is not to be asked here, by key.

        It is looked at what happens in it only where it is `watched`.
        """
        service, client = self._desk.service, self._client
        serving = asyncio.ensure_future(service.handle(self._agent, self._asked, loop_id=self._loop_id))
        watch = Watch(service, self._loop_id, client.tell if client.wants_progress else None)
        watching = asyncio.ensure_future(watch.run()) if watched else None
        try:
            await self._until_decided(serving, watch)
            if not serving.done():
                return self._open(watch)
            response = self._served(serving)
            if watching is not None and client.wants_progress and _is_over(response):
                await asyncio.wait([watching], timeout=_PATIENCE)  # all of it is told before the answer
            return response
        except asyncio.CancelledError:
            await self._cancel(serving)
            raise
        finally:
            await _drop(serving, watching)

    async def take(self, answers: InputResponses) -> None:
        """Tell the run what its user has decided about calls that still wait, by key.

        Raises:
            NotPermitted: that is not for who calls to decide.
        """
        if answers and not self._client.decides:
            raise NotPermitted(f"{self._client.name} may not decide about calls that wait for a person")
        waits = await waiting_for_approval(self._desk.service, self._loop_id)
        for key, answer in answers.items():
            if key in waits and isinstance(answer, ElicitResult):
                await self._decide(key, waits[key], answer)

    async def _until_decided(self, serving: asyncio.Task[SystemResponse], watch: Watch) -> None:
        """Wait for the end, or for a person whom nobody can ask here; ask for what can be asked."""
        asking: _Question | None = None
        try:
            while not serving.done():
                watch.news.clear()
                waits = self._open(watch)
                if asking is not None and asking.key not in waits:
                    await _drop(asking.answer)  # somebody else has decided
                    asking = None
                if waits and asking is None:
                    if self._client.asks != "now" or self.undecided:
                        return
                    asking = self._ask(*next(iter(waits.items())))
                news = asyncio.ensure_future(watch.news.wait())
                tasks = [serving, news] if asking is None else [serving, news, asking.answer]
                try:
                    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    news.cancel()
                if asking is not None and asking.answer.done():
                    await self._answered(asking)
                    asking = None
        finally:
            await _drop(None if asking is None else asking.answer)

    def _open(self, watch: Watch) -> dict[str, WaitingCall]:
        return {key: call for key, call in watch.waiting.items() if key not in self._decided}

    def _ask(self, key: str, call: WaitingCall) -> _Question:
        return _Question(key, call, asyncio.create_task(self._client.ask(question(call), form(call))))

    async def _answered(self, asking: _Question) -> None:
        try:
            answer = asking.answer.result()
        except MCPError:
            answer = ElicitResult(action="cancel")  # it says that its user can be asked, and cannot
        await self._decide(asking.key, asking.call, answer)

    async def _decide(self, key: str, call: WaitingCall, answer: ElicitResult) -> None:
        """Tell the run what its user has decided."""
        signal = decision(call, answer, self._client.name)
        if signal is None:
            self.undecided = True
            return
        self._decided.add(key)
        await self._say(call.loop_id, signal)

    def _served(self, serving: asyncio.Task[SystemResponse]) -> SystemResponse:
        if not serving.cancelled():
            response = serving.result()
            if response.error is None or response.error.code != AgentRunClosed.code:
                return response
        closed = AgentRunClosed(
            f"the server ends; run {self._loop_id} is recorded, and goes on with the next one: call again "
            f"then, with the same prompt and loop_id={self._loop_id}"
        )
        return SystemResponse(error=closed.record(), loop_id=self._loop_id)

    async def _cancel(self, serving: asyncio.Task[SystemResponse]) -> None:
        """Cancel the run, once it is recorded: who called does not want it any more."""
        if self._desk.ending() or serving.done():
            return
        with anyio.move_on_after(_PATIENCE, shield=True):
            begun = asyncio.ensure_future(self._desk.service.journal.wait(self._loop_id, 0))
            await asyncio.wait({serving, begun}, return_when=asyncio.FIRST_COMPLETED)
            await _drop(begun)
            text = "the call that it was begun by was cancelled"
            await self._say(self._loop_id, Signal(SignalType.CANCEL, by=self._client.name, text=text))

    async def _say(self, loop_id: str, signal: Signal) -> None:
        """Say something to a loop, unless it is past that, or it is not for who calls to say."""
        with suppress(SignalRefused, LoopNotFound, NotPermitted):
            await self._desk.service.signal(loop_id, signal, who=self._client.person)


def _is_over(response: SystemResponse) -> bool:
    """Whether a response is that of a run which has come to its end."""
    open_still = (AgentRunClosed.code, Deferred.code)
    return bool(response.loop_id) and (response.error is None or response.error.code not in open_still)


async def _drop(*tasks: asyncio.Task[Any] | None) -> None:
    """Wait for these no longer. Who waits for a run leaves the run itself alone."""
    dropped = [task for task in tasks if task is not None]
    for task in dropped:
        task.cancel()
    await asyncio.gather(*dropped, return_exceptions=True)
