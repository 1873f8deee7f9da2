"""The seam between an engine and whoever teaches its model to call tools."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from flyball.core.messages import FinishReason
from flyball.inference.request import Request
from flyball.inference.stream import StreamEvent


class Rendered(Struct, frozen=True):
    """What a model is given: messages of `role` and `content` for its chat template, and a grammar if any.

    An assistant's message at the end is one that the model goes on with. `body` is laid over the call as
    the runtime takes it (`stop`, `temperature`, …).
    """

    messages: tuple[dict[str, str], ...]
    grammar: str | None = None
    body: dict[str, Any] | None = None


class AnswerParser(Protocol):
    """Turns one answer's text into events as it comes; one parser an answer."""

    def feed(self, text: str) -> Iterable[StreamEvent]:
        """The events that a piece of text makes; a piece may be cut anywhere."""
        ...

    def close(self, reason: FinishReason) -> Iterable[StreamEvent]:
        """The events that are left when the text has ended. No `Finish`: the engine adds it."""
        ...


@runtime_checkable
class ToolProtocol(Protocol):
    """How requests become messages and a grammar, and how the text that comes back becomes an answer.

    A turn may take two steps: a short question first (`question`), whose answer (`choice`) decides how the
    turn itself is put. Small models choose well when they are asked nothing else.
    """

    @property
    def tools(self) -> bool:
        """Whether requests may carry tools."""
        ...

    def question(self, request: Request) -> Rendered | None:
        """What to ask before the turn; None where there is nothing to decide."""
        ...

    def render(self, request: Request, choice: str | None = None) -> Rendered:
        """What the model is given for a request.

        Raises:
            FlyballError: of the taxonomy; the request cannot be put so.
        """
        ...

    def parser(self, request: Request, first: int, choice: str | None = None) -> AnswerParser:
        """Reads the answer to that request; the index of its first part is `first`."""
        ...
