"""Journals to look at: those of a world that hypothesis plays, and the effect that each event answers."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from flyball.core.effects import Execute
from flyball.core.events import Event, ToolStarted
from flyball.orchestrate.machine import owed
from tests.orchestrate.simulation import World, from_outside, is_work, one_in, one_of_these, specs


@dataclass
class Played:
    """A journal, and by the number of an event the id of the effect that it answers (or records)."""

    events: list[Event]
    effects: dict[int, str] = field(default_factory=dict[int, str])


class _Unchecked(World):
    """A world that is not looked at while it is played: others do that."""

    def check(self) -> None:
        pass


@st.composite
def played(draw: st.DrawFn, steps: int = 25) -> Played:
    """What a loop under some spec has gone through after some steps, whatever came."""
    world = _Unchecked(draw(specs))
    effects: dict[int, str] = {}
    for _ in range(draw(st.integers(0, steps))):
        if world.over:
            break
        work = [effect for effect in owed(world.state) if is_work(effect)]
        if not work or one_in(draw, 6):
            world.offer(from_outside(draw, world))
            continue
        effect = one_of_these(draw, work)
        if isinstance(effect, Execute) and effect.once:
            number = len(world.journal)
            if world.offer(ToolStarted(world.now, effect.turn, effect.index)):
                effects[number] = effect.id
        number = len(world.journal)
        if world.offer(world.answer(draw, effect)):
            effects[number] = effect.id
    return Played(list(world.journal), effects)


def journals(steps: int = 25) -> st.SearchStrategy[list[Event]]:
    return played(steps).map(lambda game: game.events)
