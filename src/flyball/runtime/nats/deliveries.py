"""Messages of a stream as work: each is given to one worker, and given again until it is done.

A pull consumer, spoken to directly: as many messages are asked for as there is room to work on them. One that
is being worked on is held by a sign of life; one that was given too often, and not done, is put aside. What
waits for a newer worker, or for room to be put aside in, is given again now and then, and holds up no other.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from flyball.core.errors import (
    FlyballError,
    JournalFull,
    JournalTooNew,
    JournalUnreachable,
    OrchestrationFailure,
)
from flyball.runtime.nats.company import Company
from flyball.runtime.nats.hiring import Post, hire
from flyball.runtime.nats.messages.frame import check_version
from flyball.runtime.nats.naming import unsalted
from flyball.runtime.nats.subjects import FORWARDED

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from flyball.runtime.nats.connection import Connection

_log = logging.getLogger("flyball.nats")
_EXPIRES = 2.5
"""Seconds that the server keeps our wish for messages in mind: then it is told anew, in case it was lost."""
_ON_ITS_WAY = 0.2
"""Seconds that a message, or a wish, may take to get here and there."""
_NO_PLACE = 10.0
"""Seconds after which it is tried again to have a consumer that the server had no place for."""
_GONE = ("503", "409")
_TO_OTHERS = b"-NAK"
_NANO = 1_000_000_000
_TO_ACKNOWLEDGE = "$JS.ACK."
_ALONE = 2
"""How many of the tries, the last ones, are made with nothing else going on."""
_DEATHS = 4
"""How many must have died while they worked on it and on nothing else. Some are killed for other reasons,
also twice in a row: where nodes are away, what takes a moment takes a while."""
_SEEN_TO_COME = 4
"""How often what waits is tried at short intervals: newer workers are there while a cluster is updated."""
_FIRST_WAIT, _LONGEST_WAIT = 30.0, 300.0
"""Seconds that it waits after that until it is tried again: at first, and at last."""
_MOST_TOLD = 100
"""How many different reasons to wait are told, once each: who sends messages may think of any number."""
_MOST_KNOWN = 100_000
"""How many messages that wait are kept in mind."""
_SHORT_REPLY = 9
"""Words of the subject that a message is acknowledged on; some servers put two more before the rest."""


LOOP = "Flyball-Loop"
"""The header that says which loop a message belongs to, as a token."""
FROM = "Flyball-Subject"
"""The header of a message that was forwarded: the subject that it came on."""
_PASSED_ON_FROM = {"tool.for.": "tool.execute.", "model.for.": "agent.request."}
"""What is passed on where tools or model workers may say anything can have come on no other subject."""


class Delivery:
    """One message, given to this worker."""

    def __init__(self, message: Msg) -> None:
        self.data = message.data
        self.headers: dict[str, str] = message.headers or {}
        self.forwarded = message.subject.startswith(FORWARDED)
        """Whether it came to a worker that had not what it needs, and was passed on by that one."""
        self.subject = _came_on(message.subject, self.headers) if self.forwarded else message.subject
        self.reply = message.reply
        words = message.reply.split(".")
        more = 0 if len(words) == _SHORT_REPLY else 2
        self.times = int(words[4 + more])
        """How often it has been given, this time included."""
        self.consumer = words[3 + more]
        """Whose it is: see `Post.name`."""
        self.number = int(words[5 + more])
        """Its place in its stream."""
        self.place = f"{words[2 + more]}.{self.number}"
        """Where it is: the stream, and the place there."""
        self.at = int(words[7 + more]) / _NANO
        """When the server stored it."""
        self.shown = unsalted(self.subject)
        """Its subject, as it may be told: see `unsalted`."""


def _came_on(subject: str, headers: dict[str, str]) -> str:
    """The subject that a message first came on, which was forwarded."""
    said = headers.get(FROM) or subject
    for passed_on, origin in _PASSED_ON_FROM.items():
        if subject.startswith(passed_on) and not said.startswith(origin):
            return origin + subject.removeprefix(passed_on)
    return said


Work = Callable[[Delivery], Awaitable[None]]
"""Does what a message asks for. When it returns, the message is done; when it raises, it is given again."""
GiveUp = Callable[[Delivery, Exception], Awaitable[None]]
"""Puts aside a message that was given as often as it may be."""


class Tally(Protocol):
    """Counts who began with a message and did not live to answer."""

    async def begun(self, delivery: Delivery) -> int:
        """Note that somebody begins with it; gives how many did before, and were not heard of again."""
        ...

    async def answered(self, delivery: Delivery) -> None:
        """Who began with it lives: nobody is counted any more."""
        ...


class Postman:
    """Takes the messages of a post and has them worked on."""

    def __init__(
        self,
        connection: Connection,
        post: Post,
        work: Work,
        give_up: GiveUp,
        *,
        tally: Tally,
        company: Company | None = None,
    ) -> None:
        """`company` is that of all who work in this process."""
        self._company = company or Company()
        self._tally = tally
        self._connection = connection
        self._post = post
        self._work = work
        self._give_up = give_up
        self._inbox = connection.new_inbox()
        self._working: dict[asyncio.Task[None], str] = {}
        self._in_hand: set[str] = set()
        self._asked = 0
        self._asked_at = 0.0
        self._hired = False
        self._leaving = False
        self._not_begun: dict[str, Delivery] = {}
        """What has come, and nobody has begun with, by its place."""
        self._waits: set[str] = set()
        """The places of what was worked on here, and waits: it is the end of nobody."""
        self._told: set[str] = set()
        """Why something waits, as it was told."""
        self._room = asyncio.Event()

    async def leave(self) -> None:
        """Ask for nothing more, and go on with what comes until all that was asked for has come, or does not.

        Who ends without that may have messages on the way to him: they are given to somebody else when they
        have been held for long enough.
        """
        self._leaving = True
        await asyncio.sleep(self._asked_at + _EXPIRES + _ON_ITS_WAY - time.monotonic())

    async def run(self) -> None:
        """Work until cancelled. What is under way then is given to somebody else, at once.

        A server that is away is waited for, however long that takes.

        Raises:
            PermissionDenied: this user may not take these messages.
        """
        try:
            while not self._hired:
                await self._hire_patiently()
            subscription = await self._connection.subscribe(self._inbox, self._arrived)
            try:
                with self._connection.on_rejoining(self._ask_anew):
                    await self._keep_asking()
            finally:
                self._leaving = True
                await self._connection.hang_up(subscription)
        finally:
            working = list(self._working)
            for task in working:
                task.cancel()
            for delivery in self._not_begun.values():
                await self._say(delivery, _TO_OTHERS)
            await asyncio.gather(*working, return_exceptions=True)

    async def _hire_patiently(self) -> None:
        """Have the consumer, unless the server is away, or has no place for it: that may pass."""
        try:
            await self.hire()
        except JournalUnreachable:
            if self._connection.closed:
                raise
        except JournalFull as error:
            _log.warning("%s waits: %s", self._post.name, error)
            await asyncio.sleep(_NO_PLACE)

    async def _keep_asking(self) -> None:
        while True:
            if not self._hired:
                await asyncio.sleep(_ON_ITS_WAY)  # it may be that a cluster elects who answers
                await self._hire_patiently()
                continue
            self._room.clear()
            await self._ask()
            try:
                async with asyncio.timeout(_EXPIRES):
                    await self._room.wait()
            except TimeoutError:
                self._asked = 0

    def _ask_anew(self) -> None:
        """What was asked for is not coming: the wish has expired, or was lost with the line."""
        self._asked = 0
        self._room.set()

    async def hire(self) -> None:
        """Have the consumer: from then on nothing is missed.

        Raises:
            JournalUnreachable: the server does not answer.
            PermissionDenied: this user may not have these messages.
        """
        await hire(self._connection, self._post)
        self._hired = True

    async def _ask(self) -> None:
        """Ask for as many as there is room for."""
        room = self._post.room - len(self._working) - self._asked
        if room <= 0 or self._leaving:
            return
        self._asked += room
        self._asked_at = time.monotonic()
        wish = {"batch": room, "expires": int(_EXPIRES * _NANO)}
        subject = f"{self._connection.identity.api}.CONSUMER.MSG.NEXT.{self._post.stream}.{self._post.name}"
        self._connection.check(subject)
        await self._connection.publish(subject, msgspec.json.encode(wish), reply=self._inbox)

    async def _arrived(self, message: Msg) -> None:
        if not message.reply.startswith(_TO_ACKNOWLEDGE):
            # Not a message: the wish is over. Its headers would not tell: anybody may set those. But where
            # nobody answers for the consumer, it may be gone; that it is looked for harms nobody.
            if (message.headers or {}).get("Status") in _GONE:
                self._hired = False
            self._ask_anew()
            return
        self._asked = max(self._asked - 1, 0)
        delivery = Delivery(message)
        if delivery.place in self._in_hand:
            return  # we are at it: a sign of life came late, or was lost
        self._in_hand.add(delivery.place)
        self._not_begun[delivery.place] = delivery
        task = asyncio.ensure_future(self._handle(delivery))
        self._working[task] = delivery.place
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._in_hand.discard(self._working.pop(task))
        if not task.cancelled() and (error := task.exception()) is not None:
            # Not even the reason could be kept: the server gives it to somebody again.
            _log.warning("%s: %s", self._post.name, unsalted(str(error)))
        # Asked for when half of the room is free: not once for each message.
        if len(self._working) + self._asked <= self._post.room // 2:
            self._room.set()

    async def _handle(self, delivery: Delivery) -> None:
        self._not_begun.pop(delivery.place, None)
        life = _Life(self._post.hold / 3, lambda: self._say(delivery, b"+WPI"))
        try:
            if delivery.times <= self._post.tries - _ALONE or delivery.place in self._waits:
                async with self._company.beside():
                    await self._work(delivery)
            else:
                check_version(delivery.data, delivery.subject)
                await self._alone(delivery)
        except asyncio.CancelledError:
            await self._say(delivery, _TO_OTHERS)
            raise
        except JournalTooNew as error:
            # What a newer flyball wrote is for newer workers, which are there while a cluster is brought up
            # to date. Nobody has died of it.
            await self._let_wait(delivery, error)
        except Exception as error:
            # A server that is away, or full, is not the message's fault.
            away = isinstance(error, JournalUnreachable | JournalFull)
            hopeless = isinstance(error, FlyballError) and not error.retryable and not away
            if hopeless or (delivery.times >= self._post.tries and not away):
                await self._put_aside(delivery, error)
            else:
                # What is away is waited for without end.
                of = "" if away else f" of {self._post.tries}"
                _log.warning("%s, try %d%s: %s", delivery.shown, delivery.times, of, told(error))
                await self._give_back(delivery, pause_after(delivery.times))
        else:
            self._waits.discard(delivery.place)
            await self._say(delivery, b"+ACK")
        finally:
            life.end()

    async def _alone(self, delivery: Delivery) -> None:
        """Work on what others died with: alone, so that it is known who it was if this one dies too.

        Raises:
            OrchestrationFailure: they did die when they worked on nothing else.
        """
        async with self._company.alone():
            if await self._tally.begun(delivery) >= _DEATHS:
                raise OrchestrationFailure(
                    f"{delivery.times - 1} workers began with it, the last {_DEATHS} with nothing else, and "
                    "none of them lived to answer",
                    retryable=False,
                )
            try:
                await self._work(delivery)
            except Exception:
                await self._tally.answered(delivery)
                raise
            await self._tally.answered(delivery)

    async def _put_aside(self, delivery: Delivery, why: Exception) -> None:
        try:
            await self._give_up(delivery, why)
        except FlyballError as error:
            await self._let_wait(delivery, error)
            return
        _log.error("%s is put aside: %s", delivery.shown, told(why))
        self._waits.discard(delivery.place)
        await self._say(delivery, b"+TERM")

    async def _let_wait(self, delivery: Delivery, why: FlyballError) -> None:
        """Have a message given again after a while, later after longer ones; each reason is told once."""
        if len(self._waits) >= _MOST_KNOWN:
            self._waits.clear()
        self._waits.add(delivery.place)
        is_new = len(self._told) < _MOST_TOLD and why.message not in self._told
        if is_new:
            self._told.add(why.message)
        level = logging.WARNING if is_new else logging.DEBUG
        _log.log(level, "%s waits, try %d: %s", delivery.shown, delivery.times, told(why))
        await self._give_back(delivery, wait_after(delivery.times))

    async def _give_back(self, delivery: Delivery, seconds: float) -> None:
        await self._say(delivery, b"-NAK " + msgspec.json.encode({"delay": int(seconds * _NANO)}))

    async def _say(self, delivery: Delivery, word: bytes) -> None:
        if not self._connection.closed:
            await self._connection.publish(delivery.reply, word)


def told(error: Exception) -> str:
    """An error in one line, with its code if it has one."""
    code = error.code if isinstance(error, FlyballError) else type(error).__name__
    return unsalted(f"{code}: {error}")


class _Life:
    """Says something now and then, until it ends: a timer, and a task only when there is something to say."""

    def __init__(self, seconds: float, say: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._seconds = seconds
        self._say = say
        self._saying: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(seconds, self._beat)

    def _beat(self) -> None:
        self._saying = asyncio.ensure_future(self._say())
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._beat)

    def end(self) -> None:
        self._timer.cancel()
        if self._saying is not None:
            self._saying.cancel()


def pause_after(tries: int) -> float:
    """The seconds until a message is given out again, after so many tries; ten at most, however many."""
    return min(0.1 * 2 ** min(tries, 7), 10.0)


def wait_after(tries: int) -> float:
    """The seconds until what waits is given out again, after so many tries: minutes, at last.

    Many that wait for the same are not given out in the same moment.
    """
    if tries <= _SEEN_TO_COME:
        return pause_after(tries)
    longest = min(_FIRST_WAIT * 2 ** min(tries - _SEEN_TO_COME - 1, 10), _LONGEST_WAIT)
    return longest * random.uniform(0.75, 1.0)
