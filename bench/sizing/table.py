"""What is printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bench.sizing.measured import Measured, off
from bench.sizing.report import Report

if TYPE_CHECKING:
    from rich.table import Table


def table(title: str, reports: Mapping[str, Report]) -> Table:
    """What came of each case; of the nodes the busiest."""
    headings = ("loops/s", "p50", "p99", "slowest", "repeated", "given again", "stall")
    shown = _made(title, ("case",), (*headings, "wire", "journal", "cpu", "disk", "writes/s", "MB/s"))
    for name, report in reports.items():
        nodes = [max(of) for of in zip(*report.nodes, strict=True)]
        cpu, disk, writes, _, network = nodes
        shown.add_row(
            name,
            f"{report.rate:.0f}",
            f"{1000 * report.p50:,.0f} ms",
            f"{1000 * report.p99:,.0f} ms",
            f"{report.slowest:.1f} s",
            f"{report.repeated:,.0f}",
            f"{report.given_again:,}",
            f"{report.stall:.1f} s",
            *[f"{share:.0%}" for share in (report.wire, report.journal, cpu, disk)],
            f"{writes:,.0f}",
            f"{network / 1e6:.1f}",
        )
    return shown


def compared(rows: Sequence[tuple[Measured, Report]]) -> Table:
    """What was measured, and the same simulated."""
    shown = _made(
        "Loops a second of one partition",
        ("sync", "workers"),
        ("copies", "callers", "measured", "simulated", "off"),
    )
    for one, report in rows:
        shown.add_row(
            one.sync,
            one.workers,
            str(one.replicas),
            str(one.callers),
            f"{one.least:g} to {one.most:g}",
            f"{report.rate:.0f}",
            f"{off(one, report.rate):.1f}",
        )
    return shown


def _made(title: str, left: Sequence[str], right: Sequence[str]) -> Table:
    from rich.table import Table

    shown = Table(title=title, title_justify="left", box=None)
    for heading in left:
        shown.add_column(heading)
    for heading in right:
        shown.add_column(heading, justify="right")
    return shown
