"""Who called: what it may do, what it can be told, and whether its user can be asked something."""

from __future__ import annotations

from typing import Any, Literal

from mcp.server.context import ServerRequestContext
from mcp_types import ElicitResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from msgspec import Struct

from flyball.orchestrate.permissions import Person


class Caller(Struct, frozen=True):
    """What a caller may do besides having agents run; `name` is who it is known as, if it is."""

    reads: bool = True
    """See what is recorded."""
    signals: bool = True
    """Decide about calls that wait for a person."""
    name: str = ""
    person: Person | None = None
    """The person whose roles count; None of a program."""


class Client:
    """The client behind one request."""

    def __init__(self, context: ServerRequestContext[Any, Any], caller: Caller) -> None:
        self._context = context
        self._caller = caller
        self._told = 0

    @property
    def version(self) -> str:
        """The version of the protocol that it speaks."""
        return self._context.protocol_version

    @property
    def wants_progress(self) -> bool:
        """Whether it asked to be told of progress."""
        return (self._context.meta or {}).get("progress_token") is not None

    @property
    def name(self) -> str:
        """Who it is, for the records: by its token, or as it calls itself."""
        said = self._context.session.client_params
        return self._caller.name or (said.client_info.name[:100] if said is not None else "") or "mcp"

    @property
    def person(self) -> Person | None:
        """The person who calls, whose runs are theirs; None of a program."""
        return self._caller.person

    @property
    def reads(self) -> bool:
        """Whether it may see what is recorded."""
        return self._caller.reads

    @property
    def decides(self) -> bool:
        """Whether it may decide about calls that wait for a person."""
        return self._caller.signals

    @property
    def asks(self) -> Literal["now", "later", "never"]:
        """How its user is asked: while it waits, by an answer that asks for another call, or not at all."""
        session = self._context.session
        able = session.client_capabilities
        asking = None if able is None else able.elicitation
        if not self._caller.signals or asking is None or (asking.form is None and asking.url is not None):
            return "never"
        if self.version in MODERN_PROTOCOL_VERSIONS:
            return "later"
        return "now" if session.can_send_request else "never"

    async def tell(self, text: str) -> None:
        """Tell it that there is progress."""
        self._told += 1
        await self._context.session.report_progress(self._told, None, text)

    async def ask(self, question: str, form: dict[str, Any]) -> ElicitResult:
        """Ask its user something.

        Raises:
            MCPError: it cannot be asked, or went away.
        """
        return await self._context.session.elicit_form(question, form, self._context.request_id)
