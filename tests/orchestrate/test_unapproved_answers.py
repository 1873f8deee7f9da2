"""What is told of a loop whose answer nobody has approved: nothing of that answer, by whatever it is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec import Struct, json, to_builtins

from flyball import Agent, Knowledge, Limits, UsageLimits
from flyball.core.errors import AgentRunClosed, FlyballError
from flyball.core.events import Event, Outcome
from flyball.core.forms.semstreams import Trajectory
from flyball.core.messages import Message, Retry, Role, Text, ToolCall, user
from flyball.core.signals import Signal, SignalType
from flyball.core.tools import ToolDefinition
from flyball.core.usage import Usage
from flyball.inference.answers import tool_call as call
from flyball.inference.answers import tool_call_answer
from flyball.inference.cut import events_of
from flyball.inference.request import Request
from flyball.inference.scripted import FunctionEngine
from flyball.inference.stream import StreamEvent
from flyball.orchestrate.approvals import is_withheld
from flyball.orchestrate.contracts import Mode, OutputContract, SystemRequest, SystemResponse
from flyball.orchestrate.journal import MemoryJournal
from flyball.orchestrate.projections import trajectory
from flyball.orchestrate.projections.loop_entity import loop_entity
from flyball.orchestrate.projections.loop_events import lifecycle_payloads
from flyball.orchestrate.projections.runtime_events import runtime_events
from flyball.orchestrate.projections.said import said_in
from flyball.orchestrate.projections.summary import summary_of
from flyball.orchestrate.recorded import calls_waiting, fork, load, send_signal, snapshot_at
from flyball.orchestrate.result import RunResult
from flyball.orchestrate.state import State
from flyball.orchestrate.system import System
from flyball.testing import FakeClock
from tests.orchestrate.models import Script
from tests.orchestrate.scenarios import City, finish
from tests.orchestrate.test_output_approval import waiting_below, waits

DRAFT = "We are broke."
ASK = SystemRequest(messages=(user("go"),))

DRAFTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "text": (DRAFT, {}),
    "a call": (call("final_result", {"name": DRAFT}), {"output": City, "output_mode": "tool"}),
    "JSON": (f'{{"name": "{DRAFT}"}}', {"output": City, "output_mode": "native"}),
    "a tool's": (call("finish", {"text": DRAFT}), {"tools": [finish]}),
}


class Gone(Struct):
    """A loop that has come to where it is looked at."""

    journal: MemoryJournal
    system: System
    events: list[Event]
    state: State


async def hang(_: object, text: Any) -> Any:
    await asyncio.Event().wait()
    return text


async def come(way: str, draft: Any, options: dict[str, Any]) -> AsyncIterator[Gone]:
    """A loop in which an answer was given that nobody approved."""
    journal, clock = MemoryJournal(), FakeClock()
    if way == "rejected":
        options = {**options, "limits": Limits(max_iterations=1)}
    elif way == "too long":
        options = {**options, "limits": Limits(usage=UsageLimits(output_tokens_limit=1))}
        draft = Message(Role.ASSISTANT, (Text(draft),), usage=Usage(output_tokens=9))
    elif way == "unchecked":
        options = {**options, "validators": [hang]}
    system = System(Agent(Script(draft), output_approval=True, **options), journal=journal, clock=clock)
    task = asyncio.create_task(
        system.agent.run("go", journal=journal, loop_id="one", timeout=30, clock=clock)
    )
    await journal.wait("one", 0)
    if way == "unchecked":
        await journal.wait("one", 1)  # Started, ModelAnswered: now it is checked
    elif way != "too long":
        await waits(journal, "one")
    if way == "rejected":
        await send_signal(journal, "one", Signal(SignalType.REJECT, text="no"))
    elif way in ("cancelled", "unchecked"):
        await send_signal(journal, "one", Signal(SignalType.CANCEL))
    elif way == "late":
        await clock.advance(30)
    if way != "waits":
        with pytest.raises(FlyballError):
            await task
    events, state = await load(journal, "one")
    yield Gone(journal, system, events, state)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


ENDS = ("rejected", "cancelled", "late")


@pytest.fixture(params=[(way, draft) for way in ("waits", *ENDS) for draft in DRAFTS], ids=" ".join)
async def gone(request: pytest.FixtureRequest) -> AsyncIterator[Gone]:
    way, draft = request.param
    async for one in come(way, *DRAFTS[draft]):
        yield one


def written(*told: Any) -> str:
    return str([to_builtins(one, enc_hook=repr) for one in told])


async def test_nothing_that_is_told_of_it_has_it(gone: Gone) -> None:
    state, journal = gone.state, gone.journal
    assert is_withheld(state)
    told = {
        "the list": await summary_of(journal, "one"),
        "the bucket": loop_entity(gone.events),
        "what is heard": lifecycle_payloads(gone.events),
        "the way": trajectory(gone.events),
        "the response": await gone.system.replay("one"),
        "the text": RunResult(None, state, journal).text,
    }
    for name, one in told.items():
        assert DRAFT not in written(one), name


async def test_who_waits_for_it_has_nothing_of_it() -> None:
    """Nor of what came of one that broke off in the middle."""

    class Broken(Script):
        async def stream(self, request: Request) -> AsyncIterator[StreamEvent]:
            for event in list(events_of(self._result(request).message, 3, "r"))[:-2]:
                yield event
            raise OSError("line is down")

    system = System(Agent(Broken(DRAFT), output_approval=True), journal=MemoryJournal())
    *pieces, last = [piece async for piece in system.stream(ASK)]
    assert pieces == []
    assert isinstance(last, SystemResponse)
    assert last.error is not None
    assert last.content == ""


def better(answer: Any) -> Any:
    """Another answer, of the same kind."""
    kind: Any = answer.__class__
    return json.decode(json.encode(answer).replace(b"broke", b"rich"), type=kind)


@pytest.mark.parametrize("draft", DRAFTS)
async def test_a_stream_has_what_was_approved_and_nothing_before(draft: str) -> None:
    answer, options = DRAFTS[draft]
    approved = better(answer)
    journal = MemoryJournal()
    system = System(
        Agent(Script(answer, approved, chunk=3), output_approval=True, **options), journal=journal
    )
    told: list[StreamEvent | SystemResponse] = []

    async def read() -> None:
        async for piece in system.stream(ASK, loop_id="one"):
            told.append(piece)

    task = asyncio.create_task(read())
    await journal.wait("one", 0)
    await waits(journal, "one")
    await send_signal(journal, "one", Signal(SignalType.REJECT, text="softer"))
    await waits(journal, "one", 2)
    assert told == []
    await send_signal(journal, "one", Signal(SignalType.APPROVE))
    await task
    assert "broke" not in written(*told)
    assert "rich" in written(told[0])
    last = told[-1]
    assert isinstance(last, SystemResponse)
    assert "rich" in last.content


@pytest.mark.parametrize("draft", DRAFTS)
async def test_a_trajectory_tells_what_was_approved_once_it_is(draft: str) -> None:
    """Of what was rejected on the way it tells what that has cost."""
    answer, options = DRAFTS[draft]
    approved = better(answer)
    journal = MemoryJournal()
    agent = Agent(Script(answer, approved), output_approval=True, **options)
    task = asyncio.create_task(agent.run("go", journal=journal, loop_id="one"))
    await journal.wait("one", 0)
    await waits(journal, "one")
    await send_signal(journal, "one", Signal(SignalType.REJECT, text="softer"))
    await waits(journal, "one", 2)
    detail = "summary" if draft == "a tool's" else "full"  # what a tool was asked for is no answer yet
    assert "rich" not in said(trajectory(await journal.read("one"), detail))
    await send_signal(journal, "one", Signal(SignalType.APPROVE))
    result = await task
    way = trajectory(await result.events(), detail)
    assert "broke" not in said(way)
    assert "rich" in said(way)
    assert (way.total_tokens_in, way.total_tokens_out) == (
        result.usage.input_tokens,
        result.usage.output_tokens,
    )


def said(way: Trajectory) -> str:
    """What the steps say themselves, not what was sent to the model."""
    return written(*[(one.response, one.tool_result, one.tool_calls) for one in way.steps])


async def test_a_run_that_goes_on_from_a_snapshot_takes_it_for_no_answer(gone: Gone) -> None:
    """One that waits is none yet; behind one that was refused, the model reads that."""
    kept = await snapshot_at(gone.journal, "one")
    assert kept.messages[-1].role is not Role.ASSISTANT
    if gone.state.at == "approve":
        assert not any(message.text or "final_result" in written(message) for message in kept.messages[1:-1])
    else:
        assert any("not approved" in text for text in retries(kept.messages[-1]))


UNFINISHED = ("too long", "unchecked")


@pytest.mark.parametrize("way", UNFINISHED)
async def test_who_goes_on_from_what_came_to_no_approval_is_told_so(way: str) -> None:
    async for one in come(way, DRAFT, {}):
        assert one.state.outcome is not Outcome.SUCCESS
        *_, last = said_in(one.state)
        assert retries(last) == ["The answer was not approved before the run ended: nobody was given it."]
        assert (await one.system.replay("one")).content == ""


def retries(message: Message) -> list[str]:
    return [part.text for part in message.parts if isinstance(part, Retry)]


async def test_what_waits_cannot_be_forked_after() -> None:
    async for one in come("waits", DRAFT, {}):
        with pytest.raises(FlyballError, match="is not over"):
            await fork(one.journal, "one", 1, one.state.spec, prompt=user("Go on."))


STEPS = {"steps": [{"name": "write", "type": "infer", "input": {"prompt": "write"}}]}
FLOWS: dict[str, SystemRequest] = {
    "a plan": SystemRequest(messages=(user("go"),), mode=Mode.PLAN, plan=STEPS),
    "a vote": SystemRequest(
        messages=(user("go"),),
        mode=Mode.REDUNDANT,
        output=OutputContract(schema={"type": "object", "properties": {"name": {"type": "string"}}}),
    ),
}


async def write(request: Request) -> Message | str:
    """The same draft, in the form that is asked for."""
    return tool_call_answer("final_result", {"name": DRAFT}) if request.tools else DRAFT


@pytest.mark.parametrize("end", [SignalType.APPROVE, SignalType.CANCEL])
@pytest.mark.parametrize("asked", FLOWS.values(), ids=FLOWS)
async def test_what_the_steps_of_a_flow_would_answer_is_told_once_it_is_approved(
    asked: SystemRequest, end: SignalType
) -> None:
    journal = MemoryJournal()
    system = System(Agent(FunctionEngine(write), output_approval=True), journal=journal)
    told: list[StreamEvent | SystemResponse] = []

    async def read() -> None:
        async for piece in system.stream(asked, loop_id="top"):
            told.append(piece)

    task = asyncio.create_task(read())
    while not task.done():
        await asyncio.sleep(0)
        if "top" not in await journal.loops():
            continue
        for one in await calls_waiting(journal, "top"):
            assert told == []
            assert DRAFT not in written(await summary_of(journal, "top"))
            await send_signal(journal, one.loop_id, Signal(end))
    await task
    assert (DRAFT in written(*told)) == (end is SignalType.APPROVE)


class Shelf:
    """A knowledge base that remembers what it was given."""

    def __init__(self) -> None:
        self.kept: list[str] = []

    def retrieve(self, query: str) -> str:
        return ""

    def store(self, content: str) -> None:
        self.kept.append(content)


@pytest.mark.parametrize("end", [SignalType.APPROVE, SignalType.CANCEL])
async def test_nothing_is_stored_or_delivered_before(end: SignalType) -> None:
    shelf, journal, delivered = Shelf(), MemoryJournal(), list[tuple[Outcome, Any]]()

    def deliver(_: object, outcome: Outcome, output: Any) -> None:
        delivered.append((outcome, output))

    agent = Agent(
        Script(DRAFT),
        output_approval=True,
        deliveries=[deliver],
        features=[Knowledge(shelf, auto_store=True)],
    )
    task = asyncio.create_task(agent.run("go", journal=journal, loop_id="one"))
    await journal.wait("one", 0)
    await waits(journal, "one")
    assert (shelf.kept, delivered) == ([], [])
    await send_signal(journal, "one", Signal(end))
    await asyncio.wait([task])
    if end is SignalType.APPROVE:
        assert (shelf.kept, delivered) == ([DRAFT], [(Outcome.SUCCESS, DRAFT)])
    else:
        assert (shelf.kept, delivered) == ([], [(Outcome.CANCELLED, None)])
        assert task.exception() is not None


async def test_who_asks_an_agent_as_a_tool_reads_nothing_of_what_was_not_approved() -> None:
    kid = Agent(Script(DRAFT), name="kid", output_approval=True)
    asks = Script(call("kid", {"prompt": "write"}), "It could not be had.")
    journal = MemoryJournal()
    top = Agent(asks, tools=[kid.as_tool()])
    task = asyncio.create_task(top.run("go", journal=journal, loop_id="top"))
    one = await waiting_below(journal)
    assert DRAFT not in written(await summary_of(journal, "top"), trajectory(await journal.read("top")))
    await send_signal(journal, one.loop_id, Signal(SignalType.CANCEL))
    assert (await task).output == "It could not be had."
    assert DRAFT not in written(asks.last)


@pytest.mark.parametrize("end", [SignalType.APPROVE, SignalType.CANCEL])
async def test_an_editor_goes_on_from_what_was_approved_alone(end: SignalType) -> None:
    journal, writing = MemoryJournal(), Script("edited")
    editor = Agent(writing, name="editor")
    architect = Agent(Script(DRAFT), role="architect", editor=editor, output_approval=True)
    task = asyncio.create_task(architect.run("go", journal=journal, loop_id="top"))
    await waiting_below(journal)
    assert writing.requests == []
    await send_signal(journal, "top", Signal(end))
    await asyncio.wait([task])
    assert len(writing.requests) == (end is SignalType.APPROVE)
    assert (task.exception() is None) == (end is SignalType.APPROVE)


async def test_code_that_reads_a_run_as_it_goes_reads_it_as_it_is_written() -> None:
    """That is who wrote the agent; the output it has once it is approved."""
    journal, heard = MemoryJournal(), list[str]()
    agent = Agent(Script(DRAFT), output_approval=True)
    async with agent.run_stream("go", journal=journal, loop_id="one") as run:

        async def read() -> None:
            async for piece in run.text():
                heard.append(piece)

        task = asyncio.create_task(read())
        await journal.wait("one", 0)
        await waits(journal, "one")
        assert "".join(heard) == DRAFT
        with pytest.raises(AgentRunClosed, match="not over"):
            _ = run.result
        await run.signal(SignalType.APPROVE)
        await task
        assert DRAFT in written(*runtime_events(await journal.read("one")))
        assert ("".join(heard), run.result.output) == (DRAFT, DRAFT)


async def test_what_is_said_beside_a_call_of_the_callers_is_not_told() -> None:
    """It may well be what somebody has just refused, in other words."""
    locate = ToolDefinition("locate", {"type": "object"})
    said = Message(Role.ASSISTANT, (Text(f"As I said: {DRAFT}"), ToolCall("c", "locate", "{}")))
    asked = SystemRequest(messages=(user("go"),), caller_tools=(locate,))
    for approval in (True, False):
        system = System(Agent(Script(said), output_approval=approval), journal=MemoryJournal())
        response = await system.handle(asked)
        assert [one.tool_name for one in response.calls_wanted] == ["locate"]
        assert (DRAFT in response.content) is not approval
