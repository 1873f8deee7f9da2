"""Tool-call filters: all calls of a turn, before any of them runs; and what becomes of what they reject."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from flyball import Agent, MemoryJournal, RunContext, ToolCallFilterResult, ToolCallRejection, tool
from flyball.core.correlation import Correlation
from flyball.core.errors import GuardrailError, InvalidMessage, RuleFailed, UserError
from flyball.core.events import CallsJudged, Verdict
from flyball.core.messages import ResultKind, ToolCall, ToolResult
from flyball.core.signals import Signal, SignalType
from flyball.inference.answers import tool_call as call
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.recorded import pending_approvals, send_signal
from flyball.orchestrate.result import RunResult
from tests.orchestrate.conftest import Runner, kinds_of
from tests.orchestrate.models import Script
from tests.orchestrate.scenarios import City, add, final, pay
from tests.orchestrate.where import Where

Calls = Sequence[ToolCall]
BOTH = [call("add", {"x": 1, "y": 2}, id="a"), call("pay", {"amount": 5}, id="b")]


def all_of(_: RunContext[Any], calls: Calls) -> ToolCallFilterResult:
    return ToolCallFilterResult(tuple(calls))


def none_of(_: RunContext[Any], calls: Calls) -> ToolCallFilterResult:
    return ToolCallFilterResult((), tuple([ToolCallRejection(one, "not today") for one in calls]))


def nobody(*_: Any) -> Any:
    raise AssertionError("nobody is asked")


def results_of(result: RunResult[Any]) -> list[ToolResult]:
    return [found for message in result.messages for found in message.tool_results]


async def verdicts_of(result: RunResult[Any]) -> list[Verdict]:
    return [
        one for event in await result.events() if isinstance(event, CallsJudged) for one in event.verdicts
    ]


@pytest.mark.parametrize("later", [False, True], ids=["sync", "async"])
async def test_what_is_rejected_does_not_run_and_the_model_reads_why(run: Runner, *, later: bool) -> None:
    def thrifty(_: RunContext[Any], calls: Calls) -> ToolCallFilterResult:
        dear = [one for one in calls if one.name == "pay"]
        kept = tuple([one for one in calls if one not in dear])
        return ToolCallFilterResult(kept, tuple([ToolCallRejection(one, "no money") for one in dear]))

    async def thrifty_later(ctx: RunContext[Any], calls: Calls) -> ToolCallFilterResult:
        await asyncio.sleep(0)
        return thrifty(ctx, calls)

    script = Script(BOTH, "ok")
    filters = [thrifty_later if later else thrifty]
    result = await run(Agent(script, tools=[add, pay], tool_filters=filters, approval=nobody), "go")
    found = results_of(result)
    assert [(one.status, one.text) for one in found] == [
        (ResultKind.RETURN, "3"),
        (ResultKind.DENIED, "The call was not allowed: no money"),
    ]
    assert script.last.messages[-1].tool_results == tuple(found)
    assert result.usage.tool_calls == 1
    name = "thrifty_later" if later else "thrifty"
    assert await verdicts_of(result) == [
        Verdict(0, allowed=True),
        Verdict(1, allowed=False, reason="no money", by=name),
    ]


async def test_each_sees_what_the_one_before_let_through_with_its_arguments(run: Runner) -> None:
    seen: dict[str, list[tuple[str, str]]] = {}

    def first(_: RunContext[Any], calls: Calls) -> ToolCallFilterResult:
        seen["first"] = [(one.id, one.args_json) for one in calls]
        changed = replace(calls[0], args_json='{"x":10,"y":20}')
        return ToolCallFilterResult((changed,), (ToolCallRejection(calls[1], "no"),))

    class Second:
        def filter_tool_calls(self, loop_id: str, calls: Calls) -> ToolCallFilterResult:
            seen["second"] = [(one.id, one.args_json) for one in calls]
            seen["told"] = [(one.loop_id or "", str(one.metadata)) for one in calls]
            assert calls[0].trace_id == "t1"
            return ToolCallFilterResult(tuple(calls))

    def third(_: RunContext[Any], calls: Calls) -> ToolCallFilterResult:
        return ToolCallFilterResult((replace(calls[0], args_json='{"x":1,"y":0}'),))

    agent = Agent(
        Script(BOTH, "ok"), tools=[add, pay], tool_filters=[first, Second(), third], approval=nobody
    )
    result = await run(
        agent, "go", loop_id="l1", metadata={"tenant": "acme"}, correlation=Correlation(trace_id="t1")
    )
    assert seen["first"] == [("a", '{"x":1,"y":2}'), ("b", '{"amount":5}')]
    assert seen["second"] == [("a", '{"x":10,"y":20}')]
    assert seen["told"] == [("l1", "{'tenant': 'acme'}")]
    assert results_of(result)[0].text == "1"
    assert (await verdicts_of(result))[0] == Verdict(0, allowed=True, args_json='{"x":1,"y":0}', by="third")
    assert result.messages[1].tool_calls[0].args_json == '{"x":1,"y":2}', "what the model said stays"


async def test_when_all_are_rejected_the_next_filter_is_not_asked(run: Runner) -> None:
    agent = Agent(Script(BOTH, "ok"), tools=[add, pay], tool_filters=[none_of, nobody], approval=nobody)
    result = await run(agent, "go")
    assert {one.status for one in results_of(result)} == {ResultKind.DENIED}
    assert result.usage.tool_calls == 0


async def test_approval_comes_after_the_filters_and_sees_their_arguments(run: Runner) -> None:
    def cheaper(_: RunContext[Any], calls: Calls) -> ToolCallFilterResult:
        return ToolCallFilterResult(tuple([replace(one, args_json='{"amount":1}') for one in calls]))

    asked: list[Any] = []

    def approve(_: RunContext[Any], one: ToolCall) -> bool | str:
        asked.append(one.arguments)
        return True if one.id == "p" else "ask me later"

    calls = [call("pay", {"amount": 50}, id="p"), call("pay", {"amount": 60}, id="q")]
    result = await run(
        Agent(Script(calls, "ok"), tools=[pay], tool_filters=[cheaper], approval=approve), "go"
    )
    assert asked[:2] == [{"amount": 1}, {"amount": 1}]
    assert [one.text for one in results_of(result)] == ["paid 1", "The call was not allowed: ask me later"]
    judged = await verdicts_of(result)
    assert judged[1] == Verdict(1, allowed=False, reason="ask me later")


async def test_a_person_approves_what_the_filters_let_through(where: Where) -> None:
    def cheaper(_: RunContext[Any], calls: Calls) -> ToolCallFilterResult:
        return ToolCallFilterResult(
            (replace(calls[0], args_json='{"amount":1}'),), (ToolCallRejection(calls[1], "one is enough"),)
        )

    calls = [call("pay", {"amount": 50}, id="p"), call("pay", {"amount": 60}, id="q")]
    agent = Agent(Script(calls, "ok"), tools=[pay], tool_filters=[cheaper])
    task = asyncio.create_task(where.run(agent, "go", "a-person"))
    await judged_in(where.journal, "a-person")
    waiting = await pending_approvals(where.journal, "a-person")
    assert [(one.id, one.arguments) for one in waiting] == [("p", {"amount": 1})], "as it would run"
    assert await send_signal(where.journal, "a-person", Signal(SignalType.APPROVE))
    assert [one.text for one in results_of(await task)] == [
        "paid 1",
        "The call was not allowed: one is enough",
    ]


async def judged_in(journal: Journal, loop_id: str) -> None:
    length = 0
    while not any(isinstance(event, CallsJudged) for event in await journal.read(loop_id)):
        await journal.wait(loop_id, length)
        length = len(await journal.read(loop_id))


async def test_they_are_asked_about_what_can_run_only(run: Runner) -> None:
    asked: list[list[str]] = []

    def note(_: RunContext[Any], calls: Calls) -> ToolCallFilterResult:
        asked.append([one.id for one in calls])
        return ToolCallFilterResult(tuple(calls))

    calls = [
        call("nope", id="a"),
        ToolCall("b", "add", '{"x": 1, "y"'),
        ToolCall("c", "add", "[1, 2]"),
        ToolCall("d", "add", '{"x": NaN, "y": 1}'),
        call("add", {"x": 1, "y": 1}, id="e"),
        final(name="Rome"),
    ]
    agent = Agent(
        Script(calls),
        output=City,
        output_mode="tool",
        tools=[add],
        tool_filters=[note],
        end_strategy="exhaustive",
    )
    result = await run(agent, "go")
    assert result.output == City(name="Rome")
    assert asked[0] == ["e"]
    kinds = [one.status.value for one in results_of(result)]
    assert kinds == ["retry", "retry", "retry", "retry", "return", "return"]
    assert "no JSON" in results_of(result)[1].text


async def test_nothing_that_can_run_nobody_asked(run: Runner) -> None:
    calls = [call("nope"), ToolCall("b", "add", "[")]
    agent = Agent(Script(calls, "ok"), tools=[add], tool_filters=[nobody])
    assert "CallsJudged" not in kinds_of(await (await run(agent, "go")).events())


async def test_an_output_is_no_matter_of_theirs_and_a_refused_one_leaves_the_others(
    run: Runner,
) -> None:
    calls = [call("add", {"x": 1, "y": 1}, id="a"), final(people=1)]
    agent = Agent(
        Script(calls, final(name="Rome")),
        output=City,
        output_mode="tool",
        tools=[add],
        tool_filters=[none_of],
    )
    result = await run(agent, "go")
    assert result.output == City(name="Rome")
    assert [one.status.value for one in results_of(result)] == ["denied", "retry", "return"]


# Filters that go wrong


def wrong(_: RunContext[Any], calls: Calls) -> Any:
    return list(calls)


def another(_: RunContext[Any], calls: Calls) -> ToolCallFilterResult:
    return ToolCallFilterResult((replace(calls[0], name="pay"),))


def malformed(_: RunContext[Any], calls: Calls) -> ToolCallFilterResult:
    return ToolCallFilterResult((replace(calls[0], args_json="[1"),))


def no_text(_: RunContext[Any], calls: Calls) -> ToolCallFilterResult:
    return ToolCallFilterResult((), (ToolCallRejection(calls[0], 7),))  # pyright: ignore[reportArgumentType]


def raises(_: RunContext[Any], calls: Calls) -> ToolCallFilterResult:
    raise KeyError("who is that?")


async def cancels(_: RunContext[Any], calls: Calls) -> ToolCallFilterResult:
    waiting = asyncio.get_running_loop().create_future()
    waiting.cancel()
    return await waiting


def guards(_: RunContext[Any], calls: Calls) -> ToolCallFilterResult:
    raise GuardrailError("never on sundays", guardrail="calendar")


@pytest.mark.parametrize(
    ("bad", "kind", "words"),
    [
        (wrong, UserError, "gave a list"),
        (another, InvalidMessage, "not tools"),
        (malformed, InvalidMessage, "'malformed' gave arguments"),
        (no_text, UserError, "must be text"),
        (raises, RuleFailed, "who is that?"),
        (cancels, RuleFailed, "was cancelled"),
        (guards, GuardrailError, "sundays"),
    ],
    ids=["another type", "another tool", "malformed", "no text", "raises", "cancels", "taxonomy"],
)
async def test_one_that_fails_fails_the_run_and_nothing_runs(
    run: Runner, bad: Any, kind: Any, words: str
) -> None:
    agent = Agent(Script(BOTH), tools=[add, pay], tool_filters=[all_of, bad], approval=nobody)
    error = await run.failing(kind, agent, "go")
    assert words in str(error)
    assert {one.status for one in results_of(error.partial)} == {ResultKind.SKIPPED}
    assert error.partial.usage.tool_calls == 0


async def test_silence_is_no_approval(run: Runner) -> None:
    def silent(*_: Any) -> ToolCallFilterResult:
        return ToolCallFilterResult()

    agent = Agent(
        Script(BOTH, "ok"),
        tools=[add, pay],
        tool_filters=[silent],
        approval=nobody,
    )
    assert "said nothing" in results_of(await run(agent, "go"))[0].text


async def test_a_reason_that_no_journal_could_hold_is_mended(run: Runner) -> None:
    def odd(_: RunContext[Any], calls: Calls) -> ToolCallFilterResult:
        return ToolCallFilterResult((), tuple([ToolCallRejection(one, "no \ud800") for one in calls]))

    agent = Agent(Script(BOTH, "ok"), tools=[add, pay], tool_filters=[odd], approval=nobody)
    assert results_of(await run(agent, "go"))[0].text.startswith("The call was not allowed: no ")


@pytest.mark.parametrize("given", [all_of, [7], "abc"], ids=["one", "no function", "text"])
def test_what_is_no_filter_is_refused(given: Any) -> None:
    with pytest.raises(UserError, match="tool_filters"):
        Agent(Script("x"), tool_filters=given)


# Recorded, and not asked again


async def test_replay_and_resume_ask_nobody_again(run: Runner) -> None:
    journal = MemoryJournal()
    agent = Agent(Script(BOTH, "ok"), tools=[add, pay], tool_filters=[none_of])
    await agent.run("go", journal=journal, loop_id="l1")
    other = agent.clone(tool_filters=[nobody])
    assert (await other.replay("l1", journal)).output == "ok"
    assert (await other.resume("l1", journal)).output == "ok"


async def test_a_loop_with_filters_is_not_resumed_without() -> None:
    journal = MemoryJournal()
    script = Script(BOTH, "ok")
    agent = Agent(script, tools=[add, pay], tool_filters=[all_of])
    async with agent.iter("go", journal=journal, loop_id="l1"):
        pass
    with pytest.raises(UserError, match="tool filters"):
        await agent.clone(tool_filters=()).resume("l1", journal)


# Whatever the filters do

_moves = st.sampled_from(["keep", "change", "reject", "silence"])
_chains = st.lists(st.lists(_moves, min_size=3, max_size=3), min_size=1, max_size=3)


@given(_chains)
def test_what_runs_is_what_the_last_filter_let_through(chain: list[list[str]]) -> None:
    let_through: dict[str, str] = {}
    ran: list[tuple[str, int]] = []

    @tool
    async def note(name: str, n: int) -> int:
        ran.append((name, n))
        return n

    def link(number: int, moves: list[str]) -> Any:
        def decide(_: RunContext[Any], calls: Calls) -> ToolCallFilterResult:
            if number:
                assert {one.id: one.args_json for one in calls} == let_through
            let_through.clear()
            approved: list[ToolCall] = []
            rejected: list[ToolCallRejection] = []
            for one in calls:
                move = moves[int(one.id)]
                if move == "reject":
                    rejected.append(ToolCallRejection(one, "no"))
                elif move != "silence":
                    arguments = f'{{"name":"{one.id}","n":{number + 1}}}'
                    approved.append(replace(one, args_json=arguments) if move == "change" else one)
            let_through.update({one.id: one.args_json for one in approved})
            return ToolCallFilterResult(tuple(reversed(approved)), tuple(rejected))

        return decide

    calls = [call("note", {"name": str(index), "n": 0}, id=str(index)) for index in range(3)]
    agent = Agent(
        Script(calls, "ok"),
        tools=[note],
        tool_filters=[link(number, moves) for number, moves in enumerate(chain)],
    )
    result = agent.run_sync("go")
    passed = [index for index in range(3) if all(moves[index] in ("keep", "change") for moves in chain)]
    last = {
        index: max([number + 1 for number, moves in enumerate(chain) if moves[index] == "change"], default=0)
        for index in passed
    }
    assert sorted(ran) == [(str(index), last[index]) for index in passed]
    statuses = [one.status for one in results_of(result)]
    assert [index for index, status in enumerate(statuses) if status is ResultKind.RETURN] == passed
    assert {statuses[index] for index in range(3) if index not in passed} <= {ResultKind.DENIED}
