"""Run conditions: when a run stops, with what, and how they are put together."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball import (
    Agent,
    And,
    MaxRunDuration,
    Or,
    ResponseContains,
    RunCondition,
    RunContext,
    TextContains,
    ToolCallCount,
    UsageLimits,
    tool,
)
from flyball.core.context import RunFacts
from flyball.core.errors import RuleFailed, RunConditionError, UsageLimitExceeded, UserError
from flyball.core.events import AnswerReviewed
from flyball.core.limits import Limits
from flyball.core.messages import Message, Role, Text, assistant
from flyball.core.usage import Usage
from flyball.inference.answers import tool_call as call
from flyball.testing import FakeClock
from flyball.testing.split import SplitDriver
from tests.orchestrate.models import Script

CONTEXT: RunContext[Any] = RunContext(None, RunFacts("one"))
SAID = assistant("hello")


@tool
async def look() -> str:
    """Look."""
    return "nothing"


def saying(reason: str | bool | None, name: str) -> RunCondition:
    async def check(_: RunContext[Any], message: Message) -> str | bool | None:
        return reason

    return RunCondition(check, name)


_atoms = st.builds(saying, st.sampled_from(["because", True, False, None]), st.sampled_from("abc"))
_trees = st.recursive(
    _atoms, lambda inner: st.builds(And, inner, inner) | st.builds(Or, inner, inner), max_leaves=6
)


@given(_trees, _trees)
async def test_put_together_they_are_met_as_logic_has_it(one: RunCondition, other: RunCondition) -> None:
    first, second = await one.reason(CONTEXT, SAID), await other.reason(CONTEXT, SAID)
    both, either = await (one & other).reason(CONTEXT, SAID), await (one | other).reason(CONTEXT, SAID)
    assert both == (f"{first} and {second}" if first and second else None)
    assert either == (first or second)


async def test_a_name_tells_what_was_put_together() -> None:
    assert (TextContains("x") & (ToolCallCount(2) | MaxRunDuration(1))).name == (
        "and(text_contains, or(tool_call_count, max_run_duration))"
    )


async def test_text_that_is_an_answer_is_the_result_and_calls_beside_it_are_not_run() -> None:
    said = Message(Role.ASSISTANT, (Text("Enough."), call("look")))
    model = Script(said, "never")
    result = await Agent(model, tools=[look], features=[TextContains("nough")]).run("go")
    assert (result.output, model.calls, result.usage.tool_calls) == ("Enough.", 1, 0)
    (unrun,) = result.messages[-1].tool_results
    assert "Not run" in unrun.text
    (reviewed,) = [event for event in await result.events() if isinstance(event, AnswerReviewed)]
    assert reviewed.stop == "the answer contains 'nough'"


async def test_without_an_answer_the_reason_is_the_error() -> None:
    model = Script(*[call("look")] * 3)
    agent = Agent(model, tools=[look], features=[ToolCallCount(2)])
    with pytest.raises(RunConditionError, match="the run has made 2 tool calls, of 2") as caught:
        await agent.run("go")
    assert caught.value.details == {"reason": "the run has made 2 tool calls, of 2"}
    assert (model.calls, caught.value.partial.usage.tool_calls) == (3, 2)


async def test_a_run_lasts_so_long_from_its_own_beginning() -> None:
    clock = FakeClock()

    @tool
    async def wait() -> str:
        """Take a minute."""
        await clock.advance(60)
        return "waited"

    shared = MaxRunDuration(90)
    for _ in range(2):  # its time is the run's, not its own
        model = Script(*[call("wait")] * 3)
        with pytest.raises(RunConditionError, match=r"has taken 120.0 s, and 90 s are allowed"):
            await Agent(model, tools=[wait], features=[shared]).run("go", clock=clock)
        assert model.calls == 3


async def test_limits_on_tokens_come_before_conditions() -> None:
    said = Message(Role.ASSISTANT, (Text("hello"),), usage=Usage(10, 10))
    agent = Agent(
        Script(said),
        features=[TextContains("hello")],
        limits=Limits(usage=UsageLimits(total_tokens_limit=5)),
    )
    with pytest.raises(UsageLimitExceeded):
        await agent.run("go")


async def test_a_function_may_look_at_the_whole_answer() -> None:
    def asks(message: Message) -> bool:
        return bool(message.tool_calls)

    with pytest.raises(RunConditionError, match="the condition 'asks' is met"):
        await Agent(Script(call("look")), tools=[look], features=[ResponseContains(asks)]).run("go")


@pytest.mark.parametrize("given", ["", 3, []], ids=repr)
async def test_a_condition_gives_a_reason_or_none(given: Any) -> None:
    agent = Agent(Script("ok"), features=[RunCondition(lambda *_: given, "odd")])
    with pytest.raises(UserError, match="condition 'odd' gave"):
        await agent.run("go")


async def test_a_reason_that_utf8_cannot_hold_is_recorded_all_the_same() -> None:
    agent = Agent(Script("ok"), features=[RunCondition(lambda *_: "\ud800!", "odd")])
    assert (await agent.run("go", runtime=SplitDriver())).output == "ok"


async def test_a_condition_that_fails_fails_the_run() -> None:
    with pytest.raises(RuleFailed, match="condition 'broken' failed: ZeroDivisionError"):
        await Agent(Script("ok"), features=[RunCondition(lambda *_: 1 // 0, "broken")]).run("go")


@pytest.mark.parametrize(
    "make",
    [
        lambda: ToolCallCount(0),
        lambda: MaxRunDuration(0),
        lambda: MaxRunDuration(seconds=True),
        lambda: MaxRunDuration(float("nan")),
        lambda: TextContains(""),
        lambda: ResponseContains("x"),  # pyright: ignore[reportArgumentType]
        And,
        lambda: Or("x"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_what_cannot_be_is_told_at_once(make: Any) -> None:
    with pytest.raises(UserError):
        make()
