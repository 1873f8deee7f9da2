"""A process that is killed between storing an answer and recording that it was stored: see test_knowledge."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from flyball import Agent, Knowledge, SQLiteJournal, SQLiteKnowledgeBase
from tests.orchestrate.models import Script


class Doomed(SQLiteKnowledgeBase):
    """Dies when it has stored something, the first time."""

    async def store(self, content: str) -> None:
        """Store it, and die unless that was done before."""
        before = await self.retrieve(content)
        await super().store(content)
        if not before:
            os.kill(os.getpid(), signal.SIGKILL)


async def main(folder: Path) -> str:
    """Run it, or go on with what is left of it."""
    with Doomed(folder / "knowledge.db") as base:
        agent = Agent(Script("The library closes at nine."), features=[Knowledge(base, auto_store=True)])
        async with SQLiteJournal(folder / "runs.db") as journal:
            return (await agent.run("When does it close?", journal=journal, loop_id="library")).output


if __name__ == "__main__":
    print(asyncio.run(main(Path(sys.argv[1]))))
