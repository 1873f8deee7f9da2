"""HeardDrive: a drive that people may listen to, and that leaves alone what somebody else drives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import aclosing
from typing import Any

from flyball.core.effects import Effect, Infer
from flyball.core.events import Event
from flyball.core.ids import new_id
from flyball.orchestrate.claims import DrivenElsewhere, claim_on, knows_claims
from flyball.orchestrate.driver import Drive
from flyball.orchestrate.elsewhere import Delta
from flyball.orchestrate.hearing import Hearing
from flyball.orchestrate.journal import Claim, Journal
from flyball.orchestrate.model_call import infer_in_pieces
from flyball.orchestrate.requests import request_of


class HeardDrive(Drive):
    """A drive whose model calls are made in pieces while somebody hears of them."""

    stays = (
        True  # whoever waits for the loop is told; the loop itself goes on by itself once there are results
    )
    hearers: Callable[[], Sequence[Hearing]] = staticmethod(lambda: ())
    aloud = False
    """Whether they are made so in any case."""
    said: Sequence[Delta] = ()
    """The pieces of the model call under way, for who begins to hear in the middle of it."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.resting: list[asyncio.Future[None]] = []
        """Those who wait until it is driven no further."""

    @classmethod
    def claimed(cls, journal: Journal, loop_id: str) -> Claim | None:
        """See `Drive.claimed`: what somebody else drives is left to them.

        Raises:
            DrivenElsewhere: somebody does.
        """
        claim = claim_on(journal, loop_id)
        if claim is None and knows_claims(journal):
            raise DrivenElsewhere
        return claim

    def stood_still(self, _: object = None) -> None:
        """Tell those who wait for that."""
        resting, self.resting = self.resting, []
        for one in resting:
            if not one.done():
                one.set_result(None)

    def perform(self, effect: Effect) -> Coroutine[Any, Any, Event | None]:
        """Carry out one effect."""
        heard = _is_shown(effect) and (self.aloud or self.hearers())
        return self._infer(effect) if heard else super().perform(effect)

    async def _infer(self, effect: Effect) -> Event | None:
        assert isinstance(effect, Infer)
        call, number, turn = new_id(), 0, self.state.turn
        self.said = []
        request = request_of(self.state, effect, self.parts)
        calling = infer_in_pieces(self.bindings.engine, request, turn, self.clock.now)
        async with aclosing(calling) as pieces:
            async for piece in pieces:
                if isinstance(piece, Event):
                    self.said = []  # the recorded answer has them
                    return piece
                delta = Delta(effect.id, turn, call, number, piece)
                self.said.append(delta)
                for hearing in self.hearers():
                    hearing.put(delta)
                number += 1
        return None


def _is_shown(effect: Effect) -> bool:
    """Whether an effect is one whose pieces are shown: a turn's model call."""
    return type(effect) is Infer and effect.purpose == "turn"
