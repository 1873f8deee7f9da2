"""`--partition`: what one partition takes, with each way of syncing, and what is printed of it."""

from __future__ import annotations

import json
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from bench.nats import elections, partition
from bench.nats.nodes import Sync
from bench.nats.partition import Row
from bench.peers.progress import Progress

if TYPE_CHECKING:
    from rich.table import Table

_WAYS: tuple[tuple[Sync, int, bool], ...] = (
    ("default", 1, True),
    ("always", 1, True),
    ("default", 1, False),
    ("always", 1, False),
    ("always", 3, True),
)


async def measure(options: Namespace) -> tuple[list[Row], list[float]]:
    """All rows, and how long elections took."""
    rows: list[Row] = []
    callers: list[int] = options.callers or [1, 8, 64]
    with tempfile.TemporaryDirectory(prefix="flyball-bench-") as name, Progress(1 + len(_WAYS)) as progress:
        for sync, replicas, nearby in _WAYS:
            progress.step(f"one partition: {sync}, {replicas} copies")
            folder = Path(name) / f"{sync}-{replicas}-{nearby}"
            rows += await partition.measure(folder, sync, replicas, callers, options.seconds, nearby=nearby)
        progress.step("elections")
        return rows, await elections.measure(Path(name) / "elections", options.elections)


def tell(rows: Sequence[Row], stalls: Sequence[float], file: Path | None, out: TextIO | None) -> int:
    """Print it, and write it to a file."""
    from rich.console import Console

    console = Console(file=out)
    if not console.is_terminal:
        console.width = 200
    console.print(_table(rows))
    console.print(f"elections: {', '.join([f'{stall:.1f} s' for stall in stalls])}", highlight=False)
    if file is not None:
        said = {"rows": [{**row._asdict(), "rate": row.rate} for row in rows], "elections": list(stalls)}
        file.write_text(json.dumps(said, indent=2) + "\n")
    return 0


def _table(rows: Sequence[Row]) -> Table:
    from rich.table import Table

    shown = Table(
        title="One partition, one process of workers; a loop is five tool calls", title_justify="left"
    )
    headings = "sync copies workers callers loops/s steps/s p50 p99 messages stored disk clients routes"
    for heading in (*headings.split(), "caller", "worker", "server", "memory"):
        shown.add_column(heading, justify="right")
    for row in rows:
        stored = row.journal_bytes + row.wire_bytes + row.other_bytes
        shown.add_row(
            row.sync,
            str(row.replicas),
            "together" if row.nearby else "apart",
            str(row.callers),
            f"{row.rate:.0f}",
            f"{row.rate * row.steps:,.0f}",
            *[f"{1000 * one:.0f} ms" for one in (row.p50, row.p99)],
            f"{row.appends:.0f}+{row.wire:.0f}+{row.steps - row.appends - row.wire:.0f}",
            *[f"{one / 1000:.1f} kB" for one in (stored, row.disk_bytes, row.client_bytes, row.route_bytes)],
            *[f"{1000 * one:.1f} ms" for one in (row.caller_cpu, row.worker_cpu, row.server_cpu)],
            f"{row.server_memory / 1000:.0f} kB",
        )
    return shown
