"""What can be asked for: one table, of which routes, scopes and the OpenAPI document are made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from msgspec import Struct, field

from flyball.adapters.http.asking import Answer, Asking, Stream
from flyball.adapters.http.tokens import Scope

Perform: TypeAlias = Callable[[Asking], Awaitable[Answer | Stream]]


class Operation(Struct, frozen=True):
    """Something that can be asked for.

    `path` has its places in braces. `gives` has the type of each answer that is no problem, by its status:
    None for an answer without a body, `Stream` for events. `problems` are the statuses of problems that it
    has besides those that all have. `scope` is what a token must have; None where no token is asked for.
    """

    method: str
    path: str
    summary: str
    perform: Perform
    scope: Scope | None = Scope.READ
    body: Any = None
    body_optional: bool = False
    query: type[Struct] | None = None
    gives: dict[int, Any] = field(default_factory=lambda: {200: dict[str, Any]})
    problems: tuple[int, ...] = ()
    tag: str = "loops"
    about: str = ""
    long: bool = False
    """Whether it may stay open for long, and counts as a stream."""
    media_type: str = "application/json"
    fault: Any = None
    """The type of what is told of a failure, where that is no problem but JSON of another form."""

    @property
    def name(self) -> str:
        """What it is called in the document, and in the numbers."""
        return self.perform.__name__
