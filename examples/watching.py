"""Watching a run: hooks in line, an event bus with events of one's own, a trace for people and one as JSON.

It prints:

    > What does a kite cost?
      turn 1: look_up
      look_up: {"item":"kite"} gave 12
      turn 2: A kite costs 12.
    < 4 messages
    bus: asked for kite
    bus: run_started, tool_called, run_completed
    trace: 6 steps, 2 model calls, 1 tool call, ok
    file: kite.json holds model_request, model_response, tool_call

A hook sees the run as it stood when the thing happened. What is told follows from the journal, so a trace can
be had of any recorded run. See `docs/watching.md`.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flyball import (
    Agent,
    EventBus,
    FlyballError,
    Hook,
    JSONFileExporter,
    Message,
    RunCompletedEvent,
    RunContext,
    RunStartedEvent,
    RuntimeEvent,
    ToolCalledEvent,
    Tracing,
    tool,
)
from flyball.testing import ScriptedEngine, tool_call


@dataclass
class Asked:
    """An event of this program's own."""

    item: str


@tool
async def look_up(ctx: RunContext[Any], item: str) -> int:
    """What something costs."""
    if ctx.event_bus is not None:
        ctx.event_bus.publish_async(Asked(item))
    return 12


def began(_: RunContext[Any], prompt: str) -> None:
    print(f"> {prompt}")


async def answered(ctx: RunContext[Any], response: Message) -> None:
    said = response.text or ", ".join([call.name for call in response.tool_calls])
    print(f"  turn {ctx.run_step}: {said}")


class Tools:
    """Pairs what a tool was asked with what it gave."""

    def __init__(self) -> None:
        self.asked: dict[str, str] = {}

    def started(self, _: RunContext[Any], call_id: str, name: str, args_json: str) -> None:
        """Keep what it was asked."""
        self.asked[call_id] = args_json

    def ended(self, _: RunContext[Any], call_id: str, name: str, result: str, error: str | None) -> None:
        """Say both."""
        print(f"  {name}: {self.asked.pop(call_id)} gave {error or result}")


def over(_: RunContext[Any], messages: tuple[Message, ...], error: FlyballError | None) -> None:
    print(f"< {len(messages)} messages" if error is None else f"< {error}")


tools = Tools()
watching = Hook(
    on_run_start=began,
    on_model_response=answered,
    on_tool_start=tools.started,
    on_tool_end=tools.ended,
    on_run_end=over,
)
bus = EventBus()

agent = Agent(
    ScriptedEngine(tool_call("look_up", {"item": "kite"}), "A kite costs 12."),
    tools=[look_up],
    features=[watching, bus],
    name="shopkeeper",
)


async def main() -> None:
    heard: list[str] = []

    def note(event: RuntimeEvent) -> None:
        heard.append(event.type)

    for kind in (RunStartedEvent, ToolCalledEvent, RunCompletedEvent):
        bus.subscribe(kind, note)
    asked: list[Asked] = []
    bus.subscribe(Asked, asked.append)
    with tempfile.TemporaryDirectory() as folder:
        files = JSONFileExporter(folder)
        traced = agent.clone(features=[*agent.config.features, Tracing(files)])
        result = await traced.run("What does a kite cost?", loop_id="kite")
        await bus.flush()
        print(f"bus: asked for {asked[0].item}")
        print(f"bus: {', '.join(heard)}")
        trace = result.trace
        assert trace is not None
        print(
            f"trace: {len(trace.steps)} steps, {trace.usage.requests} model calls, "
            f"{trace.usage.tool_calls} tool call, {'ok' if trace.success else trace.error}"
        )
        path = files.path_of(result.run_id)
        written: dict[str, Any] = json.loads(path.read_text())
        print(f"file: {Path(path).name} holds {', '.join([step['kind'] for step in written['steps'][:3]])}")


if __name__ == "__main__":
    asyncio.run(main())
