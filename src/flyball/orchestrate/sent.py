"""What the model was really sent, from the journal: the loop's request, with what middleware made of it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from flyball.core.around import Around
from flyball.core.effects import Infer
from flyball.core.messages import Message
from flyball.inference.middleware.difference import restored
from flyball.inference.request import Request
from flyball.orchestrate.reaching import base
from flyball.orchestrate.requests import RequestParts, request_of
from flyball.orchestrate.state import State


class Asking(Struct, frozen=True):
    """A model call that is owed: the loop's request, and what the edits of middleware will be against."""

    request: Request
    base: Sequence[Message]

    @classmethod
    def of(cls, state: State, effect: Infer, parts: RequestParts) -> Asking:
        """A call that a state owes; its event changes the state, so this is taken before."""
        request = request_of(state, effect, parts)
        return cls(request, request.messages if state.reached is None else tuple(base(state)))

    def sent(self, around: Around | None) -> tuple[Request, ...]:
        """The requests that reached the model, in order; none, where middleware answered in its place.

        Raises:
            JournalCorrupt: what was recorded of them cannot be read.
        """
        if around is None:
            return (self.request,)
        return tuple([restored(self.request, one, self.base) for one in around.sent])
