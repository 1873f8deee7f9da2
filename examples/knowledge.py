"""A knowledge base on an agent: asked before each run, told each answer, and kept in a file.

It prints:

    first run was told nothing
    second run was told: [Knowledge Context] The library closes at six on Sundays.
    sent before the question: [Knowledge Context] The library closes at six on Sundays.
    said: Is the library open on Sunday?
    failed: the wiki could not be asked: ConnectionError: no route to the wiki (worth another try)
    without it: the wiki could not be asked: ConnectionError: no route to the wiki
    went on: I do not know.

What was found is recorded, so a run that is resumed does not ask again; what is stored survives a crash. See
`docs/knowledge.md`.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from flyball import Agent, Knowledge, Message, SQLiteKnowledgeBase
from flyball.core.errors import KnowledgeFailed
from flyball.core.events import Admitted
from flyball.core.messages import Text
from flyball.testing import ScriptedEngine


class Wiki:
    """A knowledge base of one's own has two methods. This one is out of reach."""

    async def retrieve(self, query: str) -> str:
        """Give what is known; an empty text if that is nothing."""
        raise ConnectionError("no route to the wiki")

    async def store(self, content: str) -> None:
        """Keep an answer."""
        raise ConnectionError("no route to the wiki")


def first_text(message: Message) -> str:
    return next(part.text for part in message.parts if isinstance(part, Text))


agent = Agent(
    ScriptedEngine("The library closes at six on Sundays.", "No, it closed at six."),
    deps_type=SQLiteKnowledgeBase,
    features=[Knowledge(lambda ctx: ctx.deps, auto_store=True)],
)
"""Each run may have a knowledge base of its own, such as that of its user. `Knowledge(base)` is for all."""


async def keeping(folder: Path) -> None:
    with SQLiteKnowledgeBase(folder / "knowledge.db") as base:
        first = await agent.run("When does the library close?", deps=base)
        print("first run was told", "nothing" if first.messages[0].role == "user" else "something")
        second = await agent.run("It is seven on a Sunday. Is the library open?", deps=base)
        print("second run was told:", second.messages[0].text)


async def asking_each_turn(folder: Path) -> None:
    with SQLiteKnowledgeBase(folder / "knowledge.db", limit=1) as base:
        engine = ScriptedEngine("Until six.")
        asking = Agent(engine, features=[Knowledge(base, when="turn", placement="before_user")])
        result = await asking.run("Is the library open on Sunday?")
        print("sent before the question:", first_text(engine.calls[0].messages[0]))
        print("said:", result.messages[0].text)


async def doing_without() -> None:
    lost = Agent(ScriptedEngine("I do not know."), features=[Knowledge(Wiki(), name="the wiki")])
    try:
        await lost.run("Is it open?")
    except KnowledgeFailed as error:
        print("failed:", error, "(worth another try)" if error.retryable else "")
    degrading = lost.clone(features=[Knowledge(Wiki(), name="the wiki", on_error="degrade")])
    result = await degrading.run("Is it open?")
    for event in await result.events():
        if isinstance(event, Admitted):
            print("without it:", *event.degraded)
    print("went on:", result.output)


async def main() -> None:
    with TemporaryDirectory() as folder:
        await keeping(Path(folder))
        await asking_each_turn(Path(folder))
    await doing_without()


if __name__ == "__main__":
    asyncio.run(main())
