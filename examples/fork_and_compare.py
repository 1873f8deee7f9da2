"""Fork and compare: the same run, taken up in the middle by other models and under other instructions.

It prints:

    original     asked its model 3 times: The cellar floods when it rains.
    other model  asked its model once: Rain gets into the cellar.
    terse        asked its model once: Flooding.
    lazy         asked its model once: I would not know.

Two forks share the first two turns of the original, with all that was found there; the last begins anew. What
was searched is not searched again.
"""

from __future__ import annotations

import asyncio

from flyball import Agent, MemoryJournal, tool
from flyball.testing import ScriptedEngine, tool_call

LETTERS = {"cellar": "the cellar is wet", "rain": "after rain, always"}
searches: list[str] = []


@tool
async def search(words: str) -> str:
    """Search the letters of the tenants."""
    searches.append(words)
    return LETTERS.get(words, "nothing")


original = ScriptedEngine(
    tool_call("search", {"words": "cellar"}),
    tool_call("search", {"words": "rain"}),
    "The cellar floods when it rains.",
)
agent = Agent(original, tools=[search], instructions="Find out what is wrong with the house.")


def show(name: str, model: ScriptedEngine, output: str) -> None:
    times = len(model.calls)
    print(f"{name:12} asked its model {'once' if times == 1 else f'{times} times'}: {output}")


async def main() -> None:
    journal = MemoryJournal()
    first = await agent.run("What is wrong?", journal=journal, loop_id="house")
    show("original", original, first.output)

    model = ScriptedEngine("Rain gets into the cellar.", name="another-model")
    forked = await agent.clone(model=model).fork("house", journal, turn=2)
    show("other model", model, forked.output)

    model = ScriptedEngine("Flooding.")
    forked = await agent.clone(model=model, instructions="Answer in one word.").fork("house", journal, turn=2)
    show("terse", model, forked.output)

    model = ScriptedEngine("I would not know.")
    forked = await agent.clone(model=model).fork("house", journal, turn=0, prompt="Is anything wrong?")
    show("lazy", model, forked.output)

    again = await agent.replay("house", journal)  # from the journal alone: no model, no tool
    assert again.output == first.output
    assert searches == ["cellar", "rain"]
    assert len(await journal.loops()) == 4


if __name__ == "__main__":
    asyncio.run(main())
