"""Ledger: what others append and what is folded here meanwhile come into one order, that of the journal."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from flyball import Agent, MemoryJournal
from flyball.core.events import VERSION, Event, ModelAnswered, SignalReceived, Started
from flyball.core.messages import assistant, user
from flyball.core.signals import Signal, SignalType
from flyball.orchestrate.clock import SYSTEM_CLOCK
from flyball.orchestrate.ledger import LoopLedger
from flyball.orchestrate.machine import fold, start
from tests.orchestrate.models import Script


class Slow(MemoryJournal):
    """A journal that is read slowly from where one stood."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.may = asyncio.Event(), asyncio.Event()

    async def read(self, loop_id: str, start: int = 0) -> list[Event]:
        events = await super().read(loop_id, start)
        if start:
            self.asked.set()
            await self.may.wait()
        return events


async def test_an_answer_that_comes_while_a_signal_is_read_comes_after_it() -> None:
    """The signal did fit where it was appended: the loop had not ended then."""
    journal, spec = Slow(), Agent(Script("x")).bindings().spec
    started = Started(1.0, VERSION, "one", spec, user("go"))
    paused = SignalReceived(2.0, Signal(SignalType.PAUSE, "p"))
    written: Sequence[Event] = (started, paused)
    await journal.append("one", written, 0)
    ledger = LoopLedger(journal, start(started), 1, SYSTEM_CLOCK)
    catching_up = asyncio.create_task(ledger.catch_up())
    await journal.asked.wait()
    answered = ModelAnswered(3.0, 1, assistant("done"))
    assert ledger.take(answered)
    assert ledger.state.outcome is not None, "as far as is known here, that is the end"
    journal.may.set()
    await catching_up
    assert (ledger.length, ledger.pending) == (2, [answered])
    await ledger.flush()
    assert await MemoryJournal.read(journal, "one") == [started, paused, answered]
    assert ledger.state.outcome == fold([started, paused, answered]).outcome
