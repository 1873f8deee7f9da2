"""The agents of `examples/`, as a table: the same ones run in process, split apart, and on NATS."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from flyball import (
    Agent,
    Deferred,
    DeferredToolResult,
    Journal,
    Runtime,
    Signal,
    SignalType,
    send_results,
    send_signal,
)
from flyball.core.history import check_history
from flyball.inference.answers import Answer
from flyball.inference.answers import tool_call as call
from flyball.inference.scripted import ScriptedEngine
from flyball.orchestrate.projections import normal_form
from flyball.orchestrate.recorded import load
from flyball.orchestrate.result import RunResult
from tests.orchestrate.models import Script
from tests.patience import PATIENCE

FOLDER = Path(__file__).resolve().parents[2] / "examples"


@cache
def example(name: str) -> ModuleType:
    """An example's module; nothing of it has run but its definitions."""
    spec = spec_from_file_location(f"examples_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class ExampleRun:
    """A run of an example's agent: what it is asked, what its functions work with, what a person decides."""

    name: str
    prompt: str
    output: str
    deps: Callable[[ModuleType, Path], Any] | None = None
    answers: tuple[Answer, ...] = ()
    """What the model says, where the example names a real one."""
    decisions: tuple[tuple[SignalType, int, str], ...] = ()
    """What is said about which of the calls that wait, and why."""
    result: str = ""
    """What comes of each call that is deferred."""

    def __repr__(self) -> str:
        return self.name

    def agent(self) -> Agent[Any, Any]:
        """The example's agent, with a model that says the same however often it is asked."""
        agent: Agent[Any, Any] = example(self.name).agent
        model = agent.config.model
        if isinstance(model, ScriptedEngine):
            return agent.clone(model=Script(*model.answers, chunk=model.chunk))
        return agent.clone(model=Script(*self.answers)) if self.answers else agent

    def deps_in(self, folder: Path) -> Any:
        """What its functions work with: new each time."""
        return None if self.deps is None else self.deps(example(self.name), folder)

    async def ended(
        self, run: Callable[[], Awaitable[RunResult[Any]]], journal: Journal, runtime: Runtime | None = None
    ) -> tuple[Any, ...]:
        """How the run with the id `one` ends: output, messages, usage, and its journal in normal form.

        It is gone on with if it comes to wait for results.
        """
        running = asyncio.ensure_future(run())
        if self.decisions:
            await self._decide(journal, runtime)
        try:
            result = await asyncio.wait_for(running, PATIENCE)
        except Deferred as deferred:
            results = [
                DeferredToolResult(one.tool_name, one.tool_call_id, self.result) for one in deferred.requests
            ]
            await (runtime.answer("one", results) if runtime else send_results(journal, "one", results))
            result = await asyncio.wait_for(run(), PATIENCE)
        check_history(result.messages)
        return str(result.output), result.messages, result.usage, normal_form(await result.events())

    async def _decide(self, journal: Journal, runtime: Runtime | None) -> None:
        """Decide, through the journal or through a runtime."""
        await journal.wait("one", 0)
        while True:
            events, state = await load(journal, "one")
            if state.awaiting:
                break
            await journal.wait("one", len(events))
        for kind, index, text in self.decisions:
            signal = Signal(kind, by="ann", text=text, call_id=state.calls[index].id)
            if runtime is None:
                await send_signal(journal, "one", signal)
            else:
                await runtime.signal("one", signal)


def _hotel(module: ModuleType, folder: Path) -> Any:
    folder.mkdir(exist_ok=True)
    for entry in folder.iterdir():
        entry.unlink()
    return module.World(folder, dies=False)


EXAMPLE_RUNS = (
    ExampleRun("agent_as_tool", "Explain it.", "A governor keeps an engine at a steady speed."),
    ExampleRun(
        "approval",
        "Refund orders 17 and 18.",
        "I have refunded order 17. Order 18 was refused: ask a manager.",
        # The refusal first: then nothing runs beside a decision, and all journals have one order.
        decisions=((SignalType.REJECT, 1, "ask a manager"), (SignalType.APPROVE, 0, "")),
    ),
    ExampleRun("around_the_model", "Where is order 17? I live at 12 Elm Street.", "It comes on Tuesday."),
    ExampleRun("conversation", "Where is the harbour?", "South of the town hall."),
    ExampleRun("costs", "How do owls fly?", "Owls fly silently."),
    ExampleRun(
        "deferred_calls",
        "Build all.",
        "The app is green, the docs are not: a link is broken.",
        lambda module, _: module.Queue(),
        result="green",
    ),
    ExampleRun("around_tools", "Tea and milk, please.", "Milk it is."),
    ExampleRun("durable_run", "A trip to Oslo.", "All is booked.", _hotel),
    ExampleRun("fork_and_compare", "What is wrong?", "The cellar floods when it rains."),
    ExampleRun(
        "guarded",
        "My card is 4111 1111 1111 1111. When does my parcel come?",
        "On Tuesday, between 9 and 11.",
    ),
    ExampleRun(
        "knowledge",
        "When does the library close?",
        "The library closes at six on Sundays.",
        lambda module, _: module.SQLiteKnowledgeBase(),
    ),
    ExampleRun("long_conversations", "Four chapters, please.", "It rains a lot."),
    ExampleRun("outputs", "Oslo?", "place='Oslo' millimetres=4 hours=[8, 9, 10]"),
    ExampleRun(
        "prompts",
        "The same again, please.",
        "With pleasure.",
        lambda module, _: module.Customer("Ann", [("tea", 4)]),
    ),
    ExampleRun("runs", "When does it leave?", "The train leaves at 9:04 from platform 3."),
    ExampleRun("streaming", "Oslo?", "Snow until noon, then clear skies."),
    ExampleRun(
        "validation",
        "I am ann@example.org, and my order is late.",
        "We are sorry, it comes on Tuesday.",
    ),
    ExampleRun("watching", "What does a kite cost?", "A kite costs 12."),
    ExampleRun("wrappers", "Is the shop open?", "It is open.", answers=("It is open.",)),
    ExampleRun(
        "testing_an_agent",
        "There is no tea!",
        "Ticket 1.",
        lambda module, _: module.Tracker(),
        answers=(
            call("file_ticket", {"title": "No tea", "priority": "urgent"}),
            call("file_ticket", {"title": "No tea", "priority": "high"}),
            "Ticket 1.",
        ),
    ),
    ExampleRun(
        "typed_agent",
        "250 grams of Oolong, please.",
        "item='oolong' grams=250 pence=2000",
        lambda module, _: module.Shop({"assam": 450, "oolong": 800}),
    ),
)
