"""Channels: people talk with agents through whoever brings what they say, and takes the answers to them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from msgspec import Struct
from msgspec.structs import replace

from flyball.adapters.http.asking import Answer, Asking, Stream
from flyball.adapters.http.frames import HEARTBEAT, failed, frame
from flyball.adapters.http.operations import Operation
from flyball.adapters.http.problems import unexpected
from flyball.adapters.http.tokens import Scope
from flyball.core.errors import InvalidMessage, InvalidRequest
from flyball.core.forms.semstreams import UserMessage, UserSignal
from flyball.core.ids import new_id
from flyball.orchestrate.channels import Dispatcher
from flyball.orchestrate.channels.audience import RolesOf
from flyball.orchestrate.channels.follower import Told
from flyball.orchestrate.channels.outbox import Outbox
from flyball.orchestrate.places import place_name
from flyball.orchestrate.service import Service

T = TypeVar("T")
_LAST = "last-event-id"
_SOMEBODY = "somebody"
"""Who says something, on a server that is open to its own machine, where nobody is named."""


class ResponsesQuery(Struct, frozen=True):
    """Which responses: those after the one with this id, and to this person alone."""

    after: str = ""
    user_id: str = ""


class PerService(Generic[T]):
    """Something that each service has one of."""

    def __init__(self, make: Callable[[Service], T]) -> None:
        self._make = make
        self._made: WeakKeyDictionary[Service, T] = WeakKeyDictionary()

    def __call__(self, service: Service) -> T:
        """That of a service; made where there is none yet."""
        found = self._made.get(service)
        if found is None:
            found = self._made[service] = self._make(service)
        return found


def channel_operations(heartbeat: float) -> list[Operation]:
    """The operations that are about channels; `heartbeat`: seconds after which a stream says it is there."""
    outboxes, dispatchers = PerService(Outbox), PerService(Dispatcher)

    def dispatcher(asking: Asking) -> Dispatcher:
        roles = asking.roles
        return dispatchers(asking.service).with_roles(lambda _: roles)

    async def say_on_channel(asking: Asking) -> Answer:
        said = _read(await asking.json(), UserMessage.read, asking, "message_id")
        response = await dispatcher(asking).take(said)
        outboxes(asking.service).stir()
        return Answer(response.write())

    async def signal_on_channel(asking: Asking) -> Answer:
        said = _read(await asking.json(), UserSignal.read, asking, "signal_id")
        return Answer((await dispatcher(asking).take(said)).write())

    async def follow_channel(asking: Asking) -> Stream:
        query = asking.query(ResponsesQuery)
        last, outbox = asking.headers.get(_LAST) or query.after, outboxes(asking.service)
        await outbox.check(_channel(asking), last)  # while it can be answered as such
        told = outbox.follow_from(_channel(asking), last, query.user_id, _roles_of(asking), asking.person)
        return Stream(_frames(told, heartbeat), again=True)

    base = "/api/channels/{channel_type}/{channel_id}"
    return [
        Operation(
            "POST",
            f"{base}/messages",
            "Say something to an agent, or a command",
            say_on_channel,
            scope=Scope.RUN,
            body=dict[str, Any],
            gives={200: dict[str, Any]},
            problems=(422,),
            tag="channels",
            about="The body is a `UserMessage` without its channel: `content`, and what else there is to say "
            "(`attachments`, `thread_id`, `reply_to`, `metadata`). The same `message_id` again changes "
            "nothing. The answer is a `UserResponse`: that a loop has begun, what a command gives, an error.",
        ),
        Operation(
            "POST",
            f"{base}/signals",
            "Say something to a loop, as a person on a channel",
            signal_on_channel,
            scope=Scope.SIGNAL,
            body=dict[str, Any],
            gives={200: dict[str, Any]},
            problems=(422,),
            tag="channels",
            about="The body is a `UserSignal` without its channel: `type`, `loop_id`, `payload`.",
        ),
        Operation(
            "GET",
            f"{base}/responses",
            "Be told what people on a channel are answered",
            follow_channel,
            query=ResponsesQuery,
            gives={200: Stream},
            long=True,
            tag="channels",
            problems=(422,),
            about="Events: `response`, a `UserResponse`, with its id. Who sends the last one as "
            "`Last-Event-ID` goes on after it, the oldest first; an id of nothing that was told here is a "
            "problem (422). What is not over may be told again, with its `response_id` alone, as are pieces "
            "of answers: they are no place to come back to.",
        ),
    ]


def _roles_of(asking: Asking) -> RolesOf:
    """The roles that who asks is known to have: a person's are theirs alone."""
    person, roles = asking.person, asking.roles
    return lambda user_id: roles if person is None or person.user_id == user_id else ()


def _channel(asking: Asking) -> str:
    return place_name(asking.values["channel_type"], asking.values["channel_id"])


def _read(document: Any, read: Callable[[Any], Any], asking: Asking, name: str) -> Any:
    """What was said, with the channel that it came by, and who says it.

    Raises:
        InvalidRequest: it is none, or names another channel.
    """
    if not isinstance(document, dict):
        raise InvalidRequest("the body is no object", field="")
    given: dict[str, Any] = {**document}
    for field in ("channel_type", "channel_id"):
        if given.setdefault(field, asking.values[field]) != asking.values[field]:
            raise InvalidRequest(f"{field} is another than that of the path", field=field)
    given.setdefault(name, new_id())
    try:
        said = read(given)
    except InvalidMessage as error:
        raise InvalidRequest(error.message, field=str(error.details.get("field", ""))) from error
    person = asking.person
    if person is not None and said.user_id not in ("", person.user_id):
        raise InvalidRequest(f"user_id: this token is {person.user_id!r}, and nobody else", field="user_id")
    who = person.user_id if person is not None else said.user_id or asking.principal.name or _SOMEBODY
    said = replace(said, user_id=who)
    try:
        said.validate()
    except InvalidMessage as error:
        raise InvalidRequest(error.message, field=str(error.details.get("field", ""))) from error
    return said


async def _frames(told: AsyncGenerator[Told], heartbeat: float) -> AsyncGenerator[bytes]:
    """Responses as server-sent events, and signs of life between them, one of them at once.

    What is no place to come back to has no id there: the last one that somebody has never goes back.
    """
    yield HEARTBEAT  # with which the status and the headers go
    async with aclosing(told):
        coming: asyncio.Future[Told] = asyncio.ensure_future(anext(told))
        try:
            while True:
                await asyncio.wait([coming], timeout=heartbeat)
                if not coming.done():
                    yield HEARTBEAT
                    continue
                try:
                    one = coming.result()
                except Exception as error:
                    yield failed(unexpected(error).record())
                    return
                yield frame(
                    "response", one.response.write(), one.response.response_id if one.is_place else ""
                )
                coming = asyncio.ensure_future(anext(told))
        finally:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)
