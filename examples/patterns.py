"""The four patterns through the system's one door: a plan that dies after its second step, and a vote.

It prints:

    research -> classify: {"urgent":true}
    the plan died after: research, classify
    and went on with: reply
    steps that were run: research, classify, reply
    a vote: {'urgent': True} by 2 of 3 (confidence 0.67)
    its way: prepare, execute, validate, complete

See `docs/patterns.md`.
"""

from __future__ import annotations

import asyncio

from flyball import (
    Agent,
    ExecutionPlan,
    MemoryJournal,
    Mode,
    OutputContract,
    PlanExecutor,
    PlanStep,
    RedundantConfig,
    RedundantLoop,
    System,
    SystemRequest,
    agent_handler,
    pattern_handler,
    user,
)
from flyball.orchestrate.lifecycle import transitions
from flyball.testing import ScriptedEngine

URGENT = {"type": "object", "properties": {"urgent": {"type": "boolean"}}, "required": ["urgent"]}
ran: list[str] = []
power = [False]
reached = asyncio.Event()


def classifier() -> RedundantLoop:
    """Asks three times whether something is urgent, and votes."""
    engine = ScriptedEngine('{"urgent": true}', '{"urgent": true}', '{"urgent": false}')
    return RedundantLoop(RedundantConfig(engine=engine, schema=URGENT))


async def noted(step: PlanStep) -> str:
    """Say that a step was run; the last one only where there is power."""
    if step.name == "reply" and not power[0]:
        reached.set()
        await asyncio.Event().wait()  # until the process ends
    ran.append(step.name)
    return str(step.input)


async def planned(journal: MemoryJournal) -> None:
    """A plan of two patterns, one after the other."""
    researcher = Agent(ScriptedEngine("The cellar is under water."))
    executor = PlanExecutor(
        {"research": agent_handler(researcher), "classify": pattern_handler(classifier())}
    )
    plan = ExecutionPlan(
        (PlanStep("research", "research", "What happened?"), PlanStep("classify", "classify"))
    )
    done = await executor.execute(plan, journal=journal)
    print("research -> classify:", done.output.replace(" ", ""))


async def broken_off(journal: MemoryJournal) -> None:
    """A plan whose process ends after its second step goes on with the third."""
    steps = ("research", "classify", "reply")
    plan = ExecutionPlan(tuple([PlanStep(name, "note", name) for name in steps]))
    running = asyncio.ensure_future(
        PlanExecutor({"note": noted}).execute(plan, journal=journal, loop_id="ticket-7")
    )
    await reached.wait()
    running.cancel()
    await asyncio.wait([running])
    print("the plan died after:", ", ".join(ran))
    power[0], before = True, len(ran)
    await PlanExecutor({"note": noted}).resume("ticket-7", journal=journal)
    print("and went on with:", ", ".join(ran[before:]))
    print("steps that were run:", ", ".join(ran))


async def voted(journal: MemoryJournal) -> None:
    """The same question three times, through the system."""
    engine = ScriptedEngine('{"urgent": true}', '{"urgent": false}', '{"urgent": true}')
    request = SystemRequest(
        messages=(user("The cellar is under water."),), mode=Mode.REDUNDANT, output=OutputContract(URGENT)
    )
    response = await System(Agent(engine), journal=journal).handle(request)
    print(f"a vote: {response.structured_output} by 2 of 3 (confidence {response.confidence:.2f})")
    moves = transitions(await journal.read(response.loop_id))
    print("its way:", ", ".join([str(move.to) for move in moves]))


async def main() -> None:
    """Run all of it."""
    journal = MemoryJournal()
    await planned(journal)
    await broken_off(journal)
    await voted(journal)


if __name__ == "__main__":
    asyncio.run(main())
