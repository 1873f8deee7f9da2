"""Flows: agents and functions put together, a handoff of a conversation, and a flow that dies and goes on.

It prints:

    a report: RIVERS RISE (9 words)
    by way of: researcher, outline, critic, editor, join
    handed on: user, assistant, user, assistant
    it broke off: ORCHESTRATION_STEP_FAILED in 'send'
    and went on: sent (2 requests, 2 loops)

Each step's output is in the journal, and so is what its agents said. See `docs/flows.md`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from flyball import (
    Agent,
    AgentStep,
    FlyballError,
    Handoff,
    MemoryJournal,
    ParallelSteps,
    TransformStep,
    keep_last_n,
    send_signal,
)
from flyball.testing import ScriptedEngine


@dataclass
class Outline:
    """What a report is to say."""

    title: str
    words: int


def outline(text: str) -> Outline:
    """An outline of what was found out."""
    return Outline(text.partition(".")[0], len(text.split()))


def about_title(made: Outline) -> str:
    """What the critic is asked."""
    return f"A better title than {made.title!r}?"


def about_length(made: Outline) -> str:
    """What the editor is asked."""
    return f"Is a text of {made.words} words long?"


def join(both: list[str]) -> str:
    """A title, and what was said of the length."""
    title, length = both
    return f"{title} ({length})"


researcher = Agent(
    ScriptedEngine("Rivers rise. Snow melts earlier, and rain falls harder."), name="researcher"
)
critic = Agent(ScriptedEngine("RIVERS RISE"), name="critic")
editor = Agent(ScriptedEngine("9 words"), name="editor")

report = (
    AgentStep(researcher)
    .then(outline)
    .then(ParallelSteps(AgentStep(critic, about_title), AgentStep(editor, about_length)))
    .then(join)
)


async def handed_on() -> None:
    """One agent goes on with another's conversation."""
    triage = Agent(ScriptedEngine("It is the battery."), instructions="Say what is wrong.", name="triage")
    expert = Agent(ScriptedEngine("Replace it."), name="expert")
    talk = Handoff(triage).add_step(expert, "What is to be done?", filter=keep_last_n(2))
    result = await talk.run("The lamp is dark.")
    last = result.steps[-1].run
    assert last is not None
    said = [message.role.value for message in last.messages if message.role.value != "system"]
    print("handed on:", ", ".join(said))


async def broken_off() -> None:
    """A step fails; the flow is tried again, and what had ended is not run again."""
    broken = True
    journal = MemoryJournal()

    async def send(text: str) -> str:
        if broken:
            raise ConnectionError("the line is down")
        return "sent"

    writer = Agent(ScriptedEngine("Dear all"), name="writer")
    signer = Agent(ScriptedEngine("Dear all, yours"), name="signer")
    letter = AgentStep(writer).then(AgentStep(signer)).then(TransformStep(send))
    try:
        await letter.run("Write to them.", journal=journal, loop_id="letter")
    except FlyballError as error:
        print(f"it broke off: {error.code} in {error.details['step']!r}")
    broken = False
    await send_signal(journal, "letter", "retry")
    result = await letter.run("Write to them.", journal=journal, loop_id="letter")
    loops = len(await journal.loops()) - 1
    print(f"and went on: {result.output} ({result.usage.requests} requests, {loops} loops)")


async def main() -> None:
    """Run all of it."""
    result = await report.run("Why do floods come more often?")
    print("a report:", result.output)
    print("by way of:", ", ".join([step.name for step in result.steps]))
    await handed_on()
    await broken_off()


if __name__ == "__main__":
    asyncio.run(main())
