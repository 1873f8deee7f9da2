"""The floor: `System.handle`, over the same runtime and journal: `python direct.py COUNT AT_ONCE [FILE]`."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

import uvloop

sys.path[0] = str(Path(__file__).resolve().parent.parent.parent)

from bench.api.agents import ANSWER, quick  # noqa: E402
from bench.api.wire import asked  # noqa: E402
from flyball.orchestrate.contracts import SystemRequest  # noqa: E402
from flyball.orchestrate.journal import Journal, MemoryJournal  # noqa: E402
from flyball.orchestrate.local import LocalRuntime  # noqa: E402
from flyball.orchestrate.system import System  # noqa: E402
from flyball.runtime.sqlite import SQLiteJournal  # noqa: E402


async def measured(journal: Journal, count: int, at_once: int) -> dict[str, float]:
    """CPU and clock seconds a request, after some that do not count."""
    async with LocalRuntime(journal) as runtime:
        system = System(quick, runtime=runtime, journal=journal)
        request = SystemRequest.from_json(asked("How are you?"))

        async def some(number: int) -> None:
            for _ in range(number):
                response = await system.handle(request)
                assert response.content == ANSWER

        async def all_of(number: int) -> None:
            await asyncio.gather(*[some(number // at_once) for _ in range(at_once)])

        await all_of(max(count // 10, at_once))
        clock, cpu = time.perf_counter(), time.process_time()
        await all_of(count)
        done = count // at_once * at_once
        return {"cpu": (time.process_time() - cpu) / done, "clock": (time.perf_counter() - clock) / done}


async def main() -> None:
    count, at_once, *file = sys.argv[1:]
    if not file:
        figures = await measured(MemoryJournal(), int(count), int(at_once))
    else:
        async with SQLiteJournal(file[0]) as journal:
            figures = await measured(journal, int(count), int(at_once))
    print(json.dumps(figures))


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
