"""One process of workers for the soak; it ends with its standard input, or when it is killed."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from bench.nats.children import hears, say
from bench.nats.soak.work import Notes, make_agent
from flyball.runtime.nats import Crew, NatsJournal, NatsOptions


async def _work(told: dict[str, Any]) -> None:
    options = msgspec.convert(told["options"], NatsOptions)
    notes = Notes(Path(told["notes"]))
    opened, agents = await NatsJournal.open(options), [make_agent()]
    async with opened as journal, Crew(journal, agents, told["serve"], deps=notes, hold=told["hold"]) as crew:
        working = asyncio.ensure_future(crew.work())
        say("ready")
        ending = asyncio.ensure_future((await hears()).read())
        await asyncio.wait([working, ending], return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()


if __name__ == "__main__":
    import uvloop

    uvloop.run(_work(json.loads(sys.argv[1])))
