"""Processes that run an agent on a SQLite journal, each killed at another point. See test_crash_points.

Usage: crash_child.py FOLDER SHAPE POINTS, where a point counts the moments before and after each append; one
beyond the last lets the run end. Each process is forked off before anything was opened (to start Python anew
for each would take longer than all the runs) and works in FOLDER/<point>; its exit status is printed, -9 if
it was killed. The tools write what they did into FOLDER/<point>/effects, at once and unbuffered.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from flyball import Agent, RunContext, tool
from flyball.core.errors import CancelledSignal
from flyball.core.events import Event
from flyball.core.messages import Message, Role, Text, ToolCall
from flyball.core.signals import Signal, SignalType
from flyball.inference.request import Request
from flyball.inference.scripted import FunctionEngine, ScriptedEngine
from flyball.orchestrate.flow.filters import summarize_history
from flyball.orchestrate.flow.steps import (
    AgentStep,
    ConditionalStep,
    ParallelSteps,
    Pipeline,
    Step,
    TransformStep,
)
from flyball.orchestrate.recorded import send_signal
from flyball.runtime.sqlite import SQLiteJournal

LOOP = "order-17"
PROMPT = "Do the three things."
TOOLS = ("look", "send", "pay")


class KillingJournal:
    """A SQLite journal whose process dies before or after one of its appends."""

    def __init__(self, journal: SQLiteJournal, point: int) -> None:
        self._journal = journal
        self._point = point
        self._moment = 0
        self.read = journal.read
        self.wait = journal.wait
        self.loops = journal.loops
        self.sizes = journal.sizes

    async def append(self, loop_id: str, events: Sequence[Event], expected: int) -> int:
        self._maybe_die()
        length = await self._journal.append(loop_id, events, expected)
        self._maybe_die()
        return length

    def _maybe_die(self) -> None:
        if self._moment == self._point:
            os.kill(os.getpid(), signal.SIGKILL)
        self._moment += 1


def agent(folder: Path, shape: str) -> Agent[None, str]:
    """Three tools of three kinds of safety, called in three turns or all in one."""

    def note(ctx: RunContext[None]) -> str:
        with (folder / "effects").open("a") as effects:
            effects.write(f"{ctx.tool_name} {ctx.idempotency_key}\n")
            effects.flush()
            os.fsync(effects.fileno())
        return f"{ctx.tool_name} done"

    @tool(safety="idempotent")
    async def look(ctx: RunContext[None]) -> str:
        """Look."""
        return note(ctx)

    @tool
    async def send(ctx: RunContext[None]) -> str:
        """Send."""
        return note(ctx)

    @tool(safety="at_most_once")
    async def pay(ctx: RunContext[None]) -> str:
        """Pay."""
        return note(ctx)

    async def model(request: Request) -> Message:
        done = sum(message.role is Role.TOOL for message in request.messages)
        a_turn = len(TOOLS) if shape == "one turn" else 1
        wanted = TOOLS[done * a_turn : (done + 1) * a_turn]
        calls = tuple(ToolCall(f"call-{name}", name) for name in wanted)
        return Message(Role.ASSISTANT, calls or (Text("all done"),))

    return Agent(FunctionEngine(model), tools=[look, send, pay])


def architect() -> Agent[None, str]:
    """One that plans, and one that builds from the plan."""
    editor = Agent(ScriptedEngine("built", name="editor"), name="builder")
    return Agent(ScriptedEngine("a plan", name="architect"), name="planner", editor=editor)


def boss() -> Agent[None, str]:
    """One whose child's child cancels it, and then hangs until it is cancelled itself."""

    @tool
    async def stop(ctx: RunContext[None]) -> str:
        """Cancel all."""
        journal = ctx.home.child_options()["journal"]
        await send_signal(journal, LOOP, Signal(SignalType.CANCEL, id="stop", text="enough"))
        await asyncio.Event().wait()
        return "never"

    low = Agent(_calling("stop"), tools=[stop], name="low")
    middle = Agent(_calling("ask"), tools=[_asking(low)], name="middle")
    return Agent(_calling("ask"), tools=[_asking(middle)], name="boss")


def _calling(name: str) -> FunctionEngine:
    async def model(request: Request) -> Message:
        del request
        return Message(Role.ASSISTANT, (ToolCall("call", name),))

    return FunctionEngine(model)


def _asking(other: Agent[None, str]) -> Any:
    @tool
    async def ask(ctx: RunContext[None]) -> str:
        """Have another agent do it."""
        return (await other.run(PROMPT, parent=ctx)).output

    return ask


def flow(folder: Path) -> Step[str, str]:
    """Steps of all kinds, whose functions write down that they were called."""

    def noting(name: str, give: Callable[[Any], Any]) -> TransformStep[Any, Any]:
        def note(value: Any) -> Any:
            with (folder / "effects").open("a") as effects:
                effects.write(f"{name}\n")
                effects.flush()
                os.fsync(effects.fileno())
            return give(value)

        return TransformStep(note, name=name)

    def answering(name: str, text: str) -> Agent[None, str]:
        async def model(request: Request) -> Message:
            del request
            return Message(Role.ASSISTANT, (Text(text),))

        return Agent(FunctionEngine(model), name=name)

    return Pipeline(
        AgentStep(answering("writer", "a draft")),
        AgentStep(
            answering("editor", "shorter"), "Go on.", history=summarize_history(answering("reader", "short"))
        ),
        noting("count", len),
        ParallelSteps(noting("double", lambda n: 2 * n), noting("square", lambda n: n * n)),
        ConditionalStep(lambda both: both[0] == 14, noting("both", str), noting("none", str)),
    )


async def main(folder: Path, shape: str, point: int) -> None:
    made = {"architect": architect, "boss": boss}.get(shape)
    single = flow(folder) if shape == "flow" else agent(folder, shape)
    running = single if made is None else made()
    async with SQLiteJournal(folder / "runs.db") as journal:
        try:
            await running.run(PROMPT, journal=KillingJournal(journal, point), loop_id=LOOP)
        except CancelledSignal:
            assert shape == "boss"


def fork(folder: Path, shape: str, point: int) -> int:
    """Start the process that dies at this point; its id."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        asyncio.run(main(folder / str(point), shape, point))
        status = 0
    finally:
        # Whatever happened, the child does not go on with what the parent does; an exception is on stderr.
        if status:
            traceback.print_exc()
        os._exit(status)


if __name__ == "__main__":
    started = [fork(Path(sys.argv[1]), sys.argv[2], point) for point in range(int(sys.argv[3]))]
    for child in started:
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
