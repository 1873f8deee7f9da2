"""The command: makes the environments, measures, prints the table; its exit code says how it went."""

from __future__ import annotations

import json
import platform
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.measure import Measurement

from bench.peers.environments import ENVIRONMENTS, Unavailable, is_ready, python_of
from bench.peers.frameworks import FLYBALL, Framework, chosen_peers
from bench.peers.outcomes import Outcome, outcomes_of
from bench.peers.progress import Progress
from bench.peers.rounds import Effort, Results, Subject, measure
from bench.peers.rows import chosen_rows
from bench.peers.table import table, verdict
from bench.peers.workers import about

THOROUGH = Effort(processes=3, rounds=8, samples=5, sample_ns=10_000_000)
QUICK = Effort(processes=1, rounds=3, samples=3, sample_ns=2_000_000)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; gives 1 if a target was missed, a figure is void or a peer could not be measured."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        rows, peers = chosen_rows(options.only), chosen_peers(options.peer)
    except ValueError as error:
        parser.error(str(error))
    effort = QUICK if options.quick else THOROUGH
    with Progress(len(rows) + 1 + len(peers)) as progress:
        subjects, unavailable = prepare([FLYBALL, *peers], progress)
        measured: dict[str, Results] = {}
        for row in rows:
            progress.step(f"{row.name}: {row.what}")
            measured[row.name] = measure(row, subjects, effort)
    outcomes = outcomes_of(rows, measured)
    _print(outcomes, subjects)
    print(verdict(outcomes, unavailable))
    if options.json is not None:
        options.json.write_text(json.dumps(report(outcomes, subjects, unavailable, effort), indent=2) + "\n")
    return 1 if unavailable or any(one.verdict in ("missed", "void") for one in outcomes) else 0


def prepare(
    frameworks: Sequence[Framework], progress: Progress, folder: Path = ENVIRONMENTS
) -> tuple[list[Subject], list[str]]:
    """The frameworks that can be measured, and a line for each that cannot."""
    subjects: list[Subject] = []
    unavailable: list[str] = []
    for framework in frameworks:
        waits = "" if is_ready(framework, folder) else " (to be installed: this takes a while)"
        progress.step(f"{framework.name}{waits}")
        try:
            python = python_of(framework, folder)
            subjects.append(Subject(framework, python, about(framework, python)))
        except Unavailable as reason:
            unavailable.append(str(reason))
    return subjects, unavailable


def report(
    outcomes: Sequence[Outcome], subjects: Sequence[Subject], unavailable: Sequence[str], effort: Effort
) -> dict[str, Any]:
    """What was measured, as JSON; times in nanoseconds, memory in bytes."""
    return {
        "on": {"Python": platform.python_version()},
        "effort": effort._asdict(),
        "frameworks": {
            subject.framework.name: {"versions": subject.about.versions, "notes": subject.about.notes}
            for subject in subjects
        },
        "not measured": list(unavailable),
        "rows": [
            {
                "name": outcome.row.name,
                "what": outcome.row.what,
                "unit": outcome.row.unit,
                "figures": {name: result.figure for name, result in outcome.results.items()},
                "void": {name: result.void for name, result in outcome.results.items() if result.void},
                "fastest peer": None if outcome.fastest is None else outcome.fastest.name,
                "times": outcome.times,
                "target": outcome.row.target,
                "verdict": outcome.verdict,
            }
            for outcome in outcomes
        ],
    }


def _print(outcomes: Sequence[Outcome], subjects: Sequence[Subject]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    versions = [f"{name} {of}" for one in subjects for name, of in list(one.about.versions.items())[:1]]
    console.print(" · ".join([f"Python {platform.python_version()}", *versions]) + "\n")
    printed = table(outcomes, [subject.framework.name for subject in subjects])
    # Never cut: a line that is too long for a terminal is wrapped by it.
    console.width = Measurement.get(console, console.options.update(max_width=1000), printed).maximum
    console.print(printed, soft_wrap=False, crop=False)


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="make bench-peers", description="Measure flyball beside other frameworks.")
    parser.add_argument("--quick", action="store_true", help="measure less: for a look, not for a verdict")
    parser.add_argument(
        "--only", action="append", default=[], metavar="ROW", help="only this row; may be said again"
    )
    parser.add_argument(
        "--peer", action="append", default=[], metavar="NAME", help="only this peer; may be said again"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to a file")
    return parser


if __name__ == "__main__":
    sys.exit(main())
