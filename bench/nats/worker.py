"""One process of workers, told by its argument what it serves; it ends with its standard input.

With a file for a profile it works under cProfile, and writes there where its time went.
"""

from __future__ import annotations

import asyncio
import cProfile
import json
import pstats
import sys
from pathlib import Path
from typing import Any

import msgspec

from bench.nats.children import hears, say
from bench.nats.work import make_agent
from flyball.runtime.nats import Crew, NatsJournal, NatsOptions

_SHOWN = 25


async def _work(told: dict[str, Any]) -> None:
    options = msgspec.convert(told["options"], NatsOptions)
    async with await NatsJournal.open(options) as journal:
        crew = Crew(journal, [make_agent()], told["serve"], nearby=told.get("nearby", True))
        ear = await hears()
        say("ready")
        if not await ear.readline():
            return
        profile = cProfile.Profile() if told.get("profile") else None
        if profile is not None:
            profile.enable()
        async with crew:
            working, told_to_end = asyncio.ensure_future(crew.work()), asyncio.ensure_future(ear.read())
            await asyncio.wait([working, told_to_end], return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
        if profile is not None:
            profile.disable()
            _write(profile, Path(told["profile"]))


def _write(profile: cProfile.Profile, path: Path) -> None:
    with path.open("w") as file:
        pstats.Stats(profile, stream=file).sort_stats("tottime").print_stats(_SHOWN)


if __name__ == "__main__":
    import uvloop

    uvloop.run(_work(json.loads(sys.argv[1])))
