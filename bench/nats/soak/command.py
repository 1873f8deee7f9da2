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
from pathlib import Path
from typing import Protocol, TextIO

import uvloop
from msgspec.structs import replace

from bench.nats.soak.crowd import KINDS, Crowd
from bench.nats.soak.trouble import kills, make_trouble
from bench.nats.soak.verdict import Verdict, judge
from bench.nats.soak.work import CALLS, PROMPT, make_agent
from flyball.runtime.nats import EmbeddedServer, NatsRuntime

_SHOWN = 20


def main(arguments: Sequence[str] | None = None, out: TextIO | None = None) -> int:
    """Run the command; gives 1 if anything does not hold."""
    options = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="flyball-soak-") as temporary:
        folder = Path(options.folder or temporary)
        began = time.perf_counter()
        killed: Counter[str] = Counter()
        verdict = uvloop.run(_soak(options, folder, killed))
        return _tell(verdict, killed, time.perf_counter() - began, options, out)


async def _soak(options: Namespace, folder: Path, killed: Counter[str]) -> Verdict:
    notes, said = folder / "notes", folder / "said"
    ids = [f"loop-{n}" for n in range(options.loops)]
    plan = kills(options.kills, options.loops * len(CALLS), options.seed)
    failed: list[str] = []
    async with EmbeddedServer(folder / "server") as server:
        async with (
            Crowd(server.options, notes, said) as crowd,
            await NatsRuntime.open(replace(server.options, patience=options.seconds)) as runtime,
        ):
            trouble = asyncio.ensure_future(make_trouble(plan, notes, server, crowd, killed))
            with _bar(options.loops, killed) as bar:
                try:
                    async with asyncio.timeout(options.seconds):
                        await _run_all(runtime, ids, options.at_once, failed, bar)
                except TimeoutError:
                    failed.append(f"not all loops were over after {options.seconds:g} s")
            trouble.cancel()
            (ended,) = await asyncio.gather(trouble, return_exceptions=True)
            if isinstance(ended, Exception):
                raise ended
        # Nobody is left who could mend anything: what the server has is what there is.
        verdict = await judge(server.options, ids, notes)
    return verdict._replace(broken=failed + verdict.broken)


async def _run_all(
    runtime: NatsRuntime, ids: Sequence[str], at_once: int, failed: list[str], bar: Bar
) -> None:
    """Ask for all loops and wait for each, some at a time."""
    agent, left = make_agent(), iter(ids)

    async def some() -> None:
        for loop_id in left:
            try:
                await agent.run(PROMPT, runtime=runtime, loop_id=loop_id)
            except Exception as error:
                failed.append(f"{loop_id}: who waited for it was told {type(error).__name__}: {error}")
            bar.advance()

    await asyncio.gather(*[some() for _ in range(min(at_once, len(ids)))])


class Bar(Protocol):
    """How far it is."""

    def advance(self) -> None: ...


@contextmanager
def _bar(loops: int, killed: Counter[str]) -> Generator[Bar]:
    """A bar on standard error, gone at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("loops", total=loops)

        class Shown:
            def advance(self) -> None:
                progress.update(task, description=f"loops, {killed.total()} kills", advance=1)

        yield Shown()


def _tell(
    verdict: Verdict, killed: Counter[str], seconds: float, options: Namespace, out: TextIO | None
) -> int:
    from rich.console import Console

    console = Console(file=out)
    of_each = ", ".join([f"{number} {kind}" for kind, number in sorted(killed.items())]) or "none"
    for name, value in {
        "seed": options.seed,
        "loops": f"{verdict.loops:,} of {len(CALLS)} tool calls",
        "events": f"{verdict.events:,}",
        "processes": f"{len(KINDS)} of workers, and the server",
        "killed": f"{killed.total()} ({of_each})",
        "tool runs": f"{verdict.runs:,}: {verdict.repeated:,} repeated, {verdict.interrupted:,} interrupted",
        "seconds": f"{seconds:.1f}",
    }.items():
        console.print(f"{name:12}{value}", highlight=False)
    for what in verdict.broken[:_SHOWN]:
        console.print(f"[red]broken[/]: {what}", highlight=False, soft_wrap=True)
    if len(verdict.broken) > _SHOWN:
        console.print(f"[red]and {len(verdict.broken) - _SHOWN} more[/]")
    if not verdict.broken:
        console.print("all complete, no event twice, no result lost, at_most_once tools never twice")
    return 1 if verdict.broken else 0


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="make soak", description="Run loops on NATS while workers and the server are killed at random."
    )
    add = parser.add_argument
    add("--loops", type=int, default=1000, metavar="N", help="how many (1,000)")
    add("--kills", type=int, default=40, metavar="N", help="how many processes are killed (40)")
    add("--seed", type=int, default=1, metavar="N", help="which are killed, and when (1)")
    add("--seconds", type=float, default=900.0, metavar="S", help="how long it may take (900)")
    add("--at-once", type=int, default=100, metavar="N", help="how many loops are waited for at once (100)")
    add("--folder", type=Path, metavar="DIR", help="keep the server's data and what was said here")
    return parser


if __name__ == "__main__":
    sys.exit(main())
