"""Approval: by a callback, or by a person's signal; and what becomes of calls that are not allowed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from flyball import Agent, RunContext, tool
from flyball.core.errors import AgentRunClosed, CancelledSignal, GuardrailError, RuleFailed, UserError
from flyball.core.events import CallsJudged
from flyball.core.messages import ResultKind, ToolCall, ToolResult
from flyball.core.signals import Signal, SignalType
from flyball.inference.answers import tool_call as call
from flyball.orchestrate.journal import Journal, MemoryJournal
from flyball.orchestrate.recorded import load, pending_approvals, send_signal
from flyball.orchestrate.result import RunResult
from flyball.testing.split import CALM, ROUGH, Chaos, SplitDriver
from tests.orchestrate.conftest import Runner, kinds_of
from tests.orchestrate.driven import WAYS, Driven
from tests.orchestrate.models import NeverAsked, Script
from tests.orchestrate.scenarios import City, add, final, pay
from tests.orchestrate.where import Where

PAY = [
    call("pay", {"amount": 1}, id="a"),
    call("pay", {"amount": 2}, id="b"),
    call("add", {"x": 1, "y": 1}, id="c"),
]


def results_of(result: RunResult[Any]) -> list[ToolResult]:
    return [found for message in result.messages for found in message.tool_results]


# By a callback


VERDICTS: dict[str, tuple[Any, ResultKind, str]] = {
    "yes": (True, ResultKind.RETURN, "paid 1"),
    "no": (False, ResultKind.DENIED, "The call was not allowed."),
    "a reason": ("too dear", ResultKind.DENIED, "The call was not allowed: too dear"),
    "nothing": (None, ResultKind.DENIED, "The call was not allowed."),
    "something else": (1, ResultKind.DENIED, "The call was not allowed."),
}


@pytest.mark.parametrize("later", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize(("verdict", "status", "text"), VERDICTS.values(), ids=VERDICTS)
async def test_a_callback_decides(
    run: Runner, verdict: Any, status: ResultKind, text: str, *, later: bool
) -> None:
    async def async_verdict(_: RunContext[Any], __: ToolCall) -> Any:
        return verdict

    def sync_verdict(_: RunContext[Any], __: ToolCall) -> Any:
        return verdict

    script = Script(call("pay", {"amount": 1}), "ok")
    agent = Agent(script, tools=[pay], approval=async_verdict if later else sync_verdict)
    result = await run(agent, "go")
    found = results_of(result)[0]
    assert (found.status, found.text) == (status, text)
    assert script.last.messages[-1].tool_results[0].text == text, "the model reads it"
    assert result.usage.tool_calls == (status is ResultKind.RETURN)
    assert kinds_of(await result.events())[2] == "CallsJudged"


async def test_only_calls_that_need_it_are_judged_and_all_before_any_runs(run: Runner) -> None:
    log: dict[str, None] = {}

    @tool(approval=True)
    async def guarded(n: int) -> int:
        log[f"run {n}"] = None
        return n

    def approve(ctx: RunContext[Any], asked: ToolCall) -> bool | str:
        log[f"ask {asked.arguments['n']} {ctx.deps}"] = None
        return asked.arguments["n"] != 2

    calls = [
        call("guarded", {"n": 1}),
        call("add", {"x": 1, "y": 1}),
        call("guarded", {"n": 2}),
        call("guarded", {"n": 3}),
    ]
    result = await run(Agent(Script(calls, "ok"), tools=[guarded, add], approval=approve), "go", deps="me")
    assert [found.status.value for found in results_of(result)] == ["return", "return", "denied", "return"]
    assert list(log)[:3] == ["ask 1 me", "ask 2 me", "ask 3 me"]
    assert set(list(log)[3:]) == {"run 1", "run 3"}
    judged = [event for event in await result.events() if isinstance(event, CallsJudged)]
    assert [(verdict.index, verdict.allowed) for verdict in judged[0].verdicts] == [
        (0, True),
        (2, False),
        (3, True),
    ]


async def test_nothing_that_needs_it_nothing_judged(run: Runner) -> None:
    def approve(_: RunContext[Any], __: ToolCall) -> bool:
        raise AssertionError("nobody asked")

    result = await run(
        Agent(Script(call("add", {"x": 1, "y": 1}), "2"), tools=[add, pay], approval=approve), "go"
    )
    assert "CallsJudged" not in kinds_of(await result.events())


async def test_a_callback_that_fails_fails_the_run_and_nothing_runs(run: Runner) -> None:
    def approve(_: RunContext[Any], __: ToolCall) -> bool:
        raise KeyError("who is that?")

    error = await run.failing(RuleFailed, Agent(Script(PAY), tools=[pay, add], approval=approve), "go")
    assert "'pay'" in str(error)
    assert "who is that?" in str(error)
    assert {found.status for found in results_of(error.partial)} == {ResultKind.SKIPPED}
    assert error.partial.usage.tool_calls == 0


async def test_an_error_of_the_taxonomy_is_kept(run: Runner) -> None:
    def approve(_: RunContext[Any], __: ToolCall) -> bool:
        raise GuardrailError("never on sundays", guardrail="calendar")

    error = await run.failing(GuardrailError, Agent(Script(PAY), tools=[pay, add], approval=approve), "go")
    assert error.details == {"guardrail": "calendar"}


async def test_denied_calls_are_no_retries(run: Runner) -> None:
    script = Script(*[call("pay", {"amount": n}) for n in range(9)], "I give up")
    result = await run(Agent(script, tools=[pay], approval=lambda _, __: False, retries=0), "go")
    assert result.output == "I give up"


@pytest.mark.parametrize("strategy", ["early", "exhaustive"])
async def test_an_output_beside_a_call_that_needs_approval(run: Runner, strategy: Any) -> None:
    asked: set[str] = set()

    def approve(_: RunContext[Any], given: ToolCall) -> bool:
        asked.add(given.id)
        return True

    calls = [call("pay", {"amount": 1}, id="a"), final(name="Rome")]
    agent = Agent(
        Script(calls), output=City, output_mode="tool", tools=[pay], approval=approve, end_strategy=strategy
    )
    assert (await run(agent, "go")).output == City(name="Rome")
    assert asked == (set() if strategy == "early" else {"a"})


async def test_calls_beside_a_refused_output_are_judged_then(run: Runner) -> None:
    calls = [call("pay", {"amount": 1}, id="a"), final()]
    agent = Agent(
        Script(calls, final(name="Rome")),
        output=City,
        output_mode="tool",
        tools=[pay],
        approval=lambda _, __: True,
    )
    result = await run(agent, "go")
    assert result.messages[2].tool_results[0].text == "paid 1"
    kinds = kinds_of(await result.events())
    assert kinds.index("TurnSettled") < kinds.index("CallsJudged") < kinds.index("ToolReturned")


# By a person


@pytest.mark.parametrize("options", [{}, {"journal": None}, {"metadata": {"a": 1}}])
async def test_without_anybody_to_ask_the_run_does_not_begin(options: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=r"'pay' needs approval.*approval=.*journal=.*run_stream"):
        await Agent(NeverAsked(), tools=[pay]).run("go", **options)


@pytest.fixture(params=WAYS)
def driven(request: pytest.FixtureRequest, where: Where) -> Driven:
    """A run in a task of its own."""
    return Driven(request.param, where)


async def waiting(driven: Driven, count: int) -> None:
    """Wait until the loop waits for approval of so many calls."""
    while True:
        events, state = await load(driven.journal, driven.loop_id)
        if len(state.awaiting) == count and state.at == "execute":
            return
        await driven.journal.wait(driven.loop_id, len(events))


async def test_calls_are_approved_one_by_one(driven: Driven) -> None:
    await driven.start(Agent(Script(PAY, "ok"), tools=[pay, add]))
    await waiting(driven, 2)
    assert [asked.id for asked in await pending_approvals(driven.journal, driven.loop_id)] == ["a", "b"]
    assert not await driven.signal("approve", call_id="c"), "that one does not wait"
    assert not await driven.signal("approve", call_id="z")
    assert await driven.signal("approve", call_id="b")
    assert not await driven.signal("approve", call_id="b"), "once is enough"
    await waiting(driven, 1)
    assert not driven.task.done()
    assert await driven.signal("reject", "not that one", call_id="a")
    result = await driven.end()
    assert [found.text for found in results_of(result)] == [
        "The call was not allowed: not that one",
        "paid 2",
        "2",
    ]


@pytest.mark.parametrize(
    ("kind", "texts"), [("approve", ["paid 1", "paid 2"]), ("reject", ["The call was not allowed."] * 2)]
)
async def test_all_that_wait_are_meant_where_no_call_is_named(
    driven: Driven, kind: str, texts: list[str]
) -> None:
    await driven.start(Agent(Script(PAY, "ok"), tools=[pay, add]))
    await waiting(driven, 2)
    assert await driven.signal(kind)
    result = await driven.end()
    assert [found.text for found in results_of(result)] == [*texts, "2"]


async def test_other_calls_run_while_one_waits(driven: Driven) -> None:
    await driven.start(Agent(Script(PAY, "ok"), tools=[pay, add]))
    await waiting(driven, 2)
    await driven.journal.wait(driven.loop_id, 2)
    assert (await driven.kinds())[:3] == ["Started", "ModelAnswered", "ToolReturned"]
    await driven.signal("approve")
    assert (await driven.end()).output == "ok"


async def test_a_run_that_waits_can_be_cancelled_and_its_history_is_valid(driven: Driven) -> None:
    await driven.start(Agent(Script(PAY, "ok"), tools=[pay, add]))
    await waiting(driven, 2)
    await driven.signal("cancel")
    with pytest.raises(CancelledSignal) as caught:
        await driven.end()
    assert [found.status for found in results_of(caught.value.partial)][:2] == [ResultKind.SKIPPED] * 2


async def test_each_turn_asks_anew(driven: Driven) -> None:
    script = Script(call("pay", {"amount": 1}, id="a"), call("pay", {"amount": 2}, id="a"), "ok")
    await driven.start(Agent(script, tools=[pay]))
    for call_id in ("a", "a~2"):
        await waiting(driven, 1)
        assert await driven.signal("approve", call_id=call_id)
        events, _ = await load(driven.journal, driven.loop_id)
        await driven.journal.wait(driven.loop_id, len(events))
    assert (await driven.end()).output == "ok"


async def test_what_is_approved_runs_once_though_the_process_died(where: Where) -> None:
    ran: list[int] = []

    @tool(approval=True)
    async def guarded(n: int) -> int:
        ran.append(n)
        return n

    agent = Agent(
        Script([call("guarded", {"n": 1}, id="a"), call("guarded", {"n": 2}, id="b")], "ok"), tools=[guarded]
    )
    driven = Driven("journal", where)
    await driven.start(agent)
    await waiting(driven, 2)
    driven.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await driven.end()
    assert await send_signal(where.journal, driven.loop_id, Signal(SignalType.APPROVE, call_id="a"))
    assert ran == []
    resumed = asyncio.create_task(where.resume(agent, driven.loop_id))
    await waiting(driven, 1)
    assert await send_signal(where.journal, driven.loop_id, Signal(SignalType.REJECT, call_id="b"))
    assert (await resumed).output == "ok"
    assert ran == [1] if where.calm else set(ran) == {1}


@pytest.mark.parametrize("chaos", [CALM, ROUGH], ids=["calm", "rough"])
@pytest.mark.parametrize("seed", range(5))
async def test_a_split_loop_that_waits_goes_on_when_the_signal_is_there(chaos: Chaos, seed: int) -> None:
    driver = SplitDriver(seed, chaos)
    agent = Agent(Script(PAY, "ok"), tools=[pay, add])
    with pytest.raises(AgentRunClosed):
        await agent.run("go", runtime=driver, loop_id="one")
    assert await send_signal(driver.journal, "one", Signal(SignalType.APPROVE, id="s", call_id="a"))
    with pytest.raises(AgentRunClosed):
        await agent.run("go", runtime=driver, loop_id="one")
    assert await send_signal(driver.journal, "one", Signal(SignalType.REJECT, id="t", text="no"))
    result = await agent.run("go", runtime=driver, loop_id="one")
    assert [found.text for found in results_of(result)] == ["paid 1", "The call was not allowed: no", "2"]
    if chaos is CALM:
        assert len(driver.executions) == 2


async def test_a_loop_that_was_begun_with_a_callback_is_not_resumed_without_one(journal: Journal) -> None:
    """The recorded spec wins, and it counts on a judge: nobody else may decide in its place."""
    memory = MemoryJournal()
    answers = (call("pay", {"amount": 1}), "ok")
    finished = await Agent(Script(*answers), tools=[pay], approval=lambda _, __: True).run(
        "go", journal=memory
    )
    await journal.append(finished.loop_id, (await finished.events())[:2], 0)
    with pytest.raises(UserError, match="an approval callback"):
        await Agent(Script(*answers), tools=[pay]).resume(finished.loop_id, journal)
    assert len(await journal.read(finished.loop_id)) == 2, "nothing was written"
