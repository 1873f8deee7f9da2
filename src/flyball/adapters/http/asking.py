"""One request: who asks, and for what. The operations see this, and nothing of the server's library."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, field

from flyball.adapters.http.awaiting import Awaiting
from flyball.adapters.http.bodies import Body
from flyball.adapters.http.limits import Limits
from flyball.adapters.http.problems import Malformed, WrongMedia, unwritten
from flyball.adapters.http.rights import check_scope, person_of
from flyball.adapters.http.tokens import Principal, Scope
from flyball.core.correlation import Correlation
from flyball.core.errors import InvalidRequest
from flyball.orchestrate.permissions import Person
from flyball.orchestrate.service import Service

S = TypeVar("S", bound=Struct)


class Asking:
    """A request, as an operation sees it."""

    __slots__ = (
        "_receive",
        "awaiting",
        "correlation",
        "ending",
        "headers",
        "limits",
        "principal",
        "query_values",
        "service",
        "values",
    )

    def __init__(
        self,
        *,
        principal: Principal,
        service: Service,
        correlation: Correlation,
        headers: Mapping[str, str],
        values: Mapping[str, str],
        query: Mapping[str, str],
        receive: Callable[[], Awaitable[Any]],
        limits: Limits,
        awaiting: Awaiting,
        ending: bool = False,
    ) -> None:
        self.principal = principal
        self.service = service
        self.correlation = correlation
        """The ids that it came with, or was given: `request_id`, and those of its trace."""
        self.headers = headers
        """Its headers, with small letters."""
        self.values = values
        """What stands in the places of its path."""
        self.query_values = query
        self.limits = limits
        self.awaiting = awaiting
        self.ending = ending
        """Whether the server is about to end."""
        self._receive = receive

    def allow(self, scope: Scope) -> None:
        """Check that the caller may do this.

        Raises:
            Forbidden: its token is not for that.
            NotPermitted: it is a person's, and they may not.
        """
        check_scope(self.principal, self.service.policy, scope)

    @property
    def person(self) -> Person | None:
        """The person who asks, where it is one whose roles count; None of a program, which has its scopes."""
        return person_of(self.principal, self.service.policy)

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles of who asks, beside those that the policy knows. On its own machine, one may do all."""
        return self.principal.roles if self.principal.token else ("admin",)

    async def have_model(self, agent: str) -> None:
        """Go on if an agent's model is here. The body must have been read.

        Raises:
            ModelBeingFetched, Gone, ShuttingDown: see `Awaiting.have`.
        """
        system = self.service.systems.get(agent)
        if system is not None:
            await self.awaiting.have(system.agent.config.model, self.headers, self.gone)

    def query(self, kind: type[S]) -> S:
        """What its query says.

        Raises:
            InvalidRequest: a parameter that there is none of, or a value that it cannot have.
        """
        for name in self.query_values:
            if name not in (names := kind.__struct_encode_fields__):
                near = get_close_matches(name, names, 1)
                meant = f": did you mean {near[0]}?" if near else f"; there are: {', '.join(names) or 'none'}"
                raise InvalidRequest(f"there is no parameter {name[:100]!r}{meant}", field=name[:100])
        try:
            return msgspec.convert(dict(self.query_values), kind, strict=False)
        except msgspec.ValidationError as error:
            raise unwritten(error) from error

    async def body(self) -> bytes:
        """Its body, whole.

        Raises:
            WrongMedia: it is said to be something else than JSON.
            TooLarge, TooSlow: there is too much of it, or it does not come.
            Malformed: who sent it went away before its end.
        """
        given = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if given != "application/json" and not given.endswith("+json"):
            raise WrongMedia(f"send JSON, with Content-Type: application/json, not {given[:100]!r}")
        parts: list[bytes] = []
        body = Body(self._receive, self.headers, self.limits)
        while True:
            message = await body.receive()
            if message["type"] == "http.disconnect":
                raise Malformed("the body broke off")
            if part := message.get("body", b""):
                parts.append(part)
            if not message.get("more_body", False):
                return parts[0] if len(parts) == 1 else b"".join(parts)

    async def json(self) -> Any:
        """Its body, read as JSON.

        Raises:
            Malformed: it is none. And what `body` raises.
        """
        return read_json(await self.body())

    async def gone(self) -> None:
        """Wait until the caller has gone away. Its body must have been read."""
        while (await self._receive())["type"] != "http.disconnect":
            continue

    async def document(self, kind: type[S], *, optional: bool = False) -> S:
        """Its body, which has this form, and nothing else in it. An `optional` one may be left out.

        Raises:
            InvalidRequest: it has another. And what `json` raises.
        """
        sent = self.headers.get("content-length", "0") != "0" or "transfer-encoding" in self.headers
        if optional and not sent:
            return kind()
        try:
            return msgspec.convert(await self.json(), kind)
        except msgspec.ValidationError as error:
            raise unwritten(error) from error


def read_json(data: bytes) -> Any:
    """JSON from bytes.

    Raises:
        Malformed: it is none, or goes too deep.
    """
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Malformed(f"the body is no JSON: {error}") from error
    except RecursionError:
        raise Malformed("the body is nested too deeply") from None


class Answer(Struct, frozen=True):
    """What is answered: a document. `content` is written as JSON, unless it is bytes already."""

    content: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    media_type: str = "application/json"


class Stream(Struct, frozen=True):
    """What is answered: server-sent events, as they come. `gone` is called if the caller goes away early."""

    events: AsyncGenerator[bytes]
    gone: Callable[[], Awaitable[None]] | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    again: bool = False
    """Whether who reads it can come back, and go on where it was."""
