"""Calls that are deferred: the run stops where it waits, and goes on by what somebody outside says."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from flyball import (
    Agent,
    Limits,
    MemoryJournal,
    ToolCall,
    ToolOutputTruncation,
    ToolResult,
    send_signal,
    tool,
    truncate_tool_output,
)
from flyball.core.deferred import DeferredToolRequest, DeferredToolResult
from flyball.core.errors import (
    AnswerRefused,
    CancelledSignal,
    CancelledTimeout,
    Deferred,
    InvalidMessage,
    LoopMismatch,
    LoopNotFound,
    ToolRetriesExceeded,
    UserError,
)
from flyball.core.events import Ended, Resumed, ToolReturned
from flyball.core.history import check_history
from flyball.core.messages import ResultKind, Role, user
from flyball.core.signals import Signal, SignalType
from flyball.inference.answers import tool_call as call
from flyball.orchestrate.answering import send_results
from flyball.orchestrate.machine import fold
from flyball.orchestrate.projections import normal_form, timeline, tool_calls_made, trajectory
from flyball.orchestrate.recorded import load
from flyball.orchestrate.result import RunResult
from flyball.testing import FakeClock
from flyball.tool.errors import CallDeferred
from tests.orchestrate.models import Script
from tests.orchestrate.where import Where


@tool
async def build(target: str) -> str:
    """Have something built."""
    raise CallDeferred(f"{target} is in the queue")


@tool(safety="at_most_once")
async def order(item: str) -> str:
    """Order something, once."""
    raise CallDeferred("ordered")


@tool(approval=True)
async def deploy() -> str:
    """Deploy, if somebody approves."""
    raise CallDeferred("on its way")


@tool
async def look() -> str:
    """Look."""
    return "seen"


TOOLS = [build, order, look]
TWO = [call("build", {"target": "app"}), call("look"), call("build", {"target": "docs"})]


def agent_of(*answers: Any, **options: Any) -> Agent[Any, Any]:
    return Agent(Script(*answers), tools=TOOLS, **options)


def ok(requests: Sequence[DeferredToolRequest], content: Any = "ok", **more: Any) -> list[DeferredToolResult]:
    return [DeferredToolResult(one.tool_name, one.tool_call_id, content, **more) for one in requests]


async def stopped(where: Where, agent: Agent[Any, Any], loop_id: str, **options: Any) -> Deferred:
    """Run an agent to where it waits, and look at what is told."""
    with pytest.raises(Deferred) as caught:
        await where.run(agent, "go", loop_id, **options)
    error = caught.value
    assert error.loop_id == loop_id
    partial: RunResult[Any] = error.partial
    assert (partial.loop_id, partial.messages) == (loop_id, error.messages)
    events = await where.journal.read(loop_id)
    assert not any(isinstance(event, Ended) for event in events), "it is no end"
    state = fold(events)
    assert [one.tool_call_id for one in error.requests] == [state.calls[n].id for n in sorted(state.deferred)]
    return error


async def test_a_run_stops_where_it_waits_and_goes_on_by_its_results(where: Where) -> None:
    agent = agent_of(TWO, "done")
    error = await stopped(where, agent, "deferred-two")
    app, docs = error.requests
    assert (app.tool_name, app.args_json) == ("build", '{"target":"app"}')
    assert (docs.tool_name, docs.args_json) == ("build", '{"target":"docs"}')
    assert "build" in str(error)
    assert "deferred-two" in str(error)
    error = await stopped(where, agent, "deferred-two", deferred_results=ok([docs]))
    assert error.requests == (app,)
    result = await where.run(agent, "go", "deferred-two", deferred_results=ok([app], {"size": 3}))
    assert result.output == "done"
    assert [one.text for one in result.messages[2].tool_results] == ['{"size":3}', "seen", "ok"]
    assert result.usage.tool_calls == 3
    check_history(result.messages)
    again = await where.run(agent, "go", "deferred-two", deferred_results=ok([app], {"size": 3}))
    assert again.messages == result.messages
    kinds = [one.result.status for one in await result.events() if isinstance(one, ToolReturned)]
    assert kinds.count(ResultKind.DEFERRED) == 2
    assert len(kinds) == 5


LONG = "line\n" * 5000
CUT = truncate_tool_output(LONG, 20)


async def test_a_result_from_outside_is_cut_like_any_other(where: Where) -> None:
    agent = agent_of(TWO, "done", features=[ToolOutputTruncation(20)])
    app, docs = (await stopped(where, agent, "deferred-long")).requests
    refused = ok([docs], LONG, is_error=True)
    result = await where.run(agent, "go", "deferred-long", deferred_results=[*ok([app], LONG), *refused])
    assert [one.text for one in result.messages[2].tool_results] == [CUT, "seen", LONG]
    again = await where.run(agent, "go", "deferred-long", deferred_results=ok([app], LONG))
    assert again.messages == result.messages


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        (LONG * 300, truncate_tool_output(LONG * 300, 20)),
        ({"pages": 3}, '{"pages":3}'),
        (ToolResult("", "", LONG), CUT),
        (ToolResult("", "", LONG, stop_loop=True), LONG),
    ],
    ids=["more than can be recorded", "short", "a ToolResult", "the answer"],
)
async def test_results_for_messages_are_cut_too(given: Any, taken: str) -> None:
    agent = agent_of(call("build", {"target": "app"}), "done", features=[ToolOutputTruncation(20)])
    with pytest.raises(Deferred) as caught:
        await agent.run("go")
    (request,) = caught.value.requests
    results: list[Any] = ok([request], given)
    if isinstance(given, ToolResult):
        results = [replace(given, call_id=request.tool_call_id)]
    fresh = agent.clone(model=Script("done"))
    result = await fresh.run(messages=caught.value.messages, deferred_results=results)
    assert result.messages[2].tool_results[0].text == taken


@pytest.mark.parametrize("way", ["stream", "iter"])
async def test_streams_and_steps_stop_and_go_on_too(where: Where, way: str) -> None:
    agent, loop_id = agent_of(call("build", {"target": "app"}), "well done"), f"deferred-two-{way}"

    async def taken(**options: Any) -> Any:
        if way == "stream":
            async with where.stream(agent, loop_id=loop_id, **options) as stream:
                return "".join([piece async for piece in stream.text()])
        async with where.iter(agent, loop_id=loop_id, **options) as run:
            return [step.turn async for step in run]

    with pytest.raises(Deferred) as caught:
        await taken()
    assert [one.tool_name for one in caught.value.requests] == ["build"]
    with pytest.raises(Deferred):
        await taken()
    told = await taken(deferred_results=ok(caught.value.requests))
    assert told == ("well done" if way == "stream" else [2])


async def test_the_journal_is_the_same_whoever_drives(where: Where) -> None:
    here, agent = Where.here(MemoryJournal()), agent_of(TWO, "done")
    forms: list[Any] = []
    for place in (here, where):
        error = await stopped(place, agent.clone(model=Script(TWO, "done")), "deferred-same")
        result = await place.run(
            agent.clone(model=Script(TWO, "done")), "go", "deferred-same", deferred_results=ok(error.requests)
        )
        forms.append(normal_form(await result.events()))
    assert forms[0] == forms[1]


async def test_a_batch_gives_what_waits_in_its_place(where: Where) -> None:
    agent = agent_of([call("build", {"target": "x"})], "done")
    options: dict[str, Any] = {"runtime": where.driver} if where.driver else {}
    results = await agent.run_batch(["one", "two"], **options)
    assert [type(result) for result in results] == [Deferred, Deferred]


async def test_errors_are_told_to_the_model_as_retries(where: Where) -> None:
    model = Script(call("build", {"target": "app"}), call("build", {"target": "app"}), "done")
    agent = Agent(model, tools=TOOLS)
    error = await stopped(where, agent, "deferred-error")
    error = await stopped(
        where, agent, "deferred-error", deferred_results=ok(error.requests, "no such branch", is_error=True)
    )
    (result,) = error.messages[2].tool_results
    assert (result.status, result.text) == (ResultKind.RETRY, "no such branch")
    last = [ToolResult(one.tool_call_id, one.tool_name, error="the disk is full") for one in error.requests]
    assert (await where.run(agent, "go", "deferred-error", deferred_results=last)).output == "done"


async def test_retries_from_outside_are_counted(where: Where) -> None:
    agent = agent_of(call("build", {"target": "app"}), call("build", {"target": "app"}), "done", retries=1)
    error = await stopped(where, agent, "deferred-count")
    error = await stopped(
        where, agent, "deferred-count", deferred_results=ok(error.requests, "no", is_error=True)
    )
    with pytest.raises(ToolRetriesExceeded):
        await where.run(
            agent, "go", "deferred-count", deferred_results=ok(error.requests, "no", is_error=True)
        )


async def test_an_at_most_once_call_that_is_deferred_is_not_interrupted(orderly: Where) -> None:
    """It has started and has not its result; but it has said so."""
    agent = agent_of(call("order", {"item": "tea"}), "done")
    with pytest.raises(Deferred) as caught:
        await orderly.run(agent, "go", "deferred-once")
    requests = caught.value.requests
    for _ in range(2):
        assert (await stopped(orderly, agent, "deferred-once")).requests == requests
    result = await orderly.run(agent, "go", "deferred-once", deferred_results=ok(requests, "there"))
    assert result.messages[2].tool_results[0].text == "there"


async def test_an_output_waits_for_what_is_deferred(where: Where) -> None:
    calls = [call("final_result", {"result": 7}), call("build", {"target": "app"})]
    agent = agent_of(calls, output=int, end_strategy="exhaustive")
    error = await stopped(where, agent, "deferred-output")
    assert [one.status for one in error.messages[-1].tool_results] == [ResultKind.SKIPPED]
    assert (await where.run(agent, "go", "deferred-output", deferred_results=ok(error.requests))).output == 7


async def test_a_tool_that_stops_the_loop_may_be_deferred(where: Where) -> None:
    agent = agent_of(call("build", {"target": "app"}))
    error = await stopped(where, agent, "deferred-stop")
    (one,) = error.requests
    final = ToolResult(one.tool_call_id, one.tool_name, "shipped", stop_loop=True)
    assert (await where.run(agent, "go", "deferred-stop", deferred_results=[final])).output == "shipped"


# What else may happen meanwhile


async def test_a_cancel_answers_what_waits(where: Where) -> None:
    agent = agent_of(TWO, "done")
    await stopped(where, agent, "deferred-cancel")
    await send_signal(where.journal, "deferred-cancel", Signal(SignalType.CANCEL, by="ann", text="enough"))
    with pytest.raises(CancelledSignal) as caught:
        await where.run(agent, "go", "deferred-cancel")
    results = caught.value.partial.messages[-1].tool_results
    assert [one.status for one in results] == [ResultKind.DEFERRED, ResultKind.RETURN, ResultKind.DEFERRED]
    assert results[0].error == "Not finished: cancelled by ann: enough"
    assert caught.value.partial.usage.tool_calls == 3
    check_history(caught.value.partial.messages)
    late = ok([DeferredToolRequest("build", results[0].call_id, "")])
    with pytest.raises(AnswerRefused, match="another result already"):
        await send_results(where.journal, "deferred-cancel", late)


async def test_the_deadline_goes_on_counting(where: Where) -> None:
    clock = FakeClock()
    agent = agent_of(call("build", {"target": "app"}), "done", limits=Limits(timeout=60))
    await stopped(where, agent, "deferred-late", clock=clock)
    await clock.advance(61)
    with pytest.raises(CancelledTimeout) as caught:
        await where.run(agent, "go", "deferred-late", clock=clock)
    assert caught.value.partial.messages[-1].tool_results[0].status is ResultKind.DEFERRED


async def test_who_pauses_has_the_results_wait(where: Where) -> None:
    agent = agent_of(call("build", {"target": "app"}), "done")
    error = await stopped(where, agent, "deferred-pause")
    await send_signal(where.journal, "deferred-pause", SignalType.PAUSE)
    await send_results(where.journal, "deferred-pause", ok(error.requests))
    _, state = await load(where.journal, "deferred-pause")
    assert (state.at, state.paused) == ("infer", True)
    await send_signal(where.journal, "deferred-pause", SignalType.RESUME)
    assert (await where.run(agent, "go", "deferred-pause")).output == "done"


async def test_approval_is_waited_for_and_then_told(where: Where) -> None:
    agent = Agent(Script([call("deploy"), call("build", {"target": "x"})], "done"), tools=[*TOOLS, deploy])
    running = asyncio.create_task(where.run(agent, "go", "deferred-approve"))
    await where.journal.wait("deferred-approve", 0)
    while not (loaded := await load(where.journal, "deferred-approve"))[1].deferred:
        await where.journal.wait("deferred-approve", len(loaded[0]))
    state = loaded[1]
    (waits,) = [state.calls[index] for index in state.awaiting]
    with pytest.raises(AnswerRefused, match=f"takes no result of call '{waits.id}'"):
        await send_results(where.journal, "deferred-approve", [DeferredToolResult("", waits.id, "no")])
    assert not running.done()
    await send_signal(where.journal, "deferred-approve", SignalType.APPROVE)
    with pytest.raises(Deferred) as caught:
        await running
    assert [one.tool_name for one in caught.value.requests] == ["deploy", "build"]
    result = await where.run(agent, "go", "deferred-approve", deferred_results=ok(caught.value.requests))
    assert result.output == "done"


async def test_a_fork_goes_on_from_before_and_may_wait_itself(where: Where) -> None:
    agent = agent_of(call("look"), call("build", {"target": "app"}), "done")
    error = await stopped(where, agent, "deferred-source")
    with pytest.raises(UserError, match=r"turn 2 of loop .* is not over"):
        await agent.fork("deferred-source", where.journal, turn=2)
    with pytest.raises(Deferred) as caught:
        await agent.fork("deferred-source", where.journal, turn=1, new_loop_id=f"forked-{where.kind}")
    assert caught.value.loop_id == f"forked-{where.kind}"
    result = await agent.resume(
        f"forked-{where.kind}", where.journal, deferred_results=ok(caught.value.requests)
    )
    assert result.output == "done"
    assert await stopped(where, agent, "deferred-source")
    assert error.requests == caught.value.requests


async def test_a_result_may_come_before_its_call_is_deferred() -> None:
    """Whoever was told about it by the tool may be quick: then the tool is not waited for."""
    journal = MemoryJournal()

    @tool
    async def quick() -> str:
        (_, state) = await load(journal, "quick")
        await send_results(journal, "quick", [DeferredToolResult("quick", state.calls[0].id, "done by now")])
        raise CallDeferred

    agent = Agent(Script(call("quick"), "done"), tools=[quick])
    result = await agent.run("go", journal=journal, loop_id="quick")
    assert result.messages[2].tool_results[0].text == "done by now"


async def test_resume_takes_the_results_and_fences_the_former_driver() -> None:
    journal, agent = MemoryJournal(), agent_of(TWO, "done")
    error = await stopped(Where.here(journal), agent, "one")
    with pytest.raises(Deferred):
        await agent.resume("one", journal)
    length = len(await journal.read("one"))
    with pytest.raises(AnswerRefused, match="takes no result of call 'nobody': it waits for"):
        await agent.resume(
            "one", journal, deferred_results=[*ok(error.requests), DeferredToolResult("", "nobody", "")]
        )
    assert len(await journal.read("one")) == length, "nothing was written"
    result = await agent.resume("one", journal, deferred_results=ok(error.requests))
    assert result.output == "done"
    assert (await agent.resume("one", journal, deferred_results=ok(error.requests))).output == "done"
    with pytest.raises(AnswerRefused, match="another result already: 'ok'"):
        await agent.resume("one", journal, deferred_results=ok(error.requests, "no"))
    assert (await agent.replay("one", journal)).messages == result.messages
    assert isinstance((await journal.read("one"))[-3], Resumed)


async def test_a_loop_that_is_not_there_or_another_takes_no_results() -> None:
    journal, agent = MemoryJournal(), agent_of(TWO, "done")
    error = await stopped(Where.here(journal), agent, "one")
    with pytest.raises(LoopNotFound):
        await agent.run("go", journal=journal, loop_id="deferred-two", deferred_results=ok(error.requests))
    with pytest.raises(LoopMismatch):
        await agent.run("stay", journal=journal, loop_id="one", deferred_results=ok(error.requests))
    assert await journal.read("deferred-two") == []
    assert (await load(journal, "one"))[1].deferred


async def test_an_editor_may_wait() -> None:
    editor = Agent(Script(call("build", {"target": "x"}), "edited"), tools=TOOLS, name="editor")
    architect = Agent(Script("a plan"), role="architect", editor=editor)
    journal = MemoryJournal()
    result = await architect.run("go", journal=journal, loop_id="plan")
    assert result.output == "a plan"
    assert result.editor is not None
    waits = result.editor.error
    assert isinstance(waits, Deferred)
    edited = await editor.resume(waits.loop_id, journal, deferred_results=ok(waits.requests))
    assert edited.output == "edited"


# Going on without a journal


async def test_a_run_goes_on_from_messages() -> None:
    with pytest.raises(Deferred) as caught:
        await agent_of(TWO, "done").run("go")
    error = caught.value
    with pytest.raises(InvalidMessage):
        await agent_of("done").run(messages=error.messages)
    model = Script("done")
    results = [ok(error.requests[:1], "green")[0], ok(error.requests[1:], "red", is_error=True)[0]]
    result = await Agent(model, tools=TOOLS).run(messages=error.messages, deferred_results=results)
    assert result.output == "done"
    sent = model.last.messages[-1].tool_results
    assert [(one.text, one.status) for one in sent] == [
        ("green", ResultKind.RETURN),
        ("seen", ResultKind.RETURN),
        ("red", ResultKind.RETRY),
    ]
    assert [message.role for message in model.last.messages] == [Role.USER, Role.ASSISTANT, Role.TOOL]
    with_prompt = await agent_of("done").run("and now?", messages=error.messages, deferred_results=results)
    check_history(with_prompt.messages)


async def test_all_calls_of_messages_must_be_answered_and_no_others() -> None:
    with pytest.raises(Deferred) as caught:
        await agent_of(TWO, "done").run("go")
    messages, (app, docs) = caught.value.messages, caught.value.requests
    agent = agent_of("never asked")
    for results, told in (
        (ok([app]), f"calls without a result: {docs.tool_call_id}"),
        ([*ok([app, docs]), DeferredToolResult("", "c9", "")], "takes no result of call 'c9'"),
        ([*ok([app, docs]), *ok([app], "else")], "has another result already"),
        (ok([app, DeferredToolRequest("look", docs.tool_call_id, "")]), "is one of 'build'"),
    ):
        with pytest.raises(AnswerRefused, match=told):
            await agent.run(messages=messages, deferred_results=results)
    doubled = [*ok([app, docs]), *ok([app, docs])]
    assert (await agent.run(messages=messages, deferred_results=doubled)).output == "never asked"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"messages": [user("hi")]},
        {"loop_id": "one"},
        {"journal": MemoryJournal()},
    ],
    ids=["nothing", "no calls", "no journal", "no loop"],
)
async def test_results_are_for_something(options: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="deferred_results= answer calls that wait"):
        await agent_of("done").run("go", deferred_results=[DeferredToolResult("", "c", "")], **options)


async def test_what_cannot_be_recorded_is_refused() -> None:
    journal, agent = MemoryJournal(), agent_of(TWO, "done")
    error = await stopped(Where.here(journal), agent, "one")
    (name, *_), length = [one.tool_call_id for one in error.requests], len(await journal.read("one"))
    bad: Any
    for bad in (
        DeferredToolResult("", name, object()),
        DeferredToolResult("", name, "x" * 5_000_000),
        ToolResult(name, "", "x", status=ResultKind.DENIED),
        {"tool_call_id": name},
    ):
        with pytest.raises(UserError):
            await agent.resume("one", journal, deferred_results=[bad])
    assert len(await journal.read("one")) == length


# What is seen of it


async def test_the_projections_tell_one_call() -> None:
    journal, agent, clock = (
        MemoryJournal(),
        agent_of(call("build", {"target": "x"}), "done"),
        FakeClock(100.0),
    )
    with pytest.raises(Deferred) as caught:
        await agent.run("go", journal=journal, loop_id="one", clock=clock)
    events = await journal.read("one")
    assert [record.status for record in tool_calls_made(events)] == [ResultKind.DEFERRED]
    assert [step.step_type for step in trajectory(events).steps] == ["model_call"]
    await clock.advance(50)
    await send_results(journal, "one", ok(caught.value.requests), clock)
    result = await agent.run("go", journal=journal, loop_id="one", clock=clock)
    events = await result.events()
    assert [(one.status, one.result) for one in tool_calls_made(events)] == [(ResultKind.RETURN, "ok")]
    assert [step.step_type for step in trajectory(events).steps] == ["model_call", "tool_call", "model_call"]
    told = [one for one in timeline(events) if type(one).__name__ in ("ToolStartEvent", "ToolEndEvent")]
    assert [(type(one).__name__, one.at) for one in told] == [
        ("ToolStartEvent", 100.0),
        ("ToolEndEvent", 150.0),
    ]
    assert told[0].correlation.span_id == told[1].correlation.span_id


def test_an_error_that_was_written_down_has_its_requests() -> None:
    request = DeferredToolRequest("build", "c1", "{}")
    error = Deferred(
        "waits", loop_id="one", requests=[{"tool_name": "build", "tool_call_id": "c1", "args_json": "{}"}]
    )
    again = error.record().exception()
    assert isinstance(again, Deferred)
    assert (again.requests, again.loop_id, again.messages) == ((request,), "one", ())
    assert ToolCall("c1", "build").args_json == request.args_json
