"""What the routes need of a server: systems by the names of their agents, and an embedder, if it has one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from flyball.adapters.http.openai.errors import no_model
from flyball.inference.embedder import Embedder
from flyball.orchestrate.contracts import SystemRequest
from flyball.orchestrate.system import System


class Serving(Protocol):
    """A server, as these protocols see it. Who may ask for what is its own matter."""

    def agents(self) -> Sequence[str]:
        """The names that a client may ask for, as `model`."""
        ...

    def system(self, name: str) -> System | None:
        """The system that serves under a name; None where there is none."""
        ...

    def owned(self, request: SystemRequest) -> SystemRequest:
        """A request, with whose it is."""
        ...

    async def check_answer(self, loop_id: str) -> None:
        """See that who asks may give a loop results that it waits for.

        Raises:
            NotPermitted: they may not.
        """
        ...

    async def cancel(self, loop_id: str) -> None:
        """Cancel a loop.

        Raises:
            NotPermitted: it is not for who asks to cancel.
            FlyballError: it is over, or not there.
        """
        ...

    async def delete(self, loop_id: str) -> bool:
        """Remove a loop for good; False where the journal keeps all.

        Raises:
            FlyballError: it is not over, or not there.
        """
        ...

    def embedder(self, name: str) -> Embedder | None:
        """What makes vectors under a name; None where nothing does."""
        ...


def system_named(serving: Serving, name: str) -> System:
    """The system that serves under a name.

    Raises:
        Refused: there is none.
    """
    system = serving.system(name)
    if system is None:
        raise no_model(name)
    return system
