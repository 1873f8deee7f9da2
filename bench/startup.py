"""What importing flyball costs, beside importing what it stands on. Each import has a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

from bench import SOURCE
from bench.figures import Figures
from bench.flyball_peer import IMPORT
from bench.timing import Effort

BASE = "import asyncio, json, msgspec, pydantic"
_TIMED = "from time import process_time_ns as now; began = now()\n{}\nprint(now() - began)"


async def imports(effort: Effort) -> Figures:
    """The lowest CPU time of each import, taken in turns; the interpreter's own start is not counted."""
    for statement in (BASE, IMPORT):
        _import(statement)  # the first one may have to compile
    taken = [(_import(BASE), _import(IMPORT)) for _ in range(effort.rounds)]
    return Figures(min(base for base, _ in taken), min(ours for _, ours in taken))


def _import(statement: str) -> int:
    finished = subprocess.run(
        [sys.executable, "-c", _TIMED.format(statement)],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        check=True,
    )
    return int(finished.stdout)
