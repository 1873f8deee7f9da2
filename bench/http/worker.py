"""One client in a process of its own: `python worker.py CLIENT URL CASE RUNS` prints what its runs cost.

It is run by the interpreter of the client's own environment, and imports nothing of flyball unless the client
does.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

AT_ONCE = 64


async def measured(client: Any, case: str, runs: int) -> dict[str, float]:
    """CPU and wall seconds a run, after some that do not count."""
    once = client.stream if case == "stream" else client.turns

    async def some(count: int) -> None:
        if case == "together":
            for begun in range(0, count, AT_ONCE):
                await asyncio.gather(*[once() for _ in range(min(AT_ONCE, count - begun))])
        else:
            for _ in range(count):
                await once()

    # Twice as many as run at once: the connections are there, and what is made on first use is made.
    await some(2 * AT_ONCE if case == "together" else max(runs // 10, 2))
    wall, cpu = time.perf_counter(), time.process_time()
    await some(runs)
    return {"cpu": (time.process_time() - cpu) / runs, "wall": (time.perf_counter() - wall) / runs}


async def main() -> None:
    name, url, case, runs = sys.argv[1:]
    begun = time.perf_counter()
    client = import_module(f"{name}_client").Client(url)
    loaded = time.perf_counter() - begun
    print(json.dumps({**(await measured(client, case, int(runs))), "import": loaded}))
    close = getattr(client, "aclose", None)
    if close is not None:
        await close()


if __name__ == "__main__":
    asyncio.run(main())
