"""Filters of histories: whatever they leave, every provider takes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from flyball import (
    Agent,
    AgentStep,
    Handoff,
    Message,
    Role,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    chain_filters,
    keep_last_n,
    strip_system_prompts,
    summarize_history,
    system,
    user,
)
from flyball.core.context import RunFacts
from flyball.core.errors import InvalidMessage, UserError
from flyball.core.history import check_history
from flyball.core.messages import Image, tool_results
from flyball.orchestrate.flow.doing import StepContext
from flyball.orchestrate.flow.filters import SUMMARY, HistoryFilter, filtered
from flyball.testing import ScriptedEngine
from tests.orchestrate.models import NeverAsked, Script

CONTEXT: StepContext[None] = StepContext(None, RunFacts("f"), None, "f-s0", {})


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    """Conversations as agents leave them: exchanges with any number of calls, and an answer at the end."""
    messages: list[Message] = [system("Be brief.")] if draw(st.booleans()) else []
    number = 0
    for _ in range(draw(st.integers(0, 4))):
        messages.append(user(draw(st.sampled_from(["one", "two"]))))
        for _ in range(draw(st.integers(0, 3))):
            calls = [ToolCall(f"c{number + k}", "look") for k in range(draw(st.integers(1, 3)))]
            number += len(calls)
            messages.append(assistant(draw(st.sampled_from(["", "so"])), *calls))
            messages.append(tool_results([ToolResult(call.id, "look", "seen") for call in calls]))
        messages.append(assistant("done"))
    return messages


filters: SearchStrategy[HistoryFilter] = st.one_of(
    st.just(strip_system_prompts),
    st.integers(0, 12).map(keep_last_n),
    st.integers(0, 6).map(lambda n: summarize_history(Summing(), keep_last=n)),  # pyright: ignore[reportArgumentType]
)


class Summing(Agent[None, str]):
    """Summarises without a loop: the length of what it is given."""

    def __init__(self) -> None:
        super().__init__(NeverAsked())

    async def run(self, prompt: Any = None, **options: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        del options

        class Given:
            output = f"{len(prompt)} letters"

        return Given


@given(histories(), st.lists(filters, max_size=3))
async def test_what_filters_leave_is_valid(history: list[Message], some: list[HistoryFilter]) -> None:
    check_history(history)
    left = await filtered(chain_filters(*some), CONTEXT, history)
    check_history(left)
    check_history(
        [*left, user("next")] if not left or left[-1].role is not Role.USER else left, complete=True
    )


@given(histories(), st.integers(0, 12))
async def test_the_last_are_kept_with_the_exchange_that_they_begin_in(history: list[Message], n: int) -> None:
    left = list(await filtered(keep_last_n(n), CONTEXT, history))
    said = [message for message in history if message.role is not Role.SYSTEM]
    kept = [message for message in left if message.role is not Role.SYSTEM]
    assert history[: len(history) - len(said)] == left[: len(left) - len(kept)]
    assert kept == said[len(said) - len(kept) :]
    assert len(kept) >= min(n, len(said))
    assert not kept or kept[0].role is Role.USER
    again = await filtered(keep_last_n(n), CONTEXT, left)
    assert list(again) == left


async def test_a_summary_is_a_run_of_its_own_recorded_and_counted() -> None:
    triage = Agent(Script("It is dark."), instructions="Look.", name="triage")
    reader = Script("dark", name="reader")
    expert = Agent(Script("Light it."), name="expert")
    talk = Handoff(triage).add_step(expert, "And now?", filter=summarize_history(reader))
    result = await talk.run("What is it?", loop_id="f")
    assert result.output == "Light it."
    assert result.usage.requests == 3
    assert result.steps[1].usage.requests == 2
    run = result.steps[1].run
    assert run is not None
    assert [message.text for message in run.messages] == [
        "Look.",
        f"{SUMMARY}\ndarkAnd now?",
        "Light it.",
    ]
    assert reader.last.messages[-1].text == "user: What is it?\n\nassistant: It is dark."
    assert sorted(await result.journal.loops()) == ["f", "f-s0", "f-s1", "f-s1-h1"]


async def test_a_summary_of_all_but_the_last_and_of_what_is_no_text() -> None:
    engine = ScriptedEngine("short")
    history = [
        user([Text("see"), Image("https://example.org/a.png")]),
        assistant("", ToolCall("c", "look", '{"n": 1}')),
        tool_results([ToolResult("c", "look", {"n": 2})]),
        assistant("done"),
        user("and"),
        assistant("too"),
    ]
    agent = Agent(engine, name="reader")
    runs: list[str] = []

    class Noting(StepContext[None]):
        async def run(self, agent: Agent[Any, Any], prompt: Any = None, **options: Any) -> Any:
            runs.append(prompt)
            return await agent.run(prompt, **options)

    context = Noting(None, RunFacts("f"), None, "f-s0", {})
    left = await filtered(summarize_history(agent, keep_last=2), context, history)
    assert [message.text for message in left] == [f"{SUMMARY}\nshortand", "too"]
    said = 'user: see\n[image]\n\nassistant: [calls look with {"n": 1}]\n\ntool: [look gave: {"n":2}]'
    assert runs == [f"{said}\n\nassistant: done"]


async def test_nothing_is_asked_where_there_is_nothing_to_summarise() -> None:
    left = await filtered(
        summarize_history(NeverAsked(), keep_last=2), CONTEXT, [user("one"), assistant("two")]
    )
    assert len(left) == 2


async def test_a_filter_of_ones_own_may_be_async_and_is_checked() -> None:
    async def last(messages: Sequence[Message]) -> Sequence[Message]:
        return messages[-1:]

    expert = Agent(NeverAsked(), name="expert")
    with pytest.raises(InvalidMessage, match=r"step 'expert' \(1\): message 0 of the history"):
        await Handoff(Agent(Script("a"))).add_step(expert, "go", filter=last).run("go")


def test_what_cannot_be_meant_is_refused() -> None:
    with pytest.raises(UserError, match="keep_last_n takes how many"):
        keep_last_n(-1)
    with pytest.raises(UserError, match="keep_last= takes how many"):
        summarize_history("test", keep_last=-1)
    with pytest.raises(UserError, match="history= takes True or a filter"):
        AgentStep(Agent("test"), history="all")  # pyright: ignore[reportArgumentType, reportCallIssue]
