"""Hiring: the consumers that workers have their messages from, and who makes them.

Whoever may make a consumer says which messages it gives, and where it sends them: that is to read and to
write everything. So users that are model or tools workers only may not. They ask, and the loop workers make
what such workers have, and nothing else.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from flyball.core.errors import FlyballError, JournalUnreachable, PermissionDenied
from flyball.runtime.nats.connection import Connection
from flyball.runtime.nats.identity import Role
from flyball.runtime.nats.naming import is_inbox
from flyball.runtime.nats.subjects import REQUESTS
from flyball.runtime.nats.wire import AGENT, APART

if TYPE_CHECKING:
    from nats.aio.msg import Msg

_log = logging.getLogger("flyball.nats")
_ASKED = "fly.hire."
_TOOL, _FOR = "tool-", "-for-"
_HOLDS = (1.0, 3600.0)


class Post(Struct, frozen=True):
    """Which messages, and how they are given out.

    `name` is the consumer's: workers of one name share its messages. `room`: how many one worker works on at
    once. `hold`: seconds after which a message without a sign of life is given to another. `tries`: how many
    workers may die with it, or fail. `only_new`: what was there before the first worker of this name came is
    left alone.
    """

    stream: str
    name: str
    subjects: tuple[str, ...]
    room: int = 64
    hold: float = 30.0
    tries: int = 5
    only_new: bool = False


class _Answer(Struct, frozen=True):
    error: str = ""


async def hire(connection: Connection, post: Post) -> None:
    """Have the consumer of a post: from then on nothing is missed.

    Raises:
        JournalUnreachable: the server does not answer, or no loop worker is there to be asked.
        PermissionDenied: this user may not have it.
    """
    if connection.identity.role not in (Role.MODEL, Role.TOOLS):
        await _make(connection, post)
        return
    where = f"{_ASKED}{connection.identity.role}"
    try:
        said = await connection.request(where, msgspec.json.encode(post))
    except JournalUnreachable:
        _log.warning("%s waits for a loop worker, which makes what it has its messages from", post.name)
        raise
    if error := msgspec.json.decode(said.data, type=_Answer).error:
        raise PermissionDenied(error, subject=where, role=connection.identity.role)


async def _make(connection: Connection, post: Post) -> None:
    from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

    config = ConsumerConfig(
        durable_name=post.name,
        ack_policy=AckPolicy.EXPLICIT,
        ack_wait=post.hold,
        max_deliver=-1,
        max_ack_pending=10_000,
        deliver_policy=DeliverPolicy.NEW if post.only_new else DeliverPolicy.ALL,
        filter_subjects=list(post.subjects),
    )
    await connection.patiently(lambda: connection.js.add_consumer(post.stream, config))


class Hirer:
    """Makes consumers for those who may not, while the connection is open."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def listen(self) -> None:
        """Hear who asks. Of several who do, one answers."""
        await self._connection.subscribe(f"{_ASKED}*", self._heard, queue="hire")

    async def _heard(self, message: Msg) -> None:
        if not is_inbox(message.reply):
            return  # what is answered elsewhere would be taken for something else
        kind = message.subject.removeprefix(_ASKED)
        try:
            post = msgspec.json.decode(message.data, type=Post)
            answer = _Answer()
            if is_due(kind, post):
                await _make(self._connection, msgspec.structs.replace(post, hold=_within(post.hold)))
            else:
                answer = _Answer(f"a {kind} worker has no messages from {post.stream} by {post.name}")
        except msgspec.DecodeError as error:
            answer = _Answer(f"what a {kind} worker asks for cannot be read: {error}")
        except FlyballError as error:
            _log.warning("a %s worker is not hired: %s", kind, error)
            return  # it asks again
        await self._connection.publish(message.reply, msgspec.json.encode(answer))


def is_due(kind: str, post: Post) -> bool:
    """Whether a post is one that a worker of a kind has, in an account where the wire is apart."""
    if len(post.subjects) != 1 or post.only_new:
        return False
    where, name = post.subjects[0], post.name
    if kind == Role.MODEL and (post.stream, name, post.subjects) == (AGENT, "model", REQUESTS):
        return True
    if kind not in (Role.MODEL, Role.TOOLS):
        return False
    stream, passed_on = APART.passed_on[kind]
    due = {f"{kind}{_FOR}": passed_on}
    if kind == Role.TOOLS:
        due[_TOOL] = "tool.execute"
    for beginning, subject in due.items():
        rest = name.removeprefix(beginning)
        if rest != name and (post.stream, where) == (stream, f"{subject}.{rest}"):
            return not set(rest) & set(".*> ")
    return False


def _within(hold: float) -> float:
    return min(max(hold, _HOLDS[0]), _HOLDS[1])
