"""Architect and editor: the loop that goes on from another's answer, wherever both are driven."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace
from pydantic import BaseModel

from flyball import Agent, Limits, MemoryJournal, RunContext, tool
from flyball.core.correlation import Correlation
from flyball.core.errors import CancelledSignal, DepthLimit, EngineError, SignalRefused, UserError
from flyball.core.events import VERSION, ChildStarted, Ended, Event, Outcome, Stage, Started
from flyball.core.ids import new_id
from flyball.core.messages import user
from flyball.core.signals import Signal, SignalType
from flyball.inference.answers import tool_call as call
from flyball.orchestrate.correlation import loop_correlation, span_id_of
from flyball.orchestrate.editing import PROMPT, editor_loop, editor_started, editor_task
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.keeping import Keeper
from flyball.orchestrate.lifecycle import stage_of
from flyball.orchestrate.machine import fold
from flyball.orchestrate.projections import loop_entity, normal_form
from flyball.orchestrate.recorded import load, send_signal
from flyball.orchestrate.state import State
from flyball.testing.bytes_journal import BytesJournal
from flyball.testing.clock import FakeClock
from flyball.testing.split import SplitDriver
from tests.orchestrate.models import Hanging, Script
from tests.orchestrate.scenarios import EDITOR, WORKER, add, pay
from tests.orchestrate.where import Where

PLAN = PROMPT.format(task="go", plan="a plan")


def architect(editor: Agent[Any, Any] = EDITOR, *answers: Any, **options: Any) -> Agent[Any, Any]:
    return Agent(Script(*(answers or ("a plan",))), name="planner", editor=editor, **options)


# What the editor is told


async def test_an_editor_goes_on_from_the_architects_answer(where: Where) -> None:
    loop_id = new_id()
    result = await where.run(architect(), "go", loop_id, metadata={"who": "me"})
    assert result.output == "a plan"
    assert result.editor is not None
    assert (result.editor.output, result.editor.error, result.editor.editor) == ("built", None, None)
    state = result.editor.state
    assert state.loop_id == editor_loop(loop_id) == f"{loop_id}-editor"
    assert (state.parent_loop_id, state.depth) == (loop_id, 1)
    assert state.metadata == {"who": "me", "role": "editor"}
    assert state.history[0] == user(PLAN)
    assert PLAN == "go\n\nThis is the architect's plan for it:\n\na plan\n\nCarry out the plan."
    events = await result.events()
    assert [type(event).__name__ for event in events][-2:] == ["ChildStarted", "Ended"]
    assert result.state.children == (state.loop_id,)


async def test_the_trace_goes_on(where: Where) -> None:
    loop_id, given = new_id(), Correlation(request_id="r", trace_id="t" * 32, task_id="task")
    result = await where.run(architect(), "go", loop_id, correlation=given)
    assert result.editor is not None
    ids = loop_correlation(result.editor.state)
    assert (ids.request_id, ids.trace_id, ids.task_id) == ("r", "t" * 32, "task")
    assert (ids.parent_span_id, ids.parent_loop_id) == (span_id_of(loop_id), loop_id)


class House(BaseModel):
    rooms: int


async def test_a_typed_plan_is_told_as_json(where: Where) -> None:
    planner = architect(EDITOR, '{"rooms": 3}', output=House, output_mode="native")
    result = await where.run(planner, "go", new_id())
    assert result.output == House(rooms=3)
    assert result.editor is not None
    assert '{"rooms": 3}' in result.editor.messages[0].text


async def test_what_looks_like_a_template_is_text(where: Where) -> None:
    result = await where.run(architect(EDITOR, "{plan} {0}"), "{task}", new_id())
    assert result.editor is not None
    assert result.editor.messages[0].text.startswith(
        "{task}\n\nThis is the architect's plan for it:\n\n{plan} {0}"
    )


async def test_an_editor_has_the_architects_dependencies(journal: Journal) -> None:
    @tool
    async def look(ctx: RunContext[str]) -> str:
        return ctx.deps

    editor = Agent(Script(call("look"), "built"), tools=[look], name="builder", deps_type=str)
    result = await architect(editor).run("go", journal=journal, deps="the plot")
    assert result.editor is not None
    assert result.editor.messages[2].tool_results[0].content == "the plot"


async def test_an_override_of_the_editor_holds(journal: Journal) -> None:
    editor = Agent(Script("built"), name="builder")
    planner = architect(editor)
    assert (await planner.run("go")).editor is not None
    with editor.override(model=Script("overridden")):
        result = await planner.run("go", journal=journal)
    assert result.editor is not None
    assert result.editor.output == "overridden"


async def test_editors_may_have_editors(where: Where) -> None:
    middle = Agent(Script("a better plan"), name="middle", editor=EDITOR)
    result = await where.run(architect(middle), "go", new_id())
    assert result.editor is not None
    assert result.editor.editor is not None
    assert (result.editor.output, result.editor.editor.output) == ("a better plan", "built")
    assert result.editor.editor.state.depth == 2
    async with where.stream(architect(middle), loop_id=new_id()) as stream:
        assert "".join([piece async for piece in stream.text()]) == "a plan"
    assert stream.result.editor is not None
    assert stream.result.editor.editor is not None
    assert stream.result.editor.editor.output == "built"


# Taken part in


async def test_a_stepped_architect_has_its_editor_carried_out_with_the_last_step(where: Where) -> None:
    planner = architect(EDITOR, call("add", {"x": 1, "y": 1}), "a plan", tools=[add])
    async with where.iter(planner, loop_id=new_id()) as run:
        assert (await run.next()) is not None
        assert not run.done
        step = await run.next()
        assert step is not None
        assert run.done
        assert run.result.editor is not None
        assert run.result.editor.output == "built"


@pytest.mark.parametrize("kind", ["text", "events"])
async def test_a_streamed_architect_has_its_editor_carried_out_at_the_end(where: Where, kind: str) -> None:
    async with where.stream(architect(), loop_id=new_id()) as stream:
        pieces: Any = stream.text() if kind == "text" else stream.events()
        assert [piece async for piece in pieces]
    assert stream.result.output == "a plan"
    assert stream.result.editor is not None
    assert stream.result.editor.output == "built"


# Failing


async def test_an_editor_that_fails_is_told_and_not_raised(where: Where) -> None:
    broken = Agent(Script(EngineError("down")), name="broken")
    result = await where.run(architect(broken), "go", new_id())
    assert (result.output, result.outcome) == ("a plan", Outcome.SUCCESS)
    assert result.editor is not None
    assert (result.editor.outcome, result.editor.output) == (Outcome.FAILED, None)
    assert isinstance(result.editor.error, EngineError)


async def test_an_editor_that_is_cancelled_is_told_and_not_raised(where: Where) -> None:
    model, loop_id = Hanging(), new_id()
    planner = architect(Agent(model, name="slow"))
    task = asyncio.create_task(where.run(planner, "go", loop_id))
    await model.place.entered.wait()
    with pytest.raises(SignalRefused, match="is complete and takes no cancel"):
        await send_signal(where.journal, loop_id, Signal(SignalType.CANCEL))
    assert await send_signal(where.journal, editor_loop(loop_id), Signal(SignalType.CANCEL))
    result = await task
    assert result.editor is not None
    assert isinstance(result.editor.error, CancelledSignal)


async def test_an_architect_that_fails_has_no_editor(where: Where) -> None:
    loop_id = new_id()
    with pytest.raises(EngineError) as caught:
        await where.run(architect(EDITOR, EngineError("down")), "go", loop_id)
    assert caught.value.partial.editor is None
    assert await where.journal.read(editor_loop(loop_id)) == []


async def test_an_editor_that_would_stand_too_deep_fails(where: Where) -> None:
    result = await where.run(architect(limits=Limits(max_depth=0)), "go", new_id())
    assert result.editor is not None
    assert isinstance(result.editor.error, DepthLimit)
    assert result.editor.error.details["allowed"] == 0


async def test_a_cancel_from_above_passes_through_an_architect_that_is_over(where: Where) -> None:
    """The root waits in a tool for an architect, which has answered, and whose editor is at work."""
    model, loop_id = Hanging(), new_id()
    planner = architect(Agent(model, name="slow"))

    @tool
    async def plan(ctx: RunContext[Any]) -> str:
        return (await planner.run("go", parent=ctx)).output

    root = Agent(Script(call("plan"), "done"), tools=[plan], name="boss")
    task = asyncio.create_task(where.run(root, "go", loop_id))
    await model.place.entered.wait()
    assert await send_signal(where.journal, loop_id, Signal(SignalType.CANCEL, text="enough"))
    with pytest.raises(CancelledSignal):
        await task
    _, state = await load(where.journal, loop_id)
    _, middle = await load(where.journal, state.children[0])
    _, low = await load(where.journal, middle.children[0])
    assert (middle.outcome, low.outcome, low.at) == (Outcome.SUCCESS, Outcome.CANCELLED, "done")
    assert model.place.cancelled == model.place.times


async def test_nobody_can_approve_what_an_editor_without_a_journal_would_do() -> None:
    editor = Agent(Script(call("pay", {"amount": 1})), tools=[pay], name="payer")
    with pytest.raises(UserError, match="'pay' needs approval"):
        await architect(editor).run("go")


async def test_nor_what_one_would_do_whose_architect_is_taken_step_by_step() -> None:
    editor = Agent(Script(call("pay", {"amount": 1})), tools=[pay], name="payer")
    async with architect(editor).iter("go") as run:
        with pytest.raises(UserError, match="'pay' needs approval"):
            await run.next()
    assert run.done, "the architect is"


# Gone on with


async def cut_off(journal: Journal, loop_id: str, length: int, editor: int) -> Journal:
    """A journal as a crash leaves it: some events of the architect's loop, and some of its editor's."""
    other = BytesJournal()
    await other.append(loop_id, (await journal.read(loop_id))[:length], 0)
    if editor:
        name = editor_loop(loop_id)
        await other.append(name, (await journal.read(name))[:editor], 0)
    return other


@pytest.mark.parametrize("driven", ["here", "split"])
async def test_wherever_an_architect_or_its_editor_is_cut_off_both_come_to_the_same_end(driven: str) -> None:
    whole = await architect().run("go", loop_id="house", journal=MemoryJournal())
    assert whole.editor is not None
    first, second = await whole.events(), await whole.editor.events()
    kinds = [type(event) for event in first]
    assert kinds[-2:] == [ChildStarted, Ended]
    # The editor's loop is there from ChildStarted on, perhaps; it goes on once the architect's has ended.
    points = [(length, 0) for length in range(1, len(first))] + [(len(first) - 1, 1)]
    points += [(len(first), length) for length in range(1, len(second) + 1)]
    for length, editor in points:
        journal = await cut_off(whole.journal, "house", length, editor)
        if driven == "here":
            result = await architect().resume("house", journal)
        else:
            result = await architect().run("go", loop_id="house", journal=journal, runtime=SplitDriver())
        assert result.editor is not None
        assert (result.output, result.editor.output) == ("a plan", "built"), (length, editor)
        assert normal_form(await result.events()) == normal_form(first), (length, editor)
        assert normal_form(await result.editor.events()) == normal_form(second), (length, editor)


async def test_a_replay_gives_the_editor_again(journal: Journal) -> None:
    loop_id = new_id()
    planner = architect(Agent(Script(EngineError("down")), name="broken"))
    await planner.run("go", journal=journal, loop_id=loop_id)
    again = await planner.replay(loop_id, journal)
    assert again.editor is not None
    assert isinstance(again.editor.error, EngineError)
    assert (await planner.clone(editor=None).replay(loop_id, journal)).editor is None


async def test_a_replay_of_an_architect_whose_editor_is_not_over_has_none(journal: Journal) -> None:
    loop_id, model = new_id(), Hanging()
    planner = architect(Agent(model, name="slow"))
    task = asyncio.create_task(planner.run("go", journal=journal, loop_id=loop_id))
    await model.place.entered.wait()
    task.cancel()
    await asyncio.wait([task])
    assert (await planner.replay(loop_id, journal)).editor is None
    model.place.let_go.set()
    result = await planner.resume(loop_id, journal)
    assert result.editor is not None
    assert result.editor.output == "done"


async def test_an_architects_loop_needs_an_agent_with_an_editor(journal: Journal) -> None:
    loop_id = new_id()
    started = Started(1.0, VERSION, loop_id, architect().spec, user("go"))
    await journal.append(loop_id, [started], 0)
    with pytest.raises(UserError, match="an editor"):
        await Agent(Script("a plan"), name="planner").resume(loop_id, journal)


async def test_a_fork_has_an_editor_of_its_own(journal: Journal) -> None:
    loop_id = new_id()
    await architect().run("go", journal=journal, loop_id=loop_id)
    forked = await architect().fork(loop_id, journal, turn=0, new_loop_id=f"{loop_id}-fork")
    assert forked.editor is not None
    assert forked.editor.loop_id == f"{loop_id}-fork-editor"


# Roles


def test_only_an_architect_has_an_editor() -> None:
    assert architect().spec.role == "architect"
    with pytest.raises(UserError, match="only an architect"):
        architect(role="reviewer")
    wrong: Any = "builder"
    with pytest.raises(UserError, match="takes an agent"):
        architect(wrong)
    with pytest.raises(UserError, match="takes text"):
        architect(role=5)


def test_an_editor_that_cannot_run_shows_before_the_architect_does() -> None:
    from flyball.core.errors import ConfigurationFailure

    with pytest.raises(ConfigurationFailure):
        architect(Agent("no such model", name="builder")).run_sync("go")


async def test_roles_and_stages(journal: Journal) -> None:
    loop_id = new_id()
    result = await architect().run("go", journal=journal, loop_id=loop_id)
    assert result.editor is not None
    assert (loop_entity(await result.events()).role, loop_entity(await result.editor.events()).role) == (
        "architect",
        "editor",
    )
    assert stage_of(fold((await result.events())[:1])) is Stage.ARCHITECTING
    assert stage_of(fold((await result.editor.events())[:1])) is Stage.EXECUTING
    told = await Agent(Script("hi"), role="architect").run("go", metadata={"role": "reviewer"})
    assert loop_entity(await told.events()).role == "reviewer", "the task's word comes first"
    named = await Agent(Script("hi"), name="architect", role="developer").run("go")
    assert loop_entity(await named.events()).role == "developer"
    assert stage_of(fold((await named.events())[:1])) is Stage.EXECUTING


def test_an_editors_agent_may_have_a_role_of_its_own() -> None:
    state = fold([Started(1.0, VERSION, "house", architect().spec, user("go"))])
    reviewer = EDITOR.clone(role="reviewer", limits=Limits(max_depth=None)).spec
    task = editor_task(state, reviewer)
    assert (task.role, task.model, task.task_id, task.max_depth) == ("reviewer", "test", "house", 8)
    task.validate()
    started = editor_started(state, reviewer, 2.0)
    assert (started.spec.limits.max_depth, started.metadata) == (8, {"role": "reviewer", "max_depth": 8})


# Where the loop's own side is kept apart


class Others:
    """Those whom a keeper asks: it is written down, and answered as the test has it."""

    def __init__(self) -> None:
        self.spawned: list[Started] = []
        self.cancelled: list[tuple[str, Signal]] = []
        self.dies = False

    async def spawn(self, started: Started) -> None:
        self.spawned.append(started)
        if self.dies:
            raise ConnectionError("gone")

    async def cancel(self, loop_id: str, signal: Signal) -> bool:
        self.cancelled.append((loop_id, signal))
        if self.dies:
            raise ConnectionError("gone")
        return True


async def answered(journal: Journal, agent: Agent[Any, Any], **options: Any) -> str:
    """A loop of an agent as it stands when the model has answered."""
    result = await agent.run("go", **options)
    events = [event for event in await result.events() if not isinstance(event, ChildStarted | Ended)]
    await journal.append(result.loop_id, events, 0)
    return result.loop_id


def kinds(events: list[Event]) -> list[str]:
    return [type(event).__name__ for event in events]


async def test_a_keeper_has_the_editor_begun_by_others_and_repeats_that_after_a_crash() -> None:
    journal, others, planner = BytesJournal(), Others(), architect()
    loop_id = await answered(journal, planner, metadata={"who": "me"})

    async def keep() -> None:
        standing = await _standing(journal, loop_id)
        keeper = Keeper(planner.bindings(), journal, *standing, spawn=others.spawn)
        await keeper.pump()

    others.dies = True
    with pytest.raises(ConnectionError):
        await keep()
    assert kinds(await journal.read(loop_id))[-1] == "ChildStarted"
    others.dies = False
    await keep()
    assert kinds(await journal.read(loop_id))[-2:] == ["ChildStarted", "Ended"]
    (first, again) = others.spawned
    assert replace(first, at=again.at) == again
    assert (first.spec.agent, first.loop_id) == ("builder", editor_loop(loop_id))
    assert first.prompt is not None
    assert first.prompt.text == PLAN
    assert (first.parent_loop_id, first.depth, first.metadata) == (
        loop_id,
        1,
        {"who": "me", "role": "editor"},
    )
    assert await journal.read(editor_loop(loop_id)) == [], "that is for others to begin"


async def test_a_keeper_that_has_nobody_to_ask_begins_the_editor_in_the_journal() -> None:
    journal, planner = BytesJournal(), architect()
    loop_id = await answered(journal, planner)
    keeper = Keeper(planner.bindings(), journal, *await _standing(journal, loop_id))
    await keeper.pump()
    assert kinds(await journal.read(loop_id))[-2:] == ["ChildStarted", "Ended"]
    assert kinds(await journal.read(editor_loop(loop_id))) == ["Started"]
    assert (await EDITOR.resume(editor_loop(loop_id), journal)).output == "built"


async def _standing(journal: Journal, loop_id: str) -> tuple[State, list[Event]]:
    events, state = await load(journal, loop_id)
    return state, events


async def test_a_keeper_cancels_children_by_others_and_repeats_that_after_a_crash() -> None:
    journal, others, clock = BytesJournal(), Others(), FakeClock()
    await journal.append("root", [Started(1.0, VERSION, "root", WORKER.spec, user("go"))], 0)
    await journal.append("root", [ChildStarted(1.0, "child"), ChildStarted(1.0, "not there")], 1)
    started = Started(1.0, VERSION, "child", WORKER.spec, user("go"), parent_loop_id="root", depth=1)
    await journal.append("child", [started], 0)
    await send_signal(journal, "root", Signal(SignalType.CANCEL, by="me"), clock)

    async def keep() -> None:
        standing = await _standing(journal, "root")
        keeper = Keeper(WORKER.bindings(), journal, *standing, cancel=others.cancel)
        await keeper.pump()

    others.dies = True
    with pytest.raises(ConnectionError):
        await keep()
    assert kinds(await journal.read("root"))[-1] == "SignalReceived"
    others.dies = False
    await keep()
    assert kinds(await journal.read("root"))[-1] == "Ended"
    expected = Signal(SignalType.CANCEL, "root/1/cancel", "parent", "cancelled by me")
    assert others.cancelled == [("child", expected)] * 2
