"""Questions and answers over one subscription. Whoever waits learns at once that the line is cut.

The client library's own requests wait for their time to run out, seconds after the server has gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from flyball.core.errors import PermissionDenied

if TYPE_CHECKING:
    from nats.aio.msg import Msg

_NO_RESPONDERS = "503"
NOBODY = "nobody serves it"


class Unanswered(Exception):  # noqa: N818 - what happened, and no error of anybody's
    """The question may or may not have been heard. It may be asked again."""


class Asker:
    """Asks questions on one connection, which calls `cut` and `joined` when it goes and comes."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._prefix: str = ""
        self._waiting: dict[str, tuple[str, asyncio.Future[Msg]]] = {}
        """The questions that are open: on which subject, and who waits."""
        self._number = 0
        self._connected = asyncio.Event()
        self._connected.set()
        self.rejoined: list[Callable[[], None]] = []
        """Called when the line is there again: what was asked before the cut is not going to be answered."""

    async def begin(self) -> None:
        """Be ready for answers."""
        self._prefix = self._client.new_inbox()
        await self._client.subscribe(f"{self._prefix}.*", cb=self._heard)

    async def ask(self, subject: str, data: bytes, headers: Mapping[str, str] | None, seconds: float) -> Msg:
        """Ask once.

        Raises:
            Unanswered: the line was cut, nobody serves this subject now, or the time ran out.
            PermissionDenied: this user may not ask on this subject.
        """
        from nats.errors import Error

        if self._client.is_closed:
            raise Unanswered("the connection is closed")
        self._number += 1
        number = str(self._number)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Msg] = loop.create_future()
        self._waiting[number] = subject, answer
        timer = loop.call_later(seconds, _out_of_time, answer, seconds)
        try:
            if not self._connected.is_set():
                # What is said while the line is cut would be kept, and said later: it is asked again instead.
                await self._joined_or(answer)
            await self._client.publish(subject, data, reply=f"{self._prefix}.{number}", headers=headers)
            message = await answer
        except (Error, OSError) as error:
            raise Unanswered(str(error) or type(error).__name__) from error
        finally:
            timer.cancel()
            self._waiting.pop(number, None)
            if answer.done() and not answer.cancelled():
                answer.exception()  # seen: there may be another reason why it is not waited for
        if (message.headers or {}).get("Status") == _NO_RESPONDERS:
            raise Unanswered(NOBODY)
        return message

    async def _joined_or(self, answer: asyncio.Future[Msg]) -> None:
        """Wait until there is a line, or no time left.

        Raises:
            Unanswered: there is none.
        """
        joined = asyncio.ensure_future(self._connected.wait())
        try:
            await asyncio.wait([joined, answer], return_when=asyncio.FIRST_COMPLETED)
        finally:
            joined.cancel()
        if answer.done():
            answer.result()

    async def _heard(self, message: Msg) -> None:
        _, answer = self._waiting.pop(message.subject.rpartition(".")[2], ("", None))
        if answer is not None and not answer.done():
            answer.set_result(message)

    def denied(self, subject: str, error: PermissionDenied) -> bool:
        """Nobody who waits for an answer on a subject is going to get one; whether anybody does."""
        open_ = [answer for asked, answer in self._waiting.values() if asked.lower() == subject]
        waiting = [answer for answer in open_ if not answer.done()]
        for answer in waiting:
            answer.set_exception(PermissionDenied(error.message, **error.details))
        return bool(waiting)

    async def cut(self) -> None:
        """The line is cut: nobody who waits is going to be answered."""
        self._connected.clear()
        waiting, self._waiting = self._waiting, {}
        for _, answer in waiting.values():
            if not answer.done():
                answer.set_exception(Unanswered("the connection was lost"))

    async def joined(self) -> None:
        """There is a line again."""
        self._connected.set()
        for call in tuple(self.rejoined):
            call()


def _out_of_time(answer: asyncio.Future[Msg], seconds: float) -> None:
    if not answer.done():
        answer.set_exception(Unanswered(f"no answer in {seconds:g} s"))
