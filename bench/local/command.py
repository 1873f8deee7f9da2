"""The command: measures every model, and prints what a grammar leaves of the speed."""

from __future__ import annotations

import asyncio
import json
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import msgspec

from bench.control.command import Advance, default_models, progress
from bench.local.kinds import KINDS, Kind
from bench.local.speed import TARGET, Speed, measure
from flyball.core.errors import FlyballError
from flyball.inference.registry import resolve_engine

if TYPE_CHECKING:
    from rich.table import Table


def main(arguments: Sequence[str] | None = None, out: TextIO | None = None) -> int:
    """Run the command; gives 1 if a grammar costs too much, 2 if an engine failed."""
    options = _parser().parse_args(arguments)
    models: list[str] = options.model or default_models()
    kinds = [kind for kind in KINDS if not options.only or kind.name in options.only]
    try:
        with progress(len(models) * len(kinds) * (options.rounds + 1)) as advance:
            speeds = asyncio.run(_measure_all(models, kinds, options.rounds, advance))
    except FlyballError as error:
        print(f"{error.code}: {error}", file=sys.stderr)
        return 2
    if options.json is not None:
        rows = [{**msgspec.to_builtins(speed), "kept": speed.kept, "met": speed.met} for speed in speeds]
        options.json.write_text(json.dumps(rows, indent=2) + "\n")
    return _tell(speeds, out)


async def _measure_all(
    models: Sequence[str], kinds: Sequence[Kind], rounds: int, advance: Advance
) -> list[Speed]:
    speeds: list[Speed] = []
    for model in models:
        engine = resolve_engine(model)
        try:
            speeds += await measure(model, engine, kinds, rounds, advance)
        finally:
            close = getattr(engine, "aclose", None)
            if close is not None:
                await close()
    return speeds


def _tell(speeds: Sequence[Speed], out: TextIO | None) -> int:
    from rich.console import Console

    console = Console(file=out)
    console.print(table(speeds))
    for kind, what in {speed.kind: speed.what for speed in speeds}.items():
        console.print(f"{kind}: {what}", style="dim")
    slow = [speed for speed in speeds if not speed.met]
    for speed in slow:
        console.print(
            f"[red]missed[/]: {speed.model} keeps {speed.kept:.0%} under the grammar of {speed.kind}"
        )
    return 1 if slow else 0


def table(speeds: Sequence[Speed]) -> Table:
    """All kinds of all models."""
    from rich.table import Table

    shown = Table(title="Tokens per second without a grammar and with one", title_justify="left")
    for heading in ("model", "kind"):
        shown.add_column(heading)
    for heading in ("free", "grammar", "kept", "by rounds", "target"):
        shown.add_column(heading, justify="right")
    for speed in speeds:
        shown.add_row(
            speed.model,
            speed.kind,
            f"{speed.best_free:.1f}",
            f"{speed.best_constrained:.1f}",
            f"[{'green' if speed.met else 'red'}]{speed.kept:.1%}[/]",
            f"{speed.kept_by_rounds:.1%}",
            f"{TARGET:.0%}",
        )
    return shown


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="bench/local/run.py", description=" ".join((__doc__ or "").split()))
    add = parser.add_argument
    add("-m", "--model", action="append", help="a model string; may be said again (local and SmolLM2)")
    add("--only", action="append", default=[], choices=[kind.name for kind in KINDS], help="only this kind")
    add("--rounds", type=int, default=5, metavar="N", help="rounds of each side (5)")
    add("--json", type=Path, metavar="FILE", help="write all rounds to a file")
    return parser
