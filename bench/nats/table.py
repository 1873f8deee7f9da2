"""What is printed: the floor and flyball, for each number of processes, and where the time went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from bench.nats.floor import Steps
from bench.nats.paused import BUDGET as SOON
from bench.nats.paused import GROWTH, Paused
from bench.nats.speed import Speed
from bench.nats.usage import Cores

if TYPE_CHECKING:
    from rich.table import Table

BUDGET = 0.40
"""The least share of the floor's steps that flyball's events must come to."""
_TIMES = "\N{MULTIPLICATION SIGN}"


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
    ):
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


def waiting_table(paused: Paused) -> Table:
    """What loops that wait cost, and how soon one goes on."""
    from rich.table import Table

    title = f"{paused.loops:,} loops that wait, {paused.resumed:,} of them resumed one after another"
    shown = Table(title=title, title_justify="left")
    shown.add_column("what")
    for heading in ("p50", "p99", "most", "budget"):
        shown.add_column(heading, justify="right")
    first, second, last = [
        f"{1000 * one:.1f} ms" for one in (paused.part(0.5), paused.part(0.99), max(paused.latencies))
    ]
    in_time = "[green]✓[/]" if max(paused.latencies) <= SOON else "[red]✗[/]"
    shown.add_row(
        "from the signal to the loop's next event", first, second, last, f"{1000 * SOON:.0f} ms {in_time}"
    )
    reads = sorted(paused.reading)
    first, last = [f"{1000 * one:.1f} ms" for one in (reads[len(reads) // 2], reads[-1])]
    shown.add_row("reading a loop's journal", first, "", last, "", end_section=True)
    most = max(paused.worker)
    flat = "[green]✓[/]" if paused.flat else "[red]✗[/]"
    shown.add_row(
        "a worker's memory: with none, with all, as they go on",
        *[f"{one / 1e6:.1f} MB" for one in (paused.worker[0], paused.worker[1], most)],
        f"{GROWTH:g}{_TIMES} {flat}",
    )
    shown.add_row(
        "the server's memory: with none, with all, as they go on",
        *[f"{one / 1e6:.1f} MB" for one in (paused.server[0], paused.server[1], max(paused.server[2:]))],
        "",
    )
    return shown


def said_of(paused: Paused) -> str:
    """What was done for it."""
    return (
        f"{4 * paused.loops:,} appends in {paused.filling:.0f} s before; while they were resumed, cores in "
        f"use: worker {paused.cores.clients:.2f}, server {paused.cores.server:.2f}, others and this process "
        f"{paused.cores.others:.2f}"
    )
