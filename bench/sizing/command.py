"""The command: a region, steady and in trouble; or one partition, beside what was measured."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from msgspec.structs import replace

from bench.sizing.measured import FACTOR, MEASURED, SOAK_LOST, as_measured, lost, off, soak
from bench.sizing.plan import ALWAYS, DEFAULT, Failure, Plan
from bench.sizing.report import simulate
from bench.sizing.table import compared, table


def main(arguments: Sequence[str] | None = None, out: TextIO | None = None) -> int:
    """Run the command; gives 1 where the simulation is not what was measured."""
    from rich.console import Console

    options = _parser().parse_args(arguments)
    console = Console(file=out)
    if not console.is_terminal:
        console.width = 160
    if options.measured:
        rows = [(one, simulate(as_measured(one, 4.0 if options.quick else 20.0))) for one in MEASURED]
        console.print(compared(rows))
        killed = soak()
        console.print(
            f"the soak, calls lost with a worker: {lost(killed):.1f}, measured {SOAK_LOST:.1f}",
            highlight=False,
        )
        return int(any(off(one, report.rate) > FACTOR for one, report in rows))
    plan = _plan(options)
    reports = {name: simulate(case) for name, case in cases(plan).items()}
    title = f"{plan.partitions} partitions, {plan.replicas} copies, {plan.nodes} nodes in {plan.zones} zones"
    console.print(table(f"{title}, {plan.rate:g} loops begin in a second", reports))
    if options.json is not None:
        said = {name: {**report._asdict(), "nodes": list(report.nodes)} for name, report in reports.items()}
        options.json.write_text(json.dumps(said, indent=2) + "\n")
    return 0


def cases(plan: Plan) -> dict[str, Plan]:
    """A region as it is, and with what may die: a third of the time in, and back a second third later."""
    third = plan.seconds / 3

    def dies(failure: Failure) -> Plan:
        return replace(plan, failures=(failure,))

    return {
        "steady": plan,
        "a worker dies": dies(Failure(third, "worker", 1, 5.0)),
        "a node dies": dies(Failure(third, "node", 0, third)),
        "a zone dies": dies(Failure(third, "zone", 0, third)),
    }


def _plan(options: Namespace) -> Plan:
    named = ("partitions", "replicas", "nodes", "zones", "crews", "apart", "rate", "calls", "model", "tool")
    given = {name: getattr(options, name) for name in (*named, "seconds", "seed")}
    plan = Plan(**given, costs=ALWAYS if options.sync == "always" else DEFAULT)
    return replace(plan, seconds=20.0, rate=min(plan.rate, 20.0)) if options.quick else plan


def _parser() -> ArgumentParser:
    usual = Plan()
    parser = ArgumentParser(
        prog="make sizing", description="Simulate a region: partitions, workers, failures."
    )
    add = parser.add_argument
    for name, kind, what in (
        ("partitions", int, "streams of the journal"),
        ("replicas", int, "copies of everything"),
        ("nodes", int, "NATS servers"),
        ("zones", int, "that they are spread over"),
        ("crews", int, "processes of workers; with --apart of each kind"),
        ("rate", float, "loops that begin in a second"),
        ("calls", int, "tool calls of a loop"),
        ("seconds", float, "for how long they begin"),
        ("model", float, "mean seconds of a model call"),
        ("tool", float, "mean seconds of a tool call"),
        ("seed", int, "another chance"),
    ):
        default = getattr(usual, name)
        add(f"--{name}", type=kind, default=default, metavar="N", help=f"{what} ({default:g})")
    add("--apart", action="store_true", help="workers send each other a message for every call")
    add("--sync", choices=("always", "default"), default="always", help="the servers' sync_interval (always)")
    add("--measured", action="store_true", help="instead: one partition, beside what was measured")
    add("--quick", action="store_true", help="few loops, and for a short time")
    add("--json", type=Path, metavar="FILE", help="write the figures to a file")
    return parser
