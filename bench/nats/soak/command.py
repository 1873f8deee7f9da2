"""The command: loops, and trouble; then what came of it. Its exit code says whether all held."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TextIO

import uvloop
from msgspec.structs import replace

from bench.nats.nodes import all_ready, nodes
from bench.nats.paused import fill
from bench.nats.soak.crowd import KINDS, Crowd
from bench.nats.soak.growth import Sample, judged, watch
from bench.nats.soak.trouble import Kill, kills, make_trouble
from bench.nats.soak.verdict import Verdict, judge
from bench.nats.soak.work import CALLS, PROMPT, make_agent
from flyball.runtime.nats import NatsJournal, NatsOptions, NatsRuntime

if TYPE_CHECKING:
    from rich.console import Console

_SHOWN = 20


def main(arguments: Sequence[str] | None = None, out: TextIO | None = None) -> int:
    """Run the command; gives 1 if anything does not hold."""
    options = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="flyball-soak-") as temporary:
        folder = Path(options.folder or temporary)
        began = time.perf_counter()
        seen = Seen()
        verdict = uvloop.run(_soak(options, folder, seen))
        return _tell(verdict, seen, time.perf_counter() - began, options, out)


class Seen:
    """What is seen while it runs."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.over = 0
        self.killed: Counter[str] = Counter()
        self.samples: list[Sample] = []
        self.failed: list[str] = []


async def _soak(options: Namespace, folder: Path, seen: Seen) -> Verdict:
    notes, said = folder / "notes", folder / "said"
    async with nodes(folder / "server", "always", options.nodes, partitions=4) as servers:
        patient = replace(servers.options, patience=options.seconds)
        waiting = await _waiting(patient, options.paused)
        async with (
            Crowd(patient, notes, said) as crowd,
            await NatsRuntime.open(patient) as runtime,
        ):
            plan = _plan(options)
            beside = [
                asyncio.ensure_future(make_trouble(plan, notes, servers.nodes, crowd, seen.killed)),
                asyncio.ensure_future(
                    watch(seen.samples, lambda: seen.over, crowd.spared, servers.nodes, runtime)
                ),
            ]
            with _bar(options, seen) as bar:
                try:
                    async with asyncio.timeout(options.seconds + 60 * options.minutes):
                        await _run_all(runtime, options, seen, bar)
                except TimeoutError:
                    seen.failed.append(f"not all loops were over after {options.seconds:g} s")
            for task in beside:
                task.cancel()
            for ended in await asyncio.gather(*beside, return_exceptions=True):
                if isinstance(ended, Exception):
                    raise ended
        # Nobody is left who could mend anything: what the servers have is what there is.
        await all_ready(servers.nodes)
        # Each loop has one call under way, so no kill cuts more of them off than loops are waited for.
        cut_off = seen.killed.total() * min(options.at_once, options.loops)
        verdict = await judge(patient, seen.asked, notes, waiting, cut_off=cut_off)
    grown = [f"{row.what}: {row.last:.1f} of {row.bound:.1f}" for row in judged(seen.samples) if not row.flat]
    return verdict._replace(broken=[*seen.failed, *verdict.broken, *[f"it grows: {row}" for row in grown]])


async def _waiting(options: NatsOptions, loops: int) -> list[str]:
    """Have so many loops wait all the while."""
    if not loops:
        return []
    async with await NatsJournal.open(options) as journal:
        return await fill(journal, loops)


def _plan(options: Namespace) -> Generator[Kill]:
    """So many kills while so many loops run, and again for as many more, for as long as that goes on."""
    calls = options.loops * len(CALLS)
    for number in count() if options.kills else ():
        yield from kills(options.kills, calls, options.seed + number, options.nodes, number * calls)


async def _run_all(runtime: NatsRuntime, options: Namespace, seen: Seen, bar: Bar) -> None:
    """Ask for loops and wait for each, some at a time; for so many, and for so long."""
    agent, until = make_agent(), time.perf_counter() + 60 * options.minutes

    async def some() -> None:
        while len(seen.asked) < options.loops or time.perf_counter() < until:
            seen.asked.append(loop_id := f"loop-{len(seen.asked)}")
            try:
                await agent.run(PROMPT, runtime=runtime, loop_id=loop_id)
            except Exception as error:
                seen.failed.append(f"{loop_id}: who waited for it was told {type(error).__name__}: {error}")
            seen.over += 1
            bar.advance()

    await asyncio.gather(*[some() for _ in range(min(options.at_once, options.loops))])


class Bar(Protocol):
    """How far it is."""

    def advance(self) -> None: ...


@contextmanager
def _bar(options: Namespace, seen: Seen) -> Generator[Bar]:
    """A bar on standard error, gone at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("loops", total=None if options.minutes else options.loops)

        class Shown:
            def advance(self) -> None:
                progress.update(task, description=f"loops, {seen.killed.total()} kills", advance=1)

        yield Shown()


def _tell(verdict: Verdict, seen: Seen, seconds: float, options: Namespace, out: TextIO | None) -> int:
    from rich.console import Console

    console, killed = Console(file=out), seen.killed
    of_each = ", ".join([f"{number} {kind}" for kind, number in sorted(killed.items())]) or "none"
    for name, value in {
        "seed": options.seed,
        "loops": f"{verdict.loops:,} of {len(CALLS)} tool calls",
        "events": f"{verdict.events:,}",
        "processes": f"{len(KINDS) + 1} of workers, and {options.nodes} of the server",
        "killed": f"{killed.total()} ({of_each})",
        "tool runs": f"{verdict.runs:,}: {verdict.repeated:,} repeated, {verdict.interrupted:,} interrupted",
        "seconds": f"{seconds:.1f}",
    }.items():
        console.print(f"{name:12}{value}", highlight=False)
    if options.paused:
        console.print(f"{'waiting':12}{options.paused:,} loops, all the while", highlight=False)
    _tell_growth(console, seen)
    for what in verdict.broken[:_SHOWN]:
        console.print(f"[red]broken[/]: {what}", highlight=False, soft_wrap=True)
    if len(verdict.broken) > _SHOWN:
        console.print(f"[red]and {len(verdict.broken) - _SHOWN} more[/]")
    if not verdict.broken:
        console.print("all complete, no event twice, no result lost, at_most_once tools never twice")
    return 1 if verdict.broken else 0


def _tell_growth(console: Console, seen: Seen) -> None:
    rows = judged(seen.samples)
    if not rows:
        console.print(f"{'growth':12}not judged: {len(seen.samples)} looks are too few", highlight=False)
        return
    console.print(f"\n{'':12}{'middle third':>16}{'last third':>16}{'allowed':>16}", highlight=False)
    for row in rows:
        mark = "✓" if row.flat else "✗"
        console.print(
            f"{row.what:12}{row.middle:16,.1f}{row.last:16,.1f}{row.bound:16,.1f} {mark}", highlight=False
        )
    console.print()


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="make soak", description="Run loops on NATS while workers and servers are killed at random."
    )
    add = parser.add_argument
    add("--loops", type=int, default=1000, metavar="N", help="how many (1,000)")
    add("--kills", type=int, default=40, metavar="N", help="how many processes are killed (40)")
    add("--nodes", type=int, choices=(1, 3), default=1, help="how many servers; copies of everything (1)")
    add(
        "--minutes",
        type=float,
        default=0.0,
        metavar="M",
        help="go on with more of both for so long",
    )
    add("--paused", type=int, default=0, metavar="N", help="loops that wait all the while (none)")
    add("--seed", type=int, default=1, metavar="N", help="which are killed, and when (1)")
    add("--seconds", type=float, default=900.0, metavar="S", help="how long it may take, besides (900)")
    add("--at-once", type=int, default=100, metavar="N", help="how many loops are waited for at once (100)")
    add("--folder", type=Path, metavar="DIR", help="keep the server's data and what was said here")
    return parser


if __name__ == "__main__":
    sys.exit(main())
