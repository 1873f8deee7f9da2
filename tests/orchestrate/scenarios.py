"""Runs of every sort, as a table: the same ones are driven, streamed, stepped, cut off and resumed.

Each is made anew for every run. Their tools and models keep nothing, so that a run may be cut anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace
from pydantic import BaseModel

from flyball import (
    Agent,
    Limits,
    ModelRetry,
    RunContext,
    Safety,
    ToolCallFilterResult,
    ToolCallRejection,
    ToolChoice,
    UsageLimits,
    UsageQuota,
    tool,
)
from flyball.core.errors import EngineError
from flyball.core.messages import (
    FinishReason,
    Image,
    Message,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    assistant,
    system,
    user,
)
from flyball.core.signals import Signal, SignalType
from flyball.core.usage import Usage
from flyball.inference.answers import tool_call as call
from flyball.orchestrate.recorded import send_signal
from tests.orchestrate.feature_scenarios import FEATURES
from tests.orchestrate.models import Script
from tests.orchestrate.scenario import Scenario
from tests.orchestrate.tool_scenarios import AROUND_TOOLS


class City(BaseModel):
    name: str
    people: int = 0


@tool
async def add(x: int, y: int) -> int:
    """Add two numbers."""
    return x + y


@tool(sequential=True)
async def step(n: int) -> str:
    return f"step {n}"


@tool
async def breaks() -> str:
    raise RuntimeError("it broke")


@tool
async def picky(x: int) -> int:
    if x < 0:
        raise ModelRetry("x must not be negative")
    return x


@tool(approval=True)
async def pay(amount: int) -> str:
    return f"paid {amount}"


@tool
async def finish(text: str) -> ToolResult:
    return ToolResult("", "", text, stop_loop=True)


@tool(safety=Safety.AT_MOST_ONCE)
async def launch(name: str) -> str:
    return f"launched {name}"


@tool(available=lambda: False)
async def broken_today() -> str:
    return "never"


@tool(history=True)
async def remember(ctx: RunContext[Any]) -> str:
    return f"{len(ctx.messages)} messages, {ctx.metadata.get('who', 'nobody')}"


@tool
async def delegate(ctx: RunContext[Any], task: str) -> str:
    """Have another agent do it."""
    return (await WORKER.run(task, parent=ctx)).output


@tool
async def delegate_badly(ctx: RunContext[Any]) -> str:
    """Have an agent do it that stops everything."""
    return (await STOPPER.run("do it", parent=ctx)).output


@tool
async def stop_everything(ctx: RunContext[Any]) -> str:
    """Cancel the run that this one was begun from."""
    await say(ctx, ctx.parent_run_id, Signal(SignalType.CANCEL, id="stop", by="the child", text="no good"))
    return "stopped"


async def say(ctx: RunContext[Any], loop_id: str, signal: Signal) -> None:
    """Send a signal to a loop that is kept where a run's children go."""
    options: Any = ctx.home.child_options()
    if "journal" in options:
        await send_signal(options["journal"], loop_id, signal)
    else:
        await options["runtime"].signal(loop_id, signal)


def final(**arguments: Any) -> ToolCall:
    return call("final_result", arguments)


def said(*parts: Any, usage: Usage | None = None, reason: FinishReason | None = None) -> Message:
    return Message(Role.ASSISTANT, parts, usage=usage, finish_reason=reason)


async def dynamic(ctx: RunContext[Any]) -> str:
    return f"You were asked: {ctx.prompt}"


def louder(_: RunContext[Any], output: str) -> str:
    return output.upper()


def grown(_: RunContext[Any], city: City) -> City:
    city.people += 1
    return city


def wants_long(_: RunContext[Any], output: str) -> str:
    if len(output) < 4:
        raise ModelRetry("longer, please")
    return output


def cheap_only(_: RunContext[Any], asked: ToolCall) -> bool | str:
    return True if asked.arguments["amount"] < 10 else "too dear"


def at_most_ten(_: RunContext[Any], calls: Sequence[ToolCall]) -> ToolCallFilterResult:
    """Pays ten at the most, and adds nothing twice."""
    kept = [one for one in calls if one.name != "add" or one.arguments["x"] != one.arguments["y"]]
    return ToolCallFilterResult(
        tuple([replace(one, args_json='{"amount":10}') if one.name == "pay" else one for one in kept]),
        tuple([ToolCallRejection(one, "nothing twice") for one in calls if one not in kept]),
    )


def fails(_: RunContext[Any], calls: Sequence[ToolCall]) -> ToolCallFilterResult:
    raise RuntimeError(f"cannot decide about {calls[0].name}")


class OneAtATime:
    """Lets one call a turn through."""

    async def filter_tool_calls(self, loop_id: str, calls: Sequence[ToolCall]) -> ToolCallFilterResult:
        assert loop_id
        rest = [ToolCallRejection(one, "one call at a time") for one in calls[1:]]
        return ToolCallFilterResult(tuple(calls[:1]), tuple(rest))


async def deliver(_: RunContext[Any], outcome: Any, output: Any) -> None:
    assert outcome is not None


WORKER = Agent(Script(call("add", {"x": 2, "y": 2}), "four"), tools=[add], name="worker")
STOPPER = Agent(Script(call("stop_everything"), "stopped"), tools=[stop_everything], name="stopper")
EDITOR = Agent(Script(call("add", {"x": 1, "y": 1}), "built"), tools=[add], name="builder")
BROKEN = Agent(Script(EngineError("down")), name="broken")
BESIDE = (WORKER, STOPPER, EDITOR, BROKEN)
"""The agents that those of the scenarios begin loops of: workers elsewhere must know them too."""

TEN = [call("add", {"x": n, "y": n}) for n in range(10)]

SCENARIOS = (
    Scenario("text", lambda: Agent(Script("hello")), "hello"),
    Scenario(
        "thinking and usage",
        lambda: Agent(Script(said(Thinking("hm", "sig"), Text("ja"), Text("wohl"), usage=Usage(3, 4)))),
        "jawohl",
    ),
    Scenario(
        "a prompt in parts, after a history",
        lambda: Agent(Script("a lion"), instructions="Be brief."),
        "a lion",
        prompt=["What is this?", Image("https://example.org/lion.png")],
        options={"messages": [system("Old."), user("hi"), assistant("hello")], "metadata": {"who": "me"}},
    ),
    Scenario("a tool", lambda: Agent(Script(call("add", {"x": 1, "y": 2}), "3"), tools=[add]), "3"),
    Scenario(
        "tools side by side and one after the other",
        lambda: Agent(
            Script(
                [
                    call("step", {"n": 1}),
                    call("add", {"x": 1, "y": 1}),
                    call("step", {"n": 2}),
                    call("breaks"),
                ],
                "done",
            ),
            tools=[add, step, breaks],
        ),
        "done",
    ),
    Scenario("ten turns", lambda: Agent(Script(*TEN, "55"), tools=[add]), "55"),
    Scenario(
        "a retry of a tool",
        lambda: Agent(Script(call("picky", {"x": -1}), call("picky", {"x": 1}), "1"), tools=[picky]),
        "1",
    ),
    Scenario(
        "wrong arguments, an unknown tool, an empty answer",
        lambda: Agent(
            Script(call("add", {"x": "one"}), call("sub"), call("add", {"x": 1, "y": 1}), said(), "2"),
            tools=[add],
        ),
        "2",
    ),
    Scenario(
        "doubled call ids",
        lambda: Agent(
            Script([ToolCall("a", "add", '{"x":1,"y":1}'), ToolCall("a", "add", '{"x":2,"y":2}')], "ok"),
            tools=[add],
        ),
        "ok",
    ),
    Scenario(
        "an output by a tool, asked for twice",
        lambda: Agent(
            Script("Paris!", final(name="Paris", people=2)), output=City, output_mode="tool", retries=2
        ),
        City(name="Paris", people=2),
    ),
    Scenario(
        "an output early, other calls left",
        lambda: Agent(
            Script([call("add", {"x": 1, "y": 1}), final(people=1), final(name="Rome"), final(name="Oslo")]),
            output=City,
            output_mode="tool",
            tools=[add],
        ),
        City(name="Rome"),
    ),
    Scenario(
        "an output after all calls",
        lambda: Agent(
            Script(
                [final(), call("add", {"x": 1, "y": 1})], [final(name="Rome"), call("add", {"x": 1, "y": 2})]
            ),
            output=City,
            output_mode="tool",
            tools=[add],
            end_strategy="exhaustive",
        ),
        City(name="Rome"),
    ),
    Scenario(
        "native output, repaired",
        lambda: Agent(
            Script('<think>hm</think>```json\n{"name": "Paris",\n```'), output=City, output_mode="native"
        ),
        City(name="Paris"),
    ),
    Scenario(
        "prompted output",
        lambda: Agent(Script('{"name": 1}', '{"name": "Paris"}'), output=City, output_mode="prompted"),
        City(name="Paris"),
    ),
    Scenario("a number", lambda: Agent(Script(final(result=7)), output=int, output_mode="tool"), 7),
    Scenario(
        "validators that ask again and change the output",
        lambda: Agent(Script("no", "later"), validators=[wants_long, louder]),
        "LATER",
    ),
    Scenario(
        "a validator that changes the output in place",
        lambda: Agent(Script(final(name="Rome")), output=City, output_mode="tool", validators=[grown]),
        City(name="Rome", people=1),
    ),
    Scenario(
        "prompt functions", lambda: Agent(Script("yes"), instructions=["Be brief.", dynamic, dynamic]), "yes"
    ),
    Scenario(
        "a tool that is not available",
        lambda: Agent(
            Script(call("broken_today"), call("add", {"x": 1, "y": 1}), "2"), tools=[add, broken_today]
        ),
        "2",
    ),
    Scenario(
        "approval by a callback",
        lambda: Agent(
            Script(
                [call("pay", {"amount": 5}), call("pay", {"amount": 50}), call("add", {"x": 1, "y": 1})], "ok"
            ),
            tools=[pay, add],
            approval=cheap_only,
        ),
        "ok",
    ),
    Scenario(
        "filters, then approval",
        lambda: Agent(
            Script(
                [
                    call("add", {"x": 1, "y": 1}),
                    ToolCall("bad", "add", '{"x":'),
                    call("pay", {"amount": 50}),
                    call("add", {"x": 1, "y": 2}),
                ],
                call("add", {"x": 1, "y": 1}),
                "ok",
            ),
            tools=[pay, add],
            tool_filters=[at_most_ten, OneAtATime()],
            approval=lambda _, asked: asked.arguments["amount"] == 10,
        ),
        "ok",
    ),
    Scenario(
        "a tool that ends the run",
        lambda: Agent(
            Script([call("finish", {"text": "over"}), call("add", {"x": 1, "y": 1})]), tools=[finish, add]
        ),
        "over",
    ),
    Scenario(
        "deliveries",
        lambda: Agent(Script(call("add", {"x": 1, "y": 1}), "2"), tools=[add], deliveries=[deliver]),
        "2",
    ),
    Scenario(
        "a tool that reads the history",
        lambda: Agent(Script(call("remember"), "ok"), tools=[remember]),
        "ok",
        options={"metadata": {"who": "me"}},
    ),
    Scenario(
        "a choice that is reset",
        lambda: Agent(
            Script(call("add", {"x": 1, "y": 1}), "2"),
            tools=[add],
            tool_choice=ToolChoice("required", auto_reset=True),
        ),
        "2",
    ),
    Scenario(
        "some of the tools only",
        lambda: Agent(
            Script(call("step", {"n": 1}), call("add", {"x": 1, "y": 1}), "2"), tools=[add, step], retries=2
        ),
        "2",
        options={"tools": ["add"], "tool_choice": ToolChoice("required", auto_reset=True)},
    ),
    Scenario(
        "everything at once",
        lambda: Agent(
            Script(
                [call("pay", {"amount": 1}), call("picky", {"x": -1}), call("step", {"n": 1}), call("nope")],
                [call("picky", {"x": 1}), final()],
                said(Text("Here: "), final(name="Rome"), usage=Usage(1, 2)),
            ),
            output=City,
            output_mode="tool",
            tools=[pay, picky, step, broken_today],
            instructions=["Be brief.", dynamic],
            approval=cheap_only,
            validators=[grown],
            deliveries=[deliver],
            retries=2,
        ),
        City(name="Rome", people=1),
        options={"metadata": {"who": "me"}},
    ),
    Scenario(
        "children side by side",
        lambda: Agent(
            Script(
                [call("delegate", {"task": "one"}), call("add", {"x": 1, "y": 1})],
                [call("delegate", {"task": "two"}), call("delegate", {"task": "three"})],
                "done",
            ),
            tools=[delegate, add],
            name="boss",
        ),
        "done",
        options={"metadata": {"who": "me"}},
    ),
    Scenario(
        "an architect and its editor",
        lambda: Agent(
            Script(call("add", {"x": 1, "y": 1}), "a plan"), tools=[add], name="planner", editor=EDITOR
        ),
        "a plan",
        options={"metadata": {"who": "me"}},
    ),
    Scenario(
        "an architect whose editor fails",
        lambda: Agent(Script("a plan"), name="planner", role="architect", editor=BROKEN),
        "a plan",
    ),
    # Those that fail
    Scenario(
        "a filter fails",
        lambda: Agent(Script(call("add", {"x": 1, "y": 1})), tools=[add], tool_filters=[fails]),
        code="VALIDATION_RULE_FAILED",
    ),
    Scenario(
        "cancelled from a child",
        lambda: Agent(
            Script(call("delegate_badly"), "never"),
            tools=[delegate_badly],
            name="boss",
        ),
        code="CANCELLED_SIGNAL",
    ),
    Scenario(
        "an architect that fails has no editor",
        lambda: Agent(Script(EngineError("down")), name="planner", editor=EDITOR),
        code="INFERENCE_ENGINE_ERROR",
    ),
    Scenario("the model fails", lambda: Agent(Script(EngineError("down"))), code="INFERENCE_ENGINE_ERROR"),
    Scenario(
        "the model fails in the second turn",
        lambda: Agent(
            Script(call("add", {"x": 1, "y": 1}), EngineError("down")), tools=[add], deliveries=[deliver]
        ),
        code="INFERENCE_ENGINE_ERROR",
    ),
    Scenario(
        "a tool is called wrongly too often",
        lambda: Agent(
            Script([call("picky", {"x": -1}), call("add", {"x": 1, "y": 1})], call("picky", {"x": -2})),
            tools=[picky, add],
        ),
        code="TOOL_EXECUTION_FAILED",
    ),
    Scenario(
        "calls that are cut off too often",
        lambda: Agent(
            Script(*[said(ToolCall("a", "add", '{"x": 1, "'), reason=FinishReason.LENGTH)] * 2), tools=[add]
        ),
        code="INFERENCE_MALFORMED_RESPONSE",
    ),
    Scenario(
        "a quota is used up",
        lambda: Agent(Script(*TEN), tools=[add], limits=Limits(quota=UsageQuota(max_requests=2))),
        code="ORCHESTRATION_QUOTA_EXCEEDED",
    ),
    Scenario(
        "the iterations are used up",
        lambda: Agent(Script(*TEN), tools=[add], limits=Limits(max_iterations=3)),
        code="ORCHESTRATION_ITERATION_LIMIT",
    ),
    Scenario(
        "too many calls",
        lambda: Agent(
            Script([call("add", {"x": 1, "y": 1}), call("add", {"x": 1, "y": 2})]),
            tools=[add],
            limits=Limits(usage=UsageLimits(tool_calls_limit=1)),
        ),
        code="ORCHESTRATION_USAGE_LIMIT",
    ),
    Scenario(
        "round in circles",
        lambda: Agent(
            Script(*[call("add", {"x": 1, "y": 1})] * 9), tools=[add], limits=Limits(repeated_calls=2)
        ),
        code="ORCHESTRATION_LOOP_DETECTED",
    ),
    Scenario(
        "no acceptable answer",
        lambda: Agent(Script("one", "two"), output=City, output_mode="tool"),
        code="INFERENCE_MALFORMED_RESPONSE",
    ),
    Scenario(
        "a prompt function fails",
        lambda: Agent(Script("never"), instructions=lambda _: str(1 // 0)),
        code="VALIDATION_RULE_FAILED",
    ),
    *FEATURES,
    *AROUND_TOOLS,
)

WELL = tuple(scenario for scenario in SCENARIOS if not scenario.code)
BADLY = tuple(scenario for scenario in SCENARIOS if scenario.code)
