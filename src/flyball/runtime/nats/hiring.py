"""Hiring: the consumers that workers have their messages from, and who makes them.

Whoever may make a consumer says which messages it gives, and where it sends them: that is to read and to
write everything. So users that are model or tools workers only may not. They ask, and the loop workers make
what such workers have, and nothing else.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from flyball.core.errors import (
    FlyballError,
    JournalFailure,
    JournalFull,
    JournalUnreachable,
    PermissionDenied,
)
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
_QUIET = 30.0
"""Seconds for which it is not told again that somebody is not hired."""
_HOLDS = (1.0, 3600.0)
UNUSED = 8 * 24 * 3600.0
"""Seconds after which a consumer goes that nobody takes messages from, of those for one tool or one agent.
That is longer than the wire is kept: all that was done by it is gone from there, so that a later one of the
same name is given what is not done, and nothing twice."""
_FOR_STRANGERS = 500
"""How many consumers a stream has when none is made any more for a name that no agent here has. A server lets
a stream have a thousand: those that are known here find a place."""


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
    full: bool = False
    """Whether that is for want of room, which can pass."""


_NO_MORE = 10026
"""A stream has as many consumers as it may have."""


async def hire(connection: Connection, post: Post) -> None:
    """Have the consumer of a post: from then on nothing is missed.

    Raises:
        JournalUnreachable: the server does not answer, or no loop worker is there to be asked.
        JournalFull: there are as many consumers as may be.
        JournalFailure: the server does not make it.
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
    answer = msgspec.json.decode(said.data, type=_Answer)
    if answer.full:
        raise JournalFull(answer.error, tenant=connection.identity.tenant, stream=post.stream)
    if answer.error:
        raise PermissionDenied(answer.error, subject=where, role=connection.identity.role)


async def _make(connection: Connection, post: Post) -> None:
    """Make a consumer, or see that it is as it should be.

    Raises:
        JournalUnreachable: the server does not answer.
        JournalFull: there are as many as may be.
        JournalFailure: the server does not make it.
    """
    from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
    from nats.js.errors import APIError

    config = ConsumerConfig(
        durable_name=post.name,
        ack_policy=AckPolicy.EXPLICIT,
        ack_wait=post.hold,
        max_deliver=-1,
        # Without end: what waits for newer workers is given out and not done, however much of it there is,
        # and must not be all that there may be. How much is worked on, workers say by how much they ask for.
        max_ack_pending=-1,
        deliver_policy=DeliverPolicy.NEW if post.only_new else DeliverPolicy.ALL,
        filter_subjects=list(post.subjects),
        inactive_threshold=UNUSED if post.name.startswith(_TOOL) or _FOR in post.name else None,
    )
    try:
        await connection.patiently(lambda: connection.js.add_consumer(post.stream, config))
    except APIError as error:
        said = error.description or str(error)
        if error.err_code == _NO_MORE:
            raise _no_place(connection, post, said) from error
        raise JournalFailure(
            f"NATS does not make the consumer {post.name} of {post.stream}: {said}", stream=post.stream
        ) from error


def _no_place(connection: Connection, post: Post, said: str) -> JournalFull:
    return JournalFull(
        f"the stream {post.stream} has no place for the consumer {post.name} ({said}): raise the limits of "
        f"the account or of the server, or take away those not used (nats consumer ls {post.stream}), "
        f"which go by themselves after {UNUSED / 86_400:g} days; if somebody has asked for names that there "
        "are not, revoke the credentials of those workers",
        tenant=connection.identity.tenant,
        stream=post.stream,
    )


class Hirer:
    """Makes consumers for those who may not, while the connection is open."""

    def __init__(self, connection: Connection, known: Collection[str] = ()) -> None:
        """`known`: the names of those that agents which are here need."""
        self._connection = connection
        self._known = known
        self._quiet_until = 0.0

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
                await self._check_room(post)
                await _make(self._connection, msgspec.structs.replace(post, hold=_within(post.hold)))
            else:
                answer = _Answer(f"a {kind} worker has no messages from {post.stream} by {post.name}")
        except msgspec.DecodeError as error:
            answer = _Answer(f"what a {kind} worker asks for cannot be read: {error}")
        except JournalUnreachable as error:
            _log.warning("a %s worker is not hired: %s", kind, error)
            return  # it asks again
        except FlyballError as error:
            self._warn(kind, error)
            answer = _Answer(str(error), full=True)
        await self._connection.publish(message.reply, msgspec.json.encode(answer))

    def _warn(self, kind: str, error: FlyballError) -> None:
        """Tell it, if it was not told lately: anybody may ask for any number of names."""
        if time.monotonic() >= self._quiet_until:
            self._quiet_until = time.monotonic() + _QUIET
            _log.warning("a %s worker is not hired: %s", kind, error)

    async def _check_room(self, post: Post) -> None:
        """See that consumers for names that are not known here leave room for the others.

        Raises:
            JournalFull: they do not.
        """
        from nats.js.errors import NotFoundError

        if post.name in self._known or (post.stream, post.name) == (AGENT, "model"):
            return
        connection = self._connection
        info = await connection.patiently(lambda: connection.js.stream_info(post.stream))
        if info.state.consumer_count < _FOR_STRANGERS:
            return
        try:
            await connection.patiently(lambda: connection.js.consumer_info(post.stream, post.name))
        except NotFoundError:
            said = f"it has {info.state.consumer_count}, and no agent of this loop worker has that name"
            raise _no_place(connection, post, said) from None


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
