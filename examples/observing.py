"""See what an agent did: its timeline from an event log, its spans as a tree, its numbers.

Run it: python examples/observing.py

It prints:

    TAKE AN UMBRELLA TO ROME.
    the tree of it:
      invoke_workflow article
        step writer
          invoke_agent writer
            chat test
            execute_tool research
              invoke_agent researcher
                chat test
            chat test
        step shout
    tools: [('research', True, 'writer')]
    requests: {True}
    numbers: {'infer': 3, 'run': 3, 'tool': 1, 'step': 2}
"""

import asyncio

from flyball import (
    Agent,
    InMemoryMetrics,
    InMemoryTracer,
    Observer,
    Pipeline,
    RunContext,
    TransformStep,
    tool,
)
from flyball.observe.log_events import timeline
from flyball.observe.timeline import ToolEndEvent
from flyball.observe.tracer import SpanRecord
from flyball.testing import ScriptedEngine, tool_call

tracer, metrics = InMemoryTracer(), InMemoryMetrics()
observer = Observer(tracer=tracer, metrics=metrics)


@tool
async def research(ctx: RunContext, question: str) -> str:
    """Have the researcher look it up."""
    return (await RESEARCHER.run(question, parent=ctx)).output


RESEARCHER = Agent(ScriptedEngine("It rains there."), name="researcher", features=[observer])
WRITER = Agent(
    ScriptedEngine(tool_call("research", {"question": "Rome?"}), "Take an umbrella to Rome."),
    name="writer",
    tools=[research],
    features=[observer],
)


def print_tree(spans: tuple[SpanRecord, ...], above: str = "", depth: int = 0) -> None:
    """Print spans, each under the one that it is part of."""
    for span in spans:
        if span.parent_span_id == above:
            print(f"  {'  ' * depth}{span.name}{f'  ({span.error})' if span.error else ''}")
            print_tree(spans, span.span_id, depth + 1)


async def main() -> None:
    flow = Pipeline(WRITER, TransformStep(str.upper, name="shout"), name="article")
    result = await flow.run("What do I need in Rome?", features=[observer])
    print(result.output)

    print("the tree of it:")
    print_tree(tracer.spans())

    calls = [one for one in timeline(observer.events()) if isinstance(one, ToolEndEvent)]
    print("tools:", [(call.tool_name, call.success, call.correlation.step_name) for call in calls])
    print("requests:", {event.correlation.request_id == result.loop_id for event in observer.events()})
    print("numbers:", metrics.counters())


if __name__ == "__main__":
    asyncio.run(main())
