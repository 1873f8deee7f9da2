"""A connection to NATS that is never given up: what is asked is asked again until it is answered.

What is published carries an id by which the server knows it again, so that making a request twice does no
harm. Who may come in is settled by what the user has: a token, a password, a credentials file, an nkey, TLS.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from flyball.core.errors import (
    JournalFailure,
    JournalUnreachable,
    MissingExtra,
    PermissionDenied,
    UserError,
)
from flyball.runtime.nats.asking import NOBODY, Asker, Unanswered
from flyball.runtime.nats.denials import Denials
from flyball.runtime.nats.identity import identity_of, is_text
from flyball.runtime.nats.naming import unsalted
from flyball.runtime.nats.stored import no_answer_yet

if TYPE_CHECKING:
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

T = TypeVar("T")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0
_EAR = 1.0
"""Seconds in which whoever listens says so, or the server that nobody does: it comes at once, or late."""
_NOWHERE = "fly.nowhere"
_MONITORING = re.compile(r"https?://[^/@?#\s]+(/[^@?#\s]*)?")
_LAST_WORDS = 1.0
"""Seconds in which a server says what it had sent by the time that nobody wants to hear any more."""
_LET_IN_NO_MORE = re.compile("revoked|expired|authorization", re.IGNORECASE)
"""What a server says that lets somebody in no more."""
_ATTEMPT = 5.0
"""Seconds after which one attempt is given up and made again."""


class NatsOptions(Struct, frozen=True):
    """Where the servers are, and how to come in. Files are given by their paths; credentials also as text.

    `patience`: seconds for which a request is made again before it fails. `ping_interval`: seconds between
    two pings; when several were not answered, the line counts as cut. `replicas` and `partitions`: how much
    there is to be of everything (see `Layout`), on servers that have none of it yet. `monitoring`: addresses
    of the servers' monitoring, such as http://127.0.0.1:8222, where workers ask whether what is acknowledged
    is on disk. `synced`: somebody vouches that it is, and nobody asks.
    """

    servers: tuple[str, ...] = ("nats://127.0.0.1:4222",)
    name: str = "flyball"
    token: str | None = None
    user: str | None = None
    password: str | None = None
    credentials: str | None = None
    nkey: str | None = None
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    patience: float = 40.0  # longer than a message is held for a worker that has died
    ping_interval: float = 10.0
    replicas: int = 1
    partitions: int = 4
    monitoring: tuple[str, ...] = ()
    synced: bool = False

    def __post_init__(self) -> None:
        if not self.servers or not all(self.servers):
            raise UserError(
                f"servers={self.servers!r}: name at least one server, such as nats://127.0.0.1:4222"
            )
        for address in self.monitoring:
            if not _MONITORING.fullmatch(address):
                raise UserError(
                    f"monitoring={address!r}: it is an address such as http://127.0.0.1:8222, without a user"
                )

    def check_files(self) -> None:
        """Do nothing where the files are there.

        Raises:
            UserError: one is not.
        """
        for path in (self.credentials, self.nkey):
            if path is not None and not is_text(path) and not Path(path).is_file():
                raise UserError(f"the file {path!r} for NATS is not there")

    def tls(self) -> ssl.SSLContext | None:
        """The TLS context that the files make, if any were given.

        Raises:
            UserError: one of them cannot be read.
        """
        if not (self.tls_ca or self.tls_cert):
            return None
        try:
            context = ssl.create_default_context(cafile=self.tls_ca)
            if self.tls_cert:
                context.load_cert_chain(self.tls_cert, self.tls_key)
        except OSError as error:
            raise UserError(f"the TLS files for NATS cannot be used: {error}") from error
        return context


class Connection:
    """One connection, shared by all that speaks to NATS in a process. Closed by whoever made it."""

    def __init__(self, client: Any, asker: Asker, denials: Denials, options: NatsOptions) -> None:
        self._client = client  # nats-py's, whose types leave too much open
        self._asker = asker
        self._denials = denials
        self.options = options
        self.identity = denials.who
        self.patience = options.patience
        self.js: Any = client.jetstream(prefix=self.identity.api, timeout=_ATTEMPT)

    @property
    def max_payload(self) -> int:
        """The largest message that the server takes, in bytes."""
        return self._client.max_payload

    @property
    def server(self) -> tuple[str, str]:
        """The server that it speaks to, or did last: its id, and its name."""
        info: dict[str, str] = self._client._server_info
        return info["server_id"], info["server_name"]

    @property
    def is_of_a_cluster(self) -> bool:
        """Whether the server is one of several: what is said to it, others learn a moment later."""
        return bool(self._client._server_info.get("cluster"))

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._client.is_closed

    @contextmanager
    def on_rejoining(self, call: Callable[[], None]) -> Generator[None]:
        """Have something called inside the block, each time the line is there again after a cut."""
        self._asker.rejoined.append(call)
        try:
            yield
        finally:
            self._asker.rejoined.remove(call)

    def new_inbox(self) -> str:
        """A subject that nobody else has."""
        return self._client.new_inbox()

    async def subscribe(
        self, subject: str, heard: Callable[[Msg], Awaitable[None]], queue: str = ""
    ) -> Subscription:
        """Hear what is published on a subject, from some moment on; after `flush`, from then on.

        Of those who share a `queue`, one hears it.
        """
        return await self._client.subscribe(subject, queue=queue, cb=heard)

    async def hang_up(self, subscription: Subscription) -> None:
        """Hear no more; what the server had sent by then is heard yet, where it is there to tell."""
        from nats.errors import Error

        if self.closed:
            return
        try:
            async with asyncio.timeout(_LAST_WORDS):
                await subscription.drain()
        except (Error, OSError):  # a TimeoutError is one of these
            with suppress(Error, OSError):
                await subscription.unsubscribe()

    async def publish(self, subject: str, data: bytes, reply: str = "") -> None:
        """Say something, which nobody may hear.

        Raises:
            JournalUnreachable: the connection was closed: by us, or by the server, which lets this user in no
                more.
        """
        from nats.errors import ConnectionClosedError

        try:
            await self._client.publish(subject, data, reply=reply)
        except ConnectionClosedError as error:
            raise self._was_closed(unsalted(subject)) from error

    @contextmanager
    def on_refusal(self, subject: str, call: Callable[[], None]) -> Generator[None]:
        """Have something called inside the block, when the server refuses a subject."""

        def told(refused: str, error: PermissionDenied) -> bool:
            if refused != subject.lower():
                return False
            call()
            return True

        self._denials.told.append(told)
        try:
            yield
        finally:
            self._denials.told.remove(told)

    def check(self, subject: str) -> None:
        """Do nothing where the server has not refused a subject, as far as it is known.

        Raises:
            PermissionDenied: it has.
        """
        self._denials.check(subject)

    async def is_heard(self, subject: str) -> bool:
        """Whether somebody listens on a subject just now, or may: the server says if nobody does."""
        try:
            await self._asker.ask(subject, b"", None, _EAR)
        except Unanswered as why:
            return why.args[0] != NOBODY
        return True

    async def flush(self, subject: str = "") -> None:
        """Wait until the server has all that was said, and has begun to tell what comes on a subject.

        Raises:
            JournalUnreachable: it does not answer.
            PermissionDenied: this user may not hear that.
        """
        # Not the client's own flush: one that is broken off, or out of time, ends its reading for good.
        # A question that nobody serves is answered by the server itself, after all that came before it.
        await self.patiently(self._turned_back)
        if subject:
            self.check(subject)

    async def _turned_back(self) -> None:
        try:
            await self._asker.ask(_NOWHERE, b"", None, _ATTEMPT)
        except Unanswered as why:
            if why.args[0] != NOBODY:
                raise

    async def request(self, subject: str, data: bytes, headers: Mapping[str, str] | None = None) -> Msg:
        """Ask, and ask again until there is an answer. That JetStream has none for now is no answer.

        Raises:
            JournalUnreachable: there was none for as long as patience lasts.
            JournalFailure: it is larger than the server takes.
            PermissionDenied: this user may not ask that.
        """
        shown = unsalted(subject)
        if len(data) > self.max_payload:
            raise JournalFailure(
                f"a message of {len(data):,} bytes for {shown} is larger than the {self.max_payload:,} "
                "that the server takes: raise its max_payload",
                subject=shown,
            )
        seconds = min(_ATTEMPT, self.patience)

        async def ask() -> Msg:
            message = await self._asker.ask(subject, data, headers, seconds)
            if why := no_answer_yet(message):
                raise Unanswered(why)
            return message

        return await self.patiently(ask, shown)

    async def patiently(self, do: Callable[[], Awaitable[T]], what: str = "JetStream") -> T:
        """Do something on the wire that may be done twice, and again until it is answered.

        Raises:
            JournalUnreachable: it was not, for as long as patience lasts.
            PermissionDenied: this user may not do it.
            nats.js.errors.APIError: the server's own answer.
        """
        until = time.monotonic() + self.patience
        pause = _FIRST_PAUSE
        while True:
            try:
                return await do()
            except _passing() as error:
                if self.closed:
                    raise self._was_closed(what) from error
                if time.monotonic() + pause >= until:
                    raise JournalUnreachable(
                        f"NATS does not answer ({str(error) or type(error).__name__}), asked for "
                        f"{self.patience:g} s at {self._servers()}: is the server up, and may this user use "
                        f"{what}?"
                    ) from error
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def aclose(self) -> None:
        """Let go of it. What was sent is flushed first, where the server is still there."""
        if not self.closed:
            # A line that is just being lost cannot be written to any more; uvloop says so by an error.
            with suppress(RuntimeError, OSError):
                await self._client.close()

    @property
    def refused(self) -> PermissionDenied | None:
        """That this user is let in no more, where the server has closed the connection for that; or None."""
        said = str(self._client.last_error or "").strip("'")
        if not self.closed or not _LET_IN_NO_MORE.search(said):
            return None
        who = self.identity
        return PermissionDenied(
            f"the NATS server lets {who} in no more ({said}): its credentials were revoked, or have expired: "
            "use new ones (flyball tenants creds TENANT ROLE)",
            role=who.role or "",
            tenant=who.tenant,
        )

    def _was_closed(self, what: str) -> JournalUnreachable:
        said = self._client.last_error
        why = "" if said is None else f" by the server ({said})"
        return JournalUnreachable(f"the connection to NATS was closed{why} while {what} was asked")

    def _servers(self) -> str:
        urls = [server.uri.geturl() for server in self._client._server_pool]
        return ", ".join(map(without_secrets, urls)) or "no server"


@cache
def _passing() -> tuple[type[Exception], ...]:
    """What may pass by itself: the server is away, or has no leader yet."""
    from nats.errors import ConnectionClosedError, NoRespondersError
    from nats.errors import TimeoutError as NoAnswer
    from nats.js.errors import NoStreamResponseError, ServiceUnavailableError

    away = (ConnectionClosedError, Unanswered, OSError)  # a TimeoutError is one of these
    return (NoAnswer, NoRespondersError, NoStreamResponseError, ServiceUnavailableError, *away)


async def connect(options: NatsOptions) -> Connection:
    """Connect, within the options' patience.

    Raises:
        MissingExtra: nats-py is not installed.
        UserError: a file of the options cannot be used, or the server refuses this user.
        JournalUnreachable: no server answers.
    """
    try:
        from nats.errors import Error

        from flyball.runtime.nats.client import FastClient
    except ImportError:
        raise MissingExtra("speaking to NATS needs nats-py: pip install 'flyball[nats]'") from None
    options.check_files()
    denials = Denials(identity_of(options.credentials))
    client: Any = FastClient()
    seen: list[Exception] = []
    denied = asyncio.Event()

    async def failed(error: Exception) -> None:
        if denials.heard(str(error)):
            return
        if not client.is_connected:
            seen.append(error)
        if "authorization" in str(error).lower():
            denied.set()  # it would be tried again for ever, and never be let in

    async def joined() -> None:
        denials.forget()
        await asker.joined()

    asker = Asker(client)
    denials.told += [asker.denied, client.denied]
    connecting: asyncio.Future[Any] = asyncio.ensure_future(
        client.connect(
            list(options.servers),
            name=options.name,
            error_cb=failed,
            disconnected_cb=asker.cut,
            reconnected_cb=joined,
            token=options.token,
            user=options.user,
            password=options.password,
            user_credentials=_credentials(options.credentials),
            inbox_prefix=denials.who.inbox,
            nkeys_seed=options.nkey,
            tls=options.tls(),
            max_reconnect_attempts=-1,
            reconnect_time_wait=0.2,
            ping_interval=options.ping_interval,
            connect_timeout=2,
        )
    )
    refused = asyncio.ensure_future(denied.wait())
    try:
        await asyncio.wait(
            [connecting, refused], timeout=options.patience, return_when=asyncio.FIRST_COMPLETED
        )
        if connecting.done() and not denied.is_set():
            connecting.result()
            await asker.begin()
            return Connection(client, asker, denials, options)
    except (Error, OSError) as error:
        seen.append(error)
    finally:
        for task in (connecting, refused):
            task.cancel()
        await asyncio.gather(connecting, refused, return_exceptions=True)
    await client.close()
    why = next((error for error in seen if denied.is_set() and "authorization" in str(error).lower()), None)
    where = ", ".join(map(without_secrets, options.servers))
    if why is not None:
        raise UserError(f"the NATS server at {where} does not let this user in: {why}")
    told = str(seen[-1]) if seen else f"nothing came in {options.patience:g} s"
    raise JournalUnreachable(f"no NATS server answers at {where}: {told}")


def _credentials(given: str | None) -> Any:
    """Credentials as the client library takes them: the path of a file, which is read at each coming in."""
    from nats.aio.client import RawCredentials

    return RawCredentials(given) if given is not None and is_text(given) else given


def without_secrets(url: str) -> str:
    """A server's address without the password that may stand in it."""
    scheme, mark, rest = url.rpartition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}"
