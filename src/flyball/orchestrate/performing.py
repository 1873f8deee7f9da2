"""What the in-process driver does for each kind of effect: the state and the bindings become its performer's
arguments. The performers themselves know of neither (`performers`).
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeAlias

from flyball.core.detach import Detach
from flyball.core.effects import Admit, Deliver, Effect, Execute, Infer, Judge, Prepare, Review, Settle
from flyball.core.events import Event, ToolStarted
from flyball.orchestrate import performers
from flyball.orchestrate.bindings import Bindings
from flyball.orchestrate.commands import call_to_run
from flyball.orchestrate.facts import call_facts
from flyball.orchestrate.ledger import LoopLedger
from flyball.orchestrate.machine import asked_to_detach, owed, take
from flyball.orchestrate.moves import SUCCESS
from flyball.orchestrate.performers import call_tool, infer
from flyball.orchestrate.requests import RequestParts, request_of
from flyball.tool.detach import Detaches

UNREAD: Any = object()
"""Stands for an output that has not been read from the state yet."""


class Performing(LoopLedger):
    """A loop's ledger with the code behind the loop: what it owes can be carried out here."""

    bindings: Bindings
    parts: RequestParts
    _detaches: Detaches | None = None
    output: Any = UNREAD

    def perform(self, effect: Effect) -> Coroutine[Any, Any, Event | None]:
        """Carry out one effect: awaited, it gives the event that answers it."""
        return _PERFORM[type(effect)](self, effect)

    def settle_by_type(self) -> None:
        """Settle an answer about which no code of the user's has a say, at once."""
        event, output = performers.settle(self.state, self.bindings.output, self.clock.now)
        if event.accepted:
            self.output = output
        if take(self.state, event):
            self.pending.append(event)

    def read_output(self) -> Any:
        """The output of a loop that ended well; None of any other."""
        if self.state.outcome is not SUCCESS:
            return None
        if self.output is UNREAD:
            self.output = self.bindings.output.of(self.state)
        return self.output

    # Calls that run

    def detach(self, call: str, *, asked: bool = False) -> Detach:
        """See `DetachSource.detach`."""
        if self._detaches is None:
            self._detaches = Detaches()
        return self._detaches.detach(call, asked=asked or call in asked_to_detach(self.state))

    def theirs_folded(self) -> None:
        """Others may have asked what runs here to detach."""
        if self._detaches is not None:
            self._detaches.ask(asked_to_detach(self.state))

    calls_again = False
    """See `Home.calls_again`: who runs a call here waits for the loop that it begins."""

    def child_options(self) -> Mapping[str, Any]:
        """Where child loops go: beside their parent, and with its clock."""
        return {"journal": self.journal, "clock": self.clock}


# One function a kind of effect


def _infer(drive: Performing, effect: Infer) -> Coroutine[Any, Any, Event]:
    bindings, purpose = drive.bindings, effect.purpose
    request = request_of(drive.state, effect, drive.parts)
    engine = bindings.engine if purpose == "turn" else bindings.engine_for(purpose)
    return infer(engine, request, effect.turn, drive.clock.now, purpose)


def _execute(drive: Performing, effect: Execute) -> Coroutine[Any, Any, Event | None]:
    if effect.once:
        return _execute_once(drive, effect)
    state, bindings, index = drive.state, drive.bindings, effect.index
    call = state.calls[index] if state.arguments is None else call_to_run(state, index)
    tool = bindings.tools.get(call.name)
    facts = call_facts(state, effect) if tool is not None and tool.wants_context else None
    return call_tool(tool, call, effect.turn, index, bindings.deps, facts, drive.clock.now, drive, drive)


async def _execute_once(drive: Performing, effect: Execute) -> Event | None:
    """Record that the call starts, then run it like any other, unless something else came first."""
    if not drive.take(ToolStarted(drive.clock.now(), effect.turn, effect.index)):
        return None
    await drive.flush()
    if not any(other.id == effect.id for other in owed(drive.state)):
        return None
    return await _execute(drive, Execute(effect.id, effect.turn, effect.index))


async def _settle(drive: Performing, _: Settle) -> Event:
    bindings = drive.bindings
    event, output = await performers.settle_validated(
        drive.state, bindings, bindings.deps, drive.clock.now, drive
    )
    if event.accepted:
        drive.output = output
    return event


def _own(perform: Callable[..., Coroutine[Any, Any, Event]]) -> Perform:
    """For the performers that are told no more than where the loop stands."""
    return lambda drive, _: perform(drive.state, drive.bindings, drive.bindings.deps, drive.clock.now, drive)


def _judge(drive: Performing, effect: Judge) -> Coroutine[Any, Any, Event]:
    bindings, now = drive.bindings, drive.clock.now
    return performers.judge(drive.state, effect.indices, bindings, bindings.deps, now, drive)


def _deliver(drive: Performing, _: Deliver) -> Coroutine[Any, Any, Event]:
    bindings, now = drive.bindings, drive.clock.now
    return performers.deliver(drive.state, bindings, drive.read_output(), bindings.deps, now, drive)


Perform: TypeAlias = Callable[[Performing, Any], Coroutine[Any, Any, Event | None]]

_PERFORM: dict[type[Any], Perform] = {
    Admit: _own(performers.admit),
    Prepare: _own(performers.prepare),
    Infer: _infer,
    Review: _own(performers.review),
    Judge: _judge,
    Execute: _execute,
    Settle: _settle,
    Deliver: _deliver,
}
"""A wait is not performed, and an end is what the driver itself comes to."""
