"""The wire between workers: the stream AGENT, and what is claimed so that only one has it.

Everything here can be worked out again from the journals: a command that was lost is published again by
whoever looks at its loop. What is published has the effect's id, by which the server knows a double.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from math import ceil
from typing import Any

import msgspec

from flyball.core.ids import new_id
from flyball.runtime.nats.blobs import Blobs
from flyball.runtime.nats.connection import Connection
from flyball.runtime.nats.deliveries import FROM, LOOP, Delivery
from flyball.runtime.nats.entry import BLOB
from flyball.runtime.nats.fetching import subject_at, tail
from flyball.runtime.nats.layout import Layout, make, make_bucket, opened_bucket
from flyball.runtime.nats.messages.told import write_time
from flyball.runtime.nats.naming import bucket_key, token
from flyball.runtime.nats.stored import FULL, WRONG_LAST, Refusal, Stored, not_taken
from flyball.runtime.nats.subjects import DEAD, DEAD_SUBJECTS
from flyball.runtime.nats.wire import CLAIMS, WIRE_BLOBS, hired_for, hired_for_tool

KEPT = 7 * 24 * 3600.0
"""Seconds that the wire is kept: nothing rests on it once a loop is over."""
_ROOM = 16_384
"""Bytes of a message that are left to its headers and its subject."""
_PLAIN = re.compile(r"[!-~]{1,256}", re.ASCII)
"""What can stand in a header as it is: ids are anybody's, and may hold blanks and ends of lines."""
_COUNT = re.compile(rb"[0-9]{1,18}")
"""A number as it is kept in the bucket."""
_TRUSTED = 60.0
"""Seconds for which it is believed that an agent's workers are there, once they were."""


class Bus:
    """The wire, on one connection."""

    def __init__(self, connection: Connection, layout: Layout) -> None:
        self.connection = connection
        self.wire = layout.wire
        self._layout = layout
        stores = (WIRE_BLOBS, self.wire.tool_blobs)
        self._blobs = {name: Blobs(connection, layout.replicas, name, KEPT) for name in stores}
        self._claims: Any = None
        self._hired: dict[tuple[str, str], float] = {}

    async def set_up(self) -> None:
        """Make what is missing.

        Raises:
            UserError: the server does not make it; the message says why.
        """
        if self.connection.identity.is_set_up_for:
            self._claims = opened_bucket(self.connection, CLAIMS)
            return
        from nats.js.api import StorageType, StreamConfig

        shared: dict[str, Any] = {"storage": StorageType.FILE, "num_replicas": self._layout.replicas}
        wanted = [
            StreamConfig(
                name,
                subjects=list(subjects),
                max_age=KEPT,
                duplicate_window=120,
                allow_direct=True,
                allow_msg_schedules=name == self.wire.timers,
                **shared,
            )
            for name, subjects in self.wire.streams.items()
        ]
        for config in (*wanted, StreamConfig(DEAD, subjects=[DEAD_SUBJECTS], allow_direct=True, **shared)):
            await make(self.connection, config.name or "", partial(self.connection.js.add_stream, config))
        # Kept for ever: a loop may be gone on with after years, and what may start once has started.
        await make_bucket(self.connection, CLAIMS, self._layout.replicas, rollup=not self._layout.apart)
        # Read from who leads it: a copy that is behind does not know what has just been noted.
        self._claims = opened_bucket(self.connection, CLAIMS)

    async def publish(
        self,
        subject: str,
        data: bytes,
        name: str,
        *,
        loop_id: str = "",
        first: bool = False,
        whole: bool = False,
        more: Mapping[str, str] | None = None,
    ) -> bool:
        """Put a message on the wire, durably; `name` is its id. With `first`, only if its subject has none.

        One that is too large for the server is kept beside it, unless it is to go `whole`.
        Returns whether it is there: False only where somebody else's was first.

        Raises:
            JournalUnreachable: the server does not answer.
            JournalFailure: it does not take it; JournalFull, where there is no room for it.
        """
        headers = {"Nats-Msg-Id": name if _PLAIN.fullmatch(name) else token(name), **(more or {})}
        if loop_id:
            headers[LOOP] = token(loop_id)
        if first:
            headers["Nats-Expected-Last-Subject-Sequence"] = "0"
        if not whole and len(data) + _ROOM > self.connection.max_payload:
            headers[BLOB] = await self._blobs[self.wire.blobs(subject)].put(data)
            data = b""
        stored = await self._stored(subject, data, headers)
        if stored.duplicate and await self._is_anothers(stored, subject):
            # Whoever may write to the stream may have guessed the id, to keep this message from being taken.
            stored = await self._stored(subject, data, headers | {"Nats-Msg-Id": new_id()})
        refusal = stored.error
        if refusal is None:
            return True
        if first and refusal.err_code == WRONG_LAST:
            return False
        raise not_taken(self.connection.identity, f"a message for {subject}", refusal)

    async def _stored(self, subject: str, data: bytes, headers: dict[str, str]) -> Stored:
        answer = await self.connection.request(subject, data, headers)
        return msgspec.json.decode(answer.data, type=Stored)

    async def _is_anothers(self, stored: Stored, subject: str) -> bool:
        """Whether what the server takes for an earlier copy of a message is one on another subject.

        Who may not read the stream (model and tools workers) shares its subjects with its own kind only.
        """
        if not self.connection.identity.may_read_journals:
            return False
        found = await subject_at(self.connection, stored.stream, stored.seq)
        return found not in ("", subject)

    async def opened(self, delivery: Delivery) -> bytes:
        """What a message holds, from wherever it is.

        Raises:
            JournalCorrupt: it is not there any more.
        """
        blob = delivery.headers.get(BLOB)
        store = self._blobs[self.wire.blobs(delivery.subject)]
        return await store.get(blob, delivery.subject) if blob else delivery.data

    async def done_with(self, delivery: Delivery) -> None:
        """Let go of what was kept beside a message that is done."""
        if blob := delivery.headers.get(BLOB):
            await self._blobs[self.wire.blobs(delivery.subject)].drop(blob)

    async def forward(self, kind: str, agent: str, delivery: Delivery) -> bool:
        """Give a message to the workers of an agent; False if no worker of this kind has ever had it."""
        if not await self.is_hired(kind, agent):
            return False
        headers = {name: value for name, value in delivery.headers.items() if not name.startswith("Nats-")}
        headers[FROM] = delivery.subject
        _, where = self.wire.for_agent(kind, agent)
        await self.publish(where, delivery.data, f"for/{delivery.reply}", more=headers)
        return True

    async def is_hired(self, kind: str, agent: str) -> bool:
        """Whether any worker of a kind has ever worked for an agent."""
        stream, _ = self.wire.for_agent(kind, agent)
        return await self._is_there(stream, hired_for(kind, agent))

    async def is_hosted(self, tool: str) -> bool:
        """Whether any worker has ever hosted a tool."""
        return await self._is_there(self.wire.tools, hired_for_tool(tool))

    async def _is_there(self, stream: str, consumer: str) -> bool:
        from nats.js.errors import NotFoundError

        named = stream, consumer
        if self._hired.get(named, 0.0) < time.monotonic():
            try:
                await self.connection.patiently(lambda: self.connection.js.consumer_info(*named))
            except NotFoundError:
                return False
            self._hired[named] = time.monotonic() + _TRUSTED
        return True

    async def remind(self, loop_id: str, effect: str, at: float) -> None:
        """Have a loop told when a time has come, by the server: whoever is there then."""
        where = token(loop_id)
        when = datetime.fromtimestamp(ceil(at * 1000) / 1000, UTC).isoformat(timespec="milliseconds")
        schedule = {
            "Nats-Schedule": f"@at {when.replace('+00:00', 'Z')}",
            "Nats-Schedule-Target": f"{self.wire.due}.{where}",
        }
        told = write_time(loop_id, effect, at)
        asked = f"{self.wire.schedule}.{where}"
        await self.publish(asked, told, f"{effect}/timer", loop_id=loop_id, more=schedule)

    async def claim(self, name: str) -> bool:
        """Take something that only one may have; whether this is the first who asks.

        Raises:
            JournalUnreachable: the server does not answer. It may have been taken all the same.
            JournalFull: there is no room for it.
        """
        subject, mine = f"$KV.{CLAIMS}.{bucket_key(name)}", new_id()
        headers = {"Nats-Msg-Id": mine, "Nats-Expected-Last-Subject-Sequence": "0"}
        answer = await self.connection.request(subject, mine.encode(), headers)
        refusal = msgspec.json.decode(answer.data, type=Stored).error
        if refusal is None:
            return True
        if refusal.err_code != WRONG_LAST:
            raise not_taken(self.connection.identity, f"what is noted in {CLAIMS}", refusal)
        # Our own, perhaps, whose answer was lost.
        return (await tail(self.connection, f"KV_{CLAIMS}", subject)).id == mine

    async def note(self, name: str, value: bytes = b"1") -> None:
        """Note something under a name, for whoever asks later."""
        key = bucket_key(name)
        await self._written(lambda: self._claims.put(key, value))

    async def is_noted(self, name: str) -> bool:
        """Whether somebody has noted a name."""
        return await self._kept(bucket_key(name)) is not None

    async def note_told(self, loop_id: str, number: int) -> None:
        """Note up to which of its events people were told of a loop, where no tools worker may write."""
        await self._written(lambda: self._claims.put(_told_key(loop_id), b"%d" % number))

    async def told_up_to(self, loop_id: str) -> int:
        """Up to which of its events people were told of a loop; 0 where that is not known."""
        return _number(await self._kept(_told_key(loop_id)))

    async def note_taken(self, subject: str, place: int) -> None:
        """Note up to which place of the wire all that was said on a subject was taken."""
        await self._written(lambda: self._claims.put(_taken_key(subject), b"%d" % place))

    async def taken_up_to(self, subject: str) -> int:
        """Up to which place all that was said on a subject was taken; 0 where that is not known."""
        return _number(await self._kept(_taken_key(subject)))

    async def begun(self, delivery: Delivery) -> int:
        """See `Tally.begun`."""
        key = _tally_key(delivery)
        before = _number(await self._kept(key))
        await self._written(lambda: self._claims.put(key, b"%d" % (before + 1)))
        return before

    async def answered(self, delivery: Delivery) -> None:
        """See `Tally.answered`."""
        await self._written(lambda: self._claims.put(_tally_key(delivery), b"0"))

    async def _kept(self, key: str) -> bytes | None:
        """What stands under a key of the bucket; None where nothing does."""
        from nats.js.errors import KeyNotFoundError

        try:
            found = await self.connection.patiently(lambda: self._claims.get(key))
        except KeyNotFoundError:
            return None
        return found.value or b""

    async def _written(self, do: Callable[[], Awaitable[Any]]) -> None:
        """Write into the bucket.

        Raises:
            JournalFull: there is no room for it.
        """
        from nats.js.errors import APIError

        try:
            await self.connection.patiently(do)
        except APIError as error:
            code: int = getattr(error, "err_code", 0)  # that a key is there already comes without one
            if code not in FULL:
                raise
            refusal = Refusal(code, error.description or "")
            raise not_taken(self.connection.identity, f"what is noted in {CLAIMS}", refusal) from error


def _tally_key(delivery: Delivery) -> str:
    return f"begun.{delivery.place}"


def _told_key(loop_id: str) -> str:
    """Of two words, unlike what is claimed and noted: who may write one may not write the other."""
    return f"told.{bucket_key(loop_id)}"


def _taken_key(subject: str) -> str:
    """Of two words, for the same reason."""
    return f"said.{bucket_key(subject)}"


def _number(kept: bytes | None) -> int:
    """A number that was kept; 0 where none was, or what was cannot be read."""
    return int(kept) if kept is not None and _COUNT.fullmatch(kept) else 0
