"""Cassettes: real traffic, recorded once and played back in tests, without a key and without a network.

    engine = OpenAIEngine("gpt-5", api_key=key, transport=Cassette("tests/cassettes/weather.jsonl"))

The key is needed to record; any other text will do to play.

A cassette that is there is played; one that is not is recorded, where that is allowed. It is a text file with
one exchange a line, meant to be looked at and committed.

Rules kept here:
- no secret reaches the file: of the headers only harmless ones are kept, and a key that stands anywhere else
  (in an address, in a body, in an answer) is taken out;
- what is played is what was recorded, piece by piece: equal calls get their replies in the order in which
  they were recorded;
- a call that was not recorded is an error that says what differs, and never goes out.
"""

from __future__ import annotations

import os
from codecs import getincrementaldecoder
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from flyball.core.errors import EngineError, UserError
from flyball.engines.wire.secrets import hidden
from flyball.engines.wire.transport import Call, Exchange, Reply, Transport

Mode = Literal["play", "record", "once"]

_SENT = frozenset(("content-type", "accept", "anthropic-version", "anthropic-beta", "openai-beta"))
_RECEIVED = frozenset(("content-type", "retry-after", "retry-after-ms", "x-request-id", "request-id"))


class Recorded(Struct, frozen=True, omit_defaults=True):
    """One exchange. Bodies are text: what models are asked and answer always is."""

    method: str
    url: str
    status: int
    headers: dict[str, str] = {}
    sent: dict[str, str] = {}
    body: str = ""
    pieces: list[str] = []
    broke: str = ""
    """How the reply broke off, where it did not end as it should."""


class Cassette:
    """A transport that plays what another one once moved.

    Modes: `play` never goes out, `record` always does and writes the file anew, `once` (the default) plays a
    file that is there and records one that is not. The environment variable FLYBALL_CASSETTES may say
    `play` or `record` for all of them: a test run that is to reach nobody says `play`.
    """

    def __init__(
        self,
        path: str | Path,
        transport: Transport | None = None,
        *,
        mode: Mode = "once",
        secrets: Iterable[str] = (),
    ) -> None:
        """Open one; its file is read at the first call.

        Args:
            path: the file.
            transport: what really makes the calls when it records; without it, over HTTP.
            mode: whether it plays or records.
            secrets: more texts that must not reach the file.
        """
        told = os.environ.get("FLYBALL_CASSETTES", "").strip() or mode
        if told not in ("play", "record", "once"):
            raise UserError(f"a cassette is for 'play', 'record' or 'once', not {told!r}")
        self._path = Path(path)
        self._records = told == "record" or (told == "once" and not self._path.exists())
        self._transport = transport
        self._secrets = tuple(secrets)
        self._left: list[Recorded] | None = None
        self._written: list[Recorded] = []

    def open(self, call: Call) -> Exchange:
        """See `Transport.open`."""
        return _Recording(self, call) if self._records else _Played(self.find(call))

    async def aclose(self) -> None:
        """See `Transport.aclose`."""
        if self._transport is not None:
            await self._transport.aclose()

    def find(self, call: Call) -> Recorded:
        """The recorded exchange of a call; it is not found again.

        Raises:
            UserError: there is none.
        """
        if self._left is None:
            self._left = self._read()
        wanted = self.asked(call)
        for number, recorded in enumerate(self._left):
            if _key(recorded) == _key(wanted):
                return self._left.pop(number)
        raise UserError(
            f"{self._path.name} has no reply {'left ' if self._left else ''}for {wanted.method} {wanted.url}"
            f"{_nearest(wanted, self._left)}. Record it anew with FLYBALL_CASSETTES=record",
            path=str(self._path),
        )

    def asked(self, call: Call) -> Recorded:
        """A call as the file has it, without a reply."""
        secrets = self.secrets_of(call)
        kept = {name: value for name, value in call.headers.items() if name.lower() in _SENT}
        body = hidden((call.body or b"").decode("utf-8", "replace"), secrets)
        return Recorded(call.method, hidden(call.url, secrets), 0, sent=kept, body=body)

    def secrets_of(self, call: Call) -> Sequence[str]:
        """What of a call is nobody's business: all headers that are not known to be harmless."""
        proofs = [value for name, value in call.headers.items() if name.lower() not in _SENT]
        return [*self._secrets, *proofs, *[proof.removeprefix("Bearer ") for proof in proofs]]

    def inner(self) -> Transport:
        """What really makes the calls."""
        if self._transport is None:
            from flyball.engines.wire.aio import AioTransport

            self._transport = AioTransport()
        return self._transport

    def keep(self, recorded: Recorded) -> None:
        """Add an exchange to the file, which is whole at any time."""
        self._written.append(recorded)
        lines = b"".join([msgspec.json.encode(one) + b"\n" for one in self._written])
        self._path.parent.mkdir(parents=True, exist_ok=True)
        beside = self._path.with_suffix(".new")
        beside.write_bytes(lines)
        beside.replace(self._path)

    def _read(self) -> list[Recorded]:
        try:
            lines = self._path.read_bytes().splitlines()
            return [msgspec.json.decode(line, type=Recorded) for line in lines if line.strip()]
        except FileNotFoundError:
            raise UserError(
                f"there is no cassette {self._path}: record it with FLYBALL_CASSETTES=record",
                path=str(self._path),
            ) from None
        except msgspec.DecodeError as error:
            raise UserError(f"{self._path} is no cassette: {error}", path=str(self._path)) from error


class _Recording:
    def __init__(self, cassette: Cassette, call: Call) -> None:
        self._cassette = cassette
        self._call = call
        self._exchange = cassette.inner().open(call)
        self._pieces: list[bytes] = []
        self._broke = ""
        self._reply: Reply | None = None

    async def __aenter__(self) -> _Recording:
        self._reply = await self._exchange.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._exchange.__aexit__(kind, error, trace)
        cassette, asked = self._cassette, self._cassette.asked(self._call)
        secrets = cassette.secrets_of(self._call)
        kept = {
            name: hidden(text, secrets) for name, text in self.headers.items() if name.lower() in _RECEIVED
        }
        pieces = _texts(self._pieces, secrets)
        cassette.keep(replace(asked, status=self.status, headers=kept, pieces=pieces, broke=self._broke))

    @property
    def status(self) -> int:
        assert self._reply is not None
        return self._reply.status

    @property
    def headers(self) -> Mapping[str, str]:
        assert self._reply is not None
        return self._reply.headers

    async def read(self) -> bytes:
        return b"".join([piece async for piece in self.pieces()])

    async def pieces(self) -> AsyncIterator[bytes]:
        assert self._reply is not None
        try:
            async for piece in self._reply.pieces():
                self._pieces.append(piece)
                yield piece
        except EngineError as error:
            self._broke = error.message
            raise


class _Played:
    def __init__(self, recorded: Recorded) -> None:
        self._recorded = recorded
        self.status = recorded.status
        self.headers: Mapping[str, str] = _Headers(recorded.headers)

    async def __aenter__(self) -> _Played:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    async def read(self) -> bytes:
        return b"".join([piece async for piece in self.pieces()])

    async def pieces(self) -> AsyncIterator[bytes]:
        for piece in self._recorded.pieces:
            yield piece.encode()
        if self._recorded.broke:
            raise EngineError(self._recorded.broke)


class _Headers(dict[str, str]):
    """Headers, whose names are looked up in any case."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        super().__init__({name.lower(): value for name, value in headers.items()})

    def get(self, key: str, default: Any = None) -> Any:
        return super().get(key.lower(), default)


def _key(recorded: Recorded) -> tuple[str, str, Any]:
    """What makes two calls the same: not the order of keys in a body."""
    try:
        body: Any = msgspec.json.decode(recorded.body)
    except msgspec.DecodeError:
        body = recorded.body
    return recorded.method, recorded.url, body


def _nearest(wanted: Recorded, left: Sequence[Recorded]) -> str:
    alike = [one for one in left if (one.method, one.url) == (wanted.method, wanted.url)]
    if not alike:
        return ": there is none to that address"
    one, other = _key(wanted)[2], _key(alike[0])[2]
    if not isinstance(one, dict) or not isinstance(other, dict):
        return ": the body is another"
    differ = sorted(key for key in {*one, *other} if one.get(key) != other.get(key))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType, reportUnknownMemberType]
    return f": the body differs in {', '.join(map(str, differ))}"  # pyright: ignore[reportUnknownArgumentType]


def _texts(pieces: Sequence[bytes], secrets: Sequence[str]) -> list[str]:
    """The pieces of a reply as texts, cut between two characters, without secrets, not even in two halves."""
    decoder = getincrementaldecoder("utf-8")()
    try:
        texts = [decoder.decode(piece) for piece in pieces]
        texts.append(decoder.decode(b"", final=True))
    except UnicodeDecodeError as error:
        raise UserError(f"a reply that is no text cannot be kept: {error}") from error
    whole = "".join(texts)
    clean = hidden(whole, secrets)
    return [text for text in texts if text] if clean == whole else [clean]
