"""What is printed: the floor and flyball, for each number of processes, and where the time went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from bench.nats.floor import Steps
from bench.nats.speed import Speed
from bench.nats.usage import Cores

if TYPE_CHECKING:
    from rich.table import Table

BUDGET = 0.40
"""The least share of the floor's steps that flyball's events must come to."""


class Pair(NamedTuple):
    """The floor and flyball with so many processes each; `spread` is the floor with a stream a partition."""

    processes: int
    judged: bool
    one: Steps
    spread: Steps
    flyball: Speed

    @property
    def base(self) -> Steps:
        """The faster floor."""
        return max(self.one, self.spread, key=lambda steps: steps.rate)

    @property
    def ratio(self) -> float:
        """flyball's share of it."""
        return self.flyball.rate / self.base.rate

    @property
    def met(self) -> bool:
        """Whether it is enough, where that is asked for."""
        return not self.judged or self.ratio >= BUDGET


def table(pairs: Sequence[Pair], partitions: int) -> Table:
    """All pairs."""
    from rich.table import Table

    shown = Table(title="Loops on NATS beside nats-py alone", title_justify="left")
    for heading in ("processes", "what"):
        shown.add_column(heading)
    for heading in (
        "a second",
        "of the floor",
        "budget",
        "seconds",
        "cores: clients",
        "server",
        "others",
        "idle",
        "disk",
    ):  # noqa: E501
        shown.add_column(heading, justify="right")
    for pair in pairs:
        number = str(pair.processes)
        streams = f"{partitions} streams"
        shown.add_row(number, "steps of nats-py, one stream", *_steps(pair.one, pair))
        shown.add_row("", f"steps of nats-py, {streams}", *_steps(pair.spread, pair))
        sign = "[green]✓[/]" if pair.met else "[red]✗[/]"
        shown.add_row(
            "",
            "events of flyball's journals",
            f"{pair.flyball.rate:,.0f}",
            f"{pair.ratio:.0%}",
            f"{BUDGET:.0%} {sign}" if pair.judged else "",
            f"{pair.flyball.seconds:.1f}",
            *_cores(pair.flyball.cores),
            end_section=True,
        )
    return shown


def a_loop(speed: Speed) -> str:
    """What one loop came to."""
    events, appends, wire = [one / speed.loops for one in (speed.events, speed.appends, speed.wire)]
    return (
        f"{speed.loops} loops: each {events:.1f} events in {appends:.1f} appends, {wire:.1f} messages on the "
        f"wire; {(speed.appends + speed.wire) / speed.seconds:,.0f} durable messages a second, "
        f"{1000 * speed.cores.clients * speed.seconds / speed.events:.2f} ms of a worker's CPU an event"
    )


def _steps(steps: Steps, pair: Pair) -> tuple[str, ...]:
    is_base = "100%" if steps is pair.base else ""
    return f"{steps.rate:,.0f}", is_base, "", f"{steps.seconds:.1f}", *_cores(steps.cores)


def _cores(cores: Cores) -> tuple[str, ...]:
    return tuple([f"{one:.2f}" for one in cores])
