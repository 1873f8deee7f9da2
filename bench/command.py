"""The command: starts a fresh process for each row, prints the table; its exit code says how it went."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench import ROOT
from bench.figures import Figures
from bench.rows import ROWS, Row, chosen
from bench.table import Outcome, table, verdict
from bench.timing import Effort

THOROUGH = Effort(rounds=20, samples=5, sample_ns=4_000_000)
QUICK = Effort(rounds=6, samples=3, sample_ns=2_000_000)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; gives 1 if a budget was missed or a row is void."""
    parser = _parser()
    options = parser.parse_args(arguments)
    effort = QUICK if options.quick else THOROUGH
    if options.row is not None:
        print(json.dumps(_measure_here(options.row, effort)))
        return 0
    try:
        rows = chosen(options.only)
    except ValueError as error:
        parser.error(str(error))
    outcomes = _measure(rows, options)
    print(_title())
    print(table(outcomes, colour=sys.stdout.isatty() and "NO_COLOR" not in os.environ))
    print(verdict(outcomes))
    if options.json is not None:
        options.json.write_text(json.dumps(report(outcomes, effort), indent=2) + "\n")
    return 1 if any(outcome.verdict in ("over", "void") for outcome in outcomes) else 0


def report(outcomes: Sequence[Outcome], effort: Effort) -> dict[str, Any]:
    """What was measured, as JSON; times in nanoseconds."""
    rows = [
        {
            **outcome.row._asdict(),
            **(outcome.figures._asdict() if outcome.figures is not None else {}),
            "ratio": outcome.ratio,
            "verdict": outcome.verdict,
            "void": outcome.void or None,
        }
        for outcome in outcomes
    ]
    return {"on": _versions(), "effort": effort._asdict(), "rows": rows}


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="make bench", description="Measure flyball beside a hand-written loop.")
    parser.add_argument("--quick", action="store_true", help="measure less: for a look, not for a verdict")
    parser.add_argument(
        "--only", action="append", default=[], metavar="ROW", help="only this row; may be said again"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to a file")
    # What a row's own process is told.
    parser.add_argument("--row", choices=[row.name for row in ROWS], help="measure one row here, print JSON")
    return parser


def _measure(rows: Sequence[Row], options: Namespace) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for number, row in enumerate(rows, start=1):
        _progress(f"{number} of {len(rows)}  {row.name}: {row.what.strip()}")
        processes = 1 if options.quick else row.processes
        outcomes.append(lowest([_in_fresh_process(row, quick=options.quick) for _ in range(processes)]))
    _progress("")
    return outcomes


def _in_fresh_process(row: Row, *, quick: bool) -> Outcome:
    finished = subprocess.run(
        [sys.executable, "-m", "bench.command", "--row", row.name, *(["--quick"] if quick else [])],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode != 0:
        sys.stderr.write(finished.stderr)
        lines = finished.stderr.strip().splitlines() or [f"exit code {finished.returncode}"]
        return Outcome(row, None, f"its process failed: {lines[-1]}")
    return outcome_of(row, json.loads(finished.stdout))


def lowest(outcomes: Sequence[Outcome]) -> Outcome:
    """What came of a row in several processes: the lowest of each figure, or what is void in one of them."""
    for outcome in outcomes:
        if outcome.figures is None:
            return outcome
    figures = [outcome.figures for outcome in outcomes if outcome.figures is not None]
    least = Figures(min(one.base for one in figures), min(one.flyball for one in figures), figures[0].unit)
    return Outcome(outcomes[0].row, least)


def outcome_of(row: Row, said: dict[str, Any]) -> Outcome:
    """The outcome that a row's process printed."""
    void = said.get("void")
    return Outcome(row, Figures(**said)) if void is None else Outcome(row, None, void)


def _measure_here(name: str, effort: Effort) -> dict[str, Any]:
    from bench.asking import Void

    (row,) = [row for row in ROWS if row.name == name]
    module, function = row.where.split(":")
    measure = getattr(import_module(f"bench.{module}"), function)
    try:
        return asyncio.run(measure(effort))._asdict()
    except Void as void:
        return {"void": str(void)}


def _progress(line: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[2K{line}")
        sys.stderr.flush()


def _title() -> str:
    versions = [f"{name} {of}" for name, of in _versions().items()]
    return " · ".join(["flyball beside its floor", *versions]) + "\n"


def _versions() -> dict[str, str]:
    return {
        "Python": platform.python_version(),
        "msgspec": version("msgspec"),
        "pydantic": version("pydantic"),
    }


if __name__ == "__main__":
    sys.exit(main())
