"""Loops under others: begun, cancelled with them, found again; no order of events leaves one running."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Any

import pytest

from flyball import Agent, Limits, MemoryJournal, RunContext, tool
from flyball.core.correlation import Correlation
from flyball.core.effects import End
from flyball.core.errors import (
    CancelledSignal,
    CancelledTimeout,
    DepthLimit,
    JournalConflict,
    UserError,
)
from flyball.core.events import (
    VERSION,
    ChildStarted,
    Ended,
    Event,
    ModelAnswered,
    Outcome,
    SignalReceived,
    Started,
)
from flyball.core.ids import new_id
from flyball.core.messages import assistant, user
from flyball.core.signals import Signal, SignalType
from flyball.core.spec import LoopSpec
from flyball.inference.answers import tool_call as call
from flyball.orchestrate.children import begin, cancel_by_journal, cancel_children
from flyball.orchestrate.correlation import correlate, span_id_of
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.lineage import passed_on
from flyball.orchestrate.machine import accepts, fold, owed
from flyball.orchestrate.recorded import send_signal
from flyball.orchestrate.state import State
from flyball.testing.clock import FakeClock
from flyball.testing.split import ROUGH, SplitDriver
from tests.orchestrate.conftest import Runner
from tests.orchestrate.driven import Driven
from tests.orchestrate.models import Hanging, Place, Script
from tests.orchestrate.scenarios import WORKER, delegate
from tests.orchestrate.where import Where

CANCEL = Signal(SignalType.CANCEL, id="enough", by="me", text="enough")


async def loop(journal: Journal, loop_id: str) -> State:
    return fold(await journal.read(loop_id))


async def only_child(journal: Journal, loop_id: str) -> State:
    (child,) = (await loop(journal, loop_id)).children
    return await loop(journal, child)


def asking(other: Agent[Any, Any], **options: Any) -> Any:
    """A tool that has another agent answer."""

    @tool
    async def ask(ctx: RunContext[Any]) -> str:
        return (await other.run("And you?", parent=ctx, **options)).output

    return ask


# What a child has from its parent


async def test_a_child_knows_its_parent_and_its_parent_knows_it(where: Where) -> None:
    root = new_id()
    agent = Agent(Script(call("delegate", {"task": "add"}), "done"), tools=[delegate], name="boss")
    result = await where.run(agent, "go", root, metadata={"who": "me", "role": "architect"})
    child = await only_child(result.journal, root)
    assert result.output == "done"
    assert (child.parent_loop_id, child.depth, child.outcome) == (root, 1, Outcome.SUCCESS)
    assert child.metadata == {"who": "me"}, "the role is the parent's own"
    recorded = [event for event in await result.events() if isinstance(event, ChildStarted)]
    assert [(event.loop_id, event.agent) for event in recorded] == [(child.loop_id, "worker")]


async def test_the_trace_goes_on_under_the_call_that_began_it(where: Where) -> None:
    root = new_id()
    agent = Agent(Script(call("delegate", {"task": "add"}), "done"), tools=[delegate], name="boss")
    given = Correlation(request_id="r", session_id="s", trace_id="t" * 32, task_id="task")
    result = await where.run(agent, "go", root, correlation=given)
    child = await only_child(result.journal, root)
    ids = [found for found, _ in correlate(await result.journal.read(child.loop_id))]
    assert {(found.request_id, found.session_id, found.trace_id) for found in ids} == {("r", "s", "t" * 32)}
    assert ids[0].parent_span_id == span_id_of(f"{root}/1/1/execute/0")
    assert (ids[0].caused_by, ids[0].parent_loop_id, ids[0].task_id) == ("call_1", root, "task")


async def test_what_is_given_to_a_child_is_its_own(where: Where) -> None:
    root = new_id()
    ids = Correlation(request_id="other")
    other = asking(WORKER, metadata={"mine": 1}, loop_id="chosen", correlation=ids)
    agent = Agent(Script(call("ask"), "done"), tools=[other], name="boss")
    result = await where.run(agent, "go", root, metadata={"who": "me"})
    child = await only_child(result.journal, root)
    assert (child.loop_id, child.metadata, child.correlation) == ("chosen", {"mine": 1}, ids)


def test_a_role_that_is_the_users_own_word_is_passed_on() -> None:
    assert passed_on({"role": "admin", "context_request_id": "c"}) == {"role": "admin"}
    assert passed_on({"role": "editor"}) is None
    assert passed_on(None) is None


async def test_children_that_are_alike_are_told_apart(where: Where) -> None:
    root = new_id()

    @tool
    async def vote(ctx: RunContext[Any]) -> str:
        votes = await asyncio.gather(*[WORKER.run("add", parent=ctx) for _ in range(3)])
        return " ".join([result.output for result in votes])

    agent = Agent(Script(call("vote"), "done"), tools=[vote], name="boss")
    result = await where.run(agent, "go", root)
    assert result.messages[2].tool_results[0].content == "four four four"
    assert len(set((await loop(result.journal, root)).children)) == 3


async def test_prompt_functions_and_validators_may_begin_children_too(where: Where) -> None:
    root = new_id()

    async def instructions(ctx: RunContext[Any]) -> str:
        return (await WORKER.run("how?", parent=ctx)).output

    async def checked(ctx: RunContext[Any], output: str) -> str:
        return output + (await WORKER.run("good?", parent=ctx)).output

    agent = Agent(Script("five"), instructions=instructions, validators=[checked], name="boss")
    result = await where.run(agent, "go", root)
    assert (result.messages[0].text, result.output) == ("four", "fivefour")
    assert len((await loop(result.journal, root)).children) == 2


async def test_a_journal_of_its_own_is_the_childs_own(where: Where) -> None:
    root = new_id()
    apart = MemoryJournal()
    agent = Agent(Script(call("ask"), "done"), tools=[asking(WORKER, journal=apart)], name="boss")
    result = await where.run(agent, "go", root)
    assert (await loop(result.journal, root)).children == ()
    (child,) = await apart.loops()
    assert (await loop(apart, child)).parent_loop_id == root


async def test_a_parent_is_a_context() -> None:
    wrong: Any = "root"
    with pytest.raises(UserError, match="takes the RunContext"):
        await WORKER.run("go", parent=wrong)


async def test_a_streamed_child_is_a_child(where: Where) -> None:
    root = new_id()

    @tool
    async def ask(ctx: RunContext[Any]) -> str:
        async with WORKER.run_stream("go", parent=ctx) as stream:
            shown = "".join([piece async for piece in stream.text()])
            assert shown in ("four", ""), "nothing is shown of one that was over when the tool was run again"
            return stream.result.output

    agent = Agent(Script(call("ask"), "done"), tools=[ask], name="boss")
    result = await where.run(agent, "go", root)
    assert result.messages[2].tool_results[0].content == "four"
    assert (await only_child(result.journal, root)).at == "done"


# Found again


async def test_a_tool_that_runs_again_goes_on_with_the_child_that_it_had_begun(journal: Journal) -> None:
    """The process dies while the child's second model call is under way."""
    place = Place()

    class Slow(Script):
        async def infer(self, request: Any) -> Any:
            if self.calls:
                await place.hang()
            return await super().infer(request)

    slow = Slow(call("delegate", {"task": "add"}), "child done")
    middle = Agent(slow, tools=[delegate], name="middle")
    agent = Agent(Script(call("ask"), "done"), tools=[asking(middle)], name="boss")
    task = asyncio.create_task(agent.run("go", journal=journal, loop_id="again"))
    await place.entered.wait()
    task.cancel()
    await asyncio.wait([task])
    (middle_id,) = (await loop(journal, "again")).children
    place.let_go.set()
    result = await agent.resume("again", journal)
    assert result.output == "done"
    state = await loop(journal, "again")
    assert state.children == (middle_id,)
    assert len((await loop(journal, middle_id)).children) == 1
    assert slow.calls == 2, "what the child had done is not done again"


async def test_a_loop_that_is_there_is_joined_and_its_parent_told(journal: Journal) -> None:
    first = await WORKER.run("And you?", journal=journal, loop_id="known")
    agent = Agent(Script(call("ask"), "done"), tools=[asking(WORKER, loop_id="known")], name="boss")
    await agent.run("go", journal=journal, loop_id="joining")
    assert (await loop(journal, "joining")).children == ("known",)
    assert await journal.read("known") == await first.events()


# Depth


async def test_a_loop_that_stands_too_deep_fails_as_it_begins(where: Where) -> None:
    low = Agent(Script("never"), name="low", limits=Limits(max_depth=1))
    middle = Agent(Script(call("ask"), "middle done"), tools=[asking(low)], name="middle")
    agent = Agent(Script(call("ask"), "done"), tools=[asking(middle)], name="boss")
    result = await where.run(agent, "go", "deep")
    journal = result.journal
    child = await only_child(journal, "deep")
    assert "max_depth is 1" in child.history[2].tool_results[0].text
    lowest = await only_child(journal, child.loop_id)
    assert lowest.error is not None
    assert (lowest.error.code, lowest.depth) == (DepthLimit.code, 2)
    assert lowest.error.details == {"limit": "max_depth", "allowed": 1, "depth": 2}
    kinds = [type(event).__name__ for event in await journal.read(lowest.loop_id)]
    assert kinds == ["Started", "Ended"]


@pytest.mark.parametrize(("above", "below", "holds"), [(1, 8, 1), (None, 3, 3), (2, None, 2), (5, 4, 4)])
async def test_the_tightest_limit_on_the_way_down_holds(
    run: Runner, above: int | None, below: int | None, holds: int
) -> None:
    other = Agent(Script("four"), name="other", limits=Limits(max_depth=below))
    agent = Agent(
        Script(call("ask"), "done"), tools=[asking(other)], name="boss", limits=Limits(max_depth=above)
    )
    result = await run(agent, "go")
    assert (await only_child(result.journal, result.loop_id)).spec.limits.max_depth == holds


async def test_a_loop_that_was_too_deep_is_so_again(journal: Journal) -> None:
    started = Started(1.0, VERSION, "low", WORKER.spec, user("go"), depth=9)
    await journal.append("low", [started], 0)
    with pytest.raises(DepthLimit):
        await WORKER.resume("low", journal)
    assert await send_signal(journal, "low", Signal(SignalType.RETRY))
    with pytest.raises(DepthLimit, match="depth 9"):
        await WORKER.resume("low", journal)


async def test_a_fork_of_a_child_stands_by_itself(journal: Journal) -> None:
    agent = Agent(Script(call("delegate", {"task": "add"}), "done"), tools=[delegate], name="boss")
    await agent.run("go", journal=journal, loop_id="forked-from")
    child = await only_child(journal, "forked-from")
    forked = await WORKER.fork(child.loop_id, journal, turn=1, new_loop_id="forked-child")
    assert (forked.state.parent_loop_id, forked.state.depth) == ("", 0)
    again = await agent.fork("forked-from", journal, turn=1, new_loop_id="forked-parent")
    assert again.state.children == (), "they are the other loop's"


# A cancel goes on to the children


async def three_deep(where: Where, **options: Any) -> tuple[Driven, Hanging]:
    """A run whose child's child hangs in its model call."""
    model = Hanging()
    low = Agent(model, name="low")
    middle = Agent(Script(call("ask"), "middle done"), tools=[asking(low)], name="middle")
    agent = Agent(Script(call("ask"), "done"), tools=[asking(middle)], name="boss")
    driven = Driven("journal", where)
    await driven.start(agent, **options)
    await model.place.entered.wait()
    return driven, model


async def check_cancelled(journal: Journal, loop_id: str, why: str, besides: str = "") -> None:
    """All three are over, the lower two because of the one above, or as `besides` says."""
    for depth in range(3):
        state = await loop(journal, loop_id)
        assert (state.at, state.outcome, state.depth) == ("done", Outcome.CANCELLED, depth)
        assert state.error is not None
        told = state.error.message.removeprefix("cancelled by parent: ").removeprefix("cancelled by parent: ")
        if not besides or not depth or told != besides:
            assert state.error.message == "cancelled by parent: " * depth + why
        ended = [event for event in await journal.read(loop_id) if isinstance(event, Ended)]
        assert len(ended) == 1
        if depth < 2:
            (loop_id,) = state.children


async def test_a_cancel_reaches_children_and_theirs(where: Where) -> None:
    driven, model = await three_deep(where)
    assert await send_signal(where.journal, driven.loop_id, CANCEL)
    with pytest.raises(CancelledSignal):
        await driven.end()
    await check_cancelled(where.journal, driven.loop_id, "cancelled by me: enough")
    assert model.place.cancelled == model.place.times


async def test_a_time_out_reaches_children_and_theirs(where: Where) -> None:
    clock = FakeClock()
    driven, model = await three_deep(where, timeout=60, clock=clock)
    await clock.advance(60)
    with pytest.raises(CancelledTimeout):
        await driven.end()
    # Their time passes at the same moment: each notices that itself, or is told by the one above.
    await check_cancelled(
        where.journal,
        driven.loop_id,
        "the run's time-out of 60 s passed",
        "the time of the run that it was begun from passed",
    )
    assert model.place.cancelled == model.place.times


async def test_a_child_that_nobody_waits_for_is_cancelled_too(where: Where) -> None:
    """It is driven by a task of its own; its parent has gone on without it."""
    low, model, tasks = Hanging(), Hanging(), set[asyncio.Task[Any]]()

    @tool
    async def begin_one(ctx: RunContext[Any]) -> str:
        if not tasks:
            tasks.add(asyncio.create_task(Agent(low, name="low").run("go", parent=ctx)))
        await low.place.entered.wait()
        return "begun"

    class Then(Script):
        async def infer(self, request: Any) -> Any:
            if len(request.messages) == 1:
                return await super().infer(request)
            return await model.infer(request)

    driven = Driven("journal", where)
    await driven.start(Agent(Then(call("begin_one")), tools=[begin_one], name="boss"))
    await driven.reach(model.place)
    assert await send_signal(where.journal, driven.loop_id, CANCEL)
    with pytest.raises(CancelledSignal):
        await driven.end()
    with pytest.raises(CancelledSignal, match="by parent: cancelled by me: enough"):
        await tasks.pop()
    assert low.place.cancelled == low.place.times


async def test_a_child_that_is_over_keeps_its_outcome(where: Where) -> None:
    model = Hanging()

    class Then(Script):
        async def infer(self, request: Any) -> Any:
            return await (super().infer(request) if len(request.messages) == 1 else model.infer(request))

    driven = Driven("journal", where)
    agent = Agent(Then(call("delegate", {"task": "add"})), tools=[delegate], name="boss")
    await driven.start(agent)
    await driven.reach(model.place)
    assert await send_signal(where.journal, driven.loop_id, CANCEL)
    with pytest.raises(CancelledSignal):
        await driven.end()
    assert (await only_child(where.journal, driven.loop_id)).outcome is Outcome.SUCCESS


async def test_a_failure_leaves_children_alone(journal: Journal) -> None:
    """Only a cancel goes on: a child may well be of use to somebody else."""
    await journal.append("failing", [Started(1.0, VERSION, "failing", LoopSpec(), user("go"))], 0)
    started = Started(1.0, VERSION, "kept", WORKER.spec, user("go"), parent_loop_id="failing", depth=1)
    await begin(journal, started, FakeClock())
    with pytest.raises(Exception, match="down"):
        await Agent(Script(OSError("down")), name="agent").resume("failing", journal)
    assert (await WORKER.resume("kept", journal)).output == "four"


async def test_what_must_happen_at_a_childs_end_is_left_to_who_can_do_it(journal: Journal) -> None:
    """A cancel from above closes a child as far as that takes no code; a delivery waits for a resume."""
    delivered: list[Outcome] = []

    async def deliver(_: RunContext[Any], outcome: Outcome, output: Any) -> None:
        delivered.append(outcome)

    model = Hanging()
    low = Agent(model, name="low", deliveries=[deliver])
    agent = Agent(Script(call("ask"), "done"), tools=[asking(low)], name="boss")
    task = asyncio.create_task(agent.run("go", journal=journal, loop_id="delivering"))
    await model.place.entered.wait()
    await send_signal(journal, "delivering", CANCEL)
    with pytest.raises(CancelledSignal):
        await task
    child = await only_child(journal, "delivering")
    assert (child.at, child.outcome, delivered) == ("deliver", Outcome.CANCELLED, [])
    with pytest.raises(CancelledSignal):
        await low.resume(child.loop_id, journal)
    assert delivered == [Outcome.CANCELLED]


async def test_a_loop_of_the_same_name_that_is_no_child_is_left_alone(journal: Journal) -> None:
    model = Hanging()
    theirs = asyncio.create_task(Agent(model, name="low").run("go", journal=journal, loop_id="theirs"))
    await model.place.entered.wait()
    await journal.append("mine", [Started(1.0, VERSION, "mine", LoopSpec(), user("go"))], 0)
    await journal.append("mine", [ChildStarted(1.0, "theirs")], 1)
    await send_signal(journal, "mine", CANCEL)
    with pytest.raises(CancelledSignal):
        await Agent(Script("never"), name="agent").resume("mine", journal)
    model.place.let_go.set()
    assert (await theirs).output == "done"


# Whatever comes first


async def test_what_is_begun_under_a_cancelled_loop_is_cancelled_as_it_begins(journal: Journal) -> None:
    clock = FakeClock()
    await journal.append("over", [Started(1.0, VERSION, "over", LoopSpec(), user("go"))], 0)
    await send_signal(journal, "over", CANCEL)
    started = Started(1.0, VERSION, "late", WORKER.spec, user("go"), parent_loop_id="over", depth=1)
    state, length = await begin(journal, started, clock)
    assert (length, state.outcome) == (2, Outcome.CANCELLED)
    assert state == await loop(journal, "late")
    assert (await loop(journal, "over")).children == ()
    with pytest.raises(CancelledSignal):
        await WORKER.run("go", journal=journal, loop_id="late")


async def test_a_child_whose_beginning_was_broken_off_hears_of_the_cancel_when_it_is_resumed(
    journal: Journal,
) -> None:
    """Its first event was written, and its process died before it looked at the parent again."""
    await journal.append("above", [Started(1.0, VERSION, "above", LoopSpec(), user("go"))], 0)
    await journal.append("above", [ChildStarted(1.0, "below"), SignalReceived(1.0, CANCEL)], 1)
    started = Started(1.0, VERSION, "below", WORKER.spec, user("go"), parent_loop_id="above", depth=1)
    await journal.append("below", [started], 0)
    with pytest.raises(CancelledSignal, match="by parent"):
        await WORKER.resume("below", journal)
    assert await send_signal(journal, "below", Signal(SignalType.RETRY))
    assert (await WORKER.resume("below", journal)).output == "four", "who tries it again has decided that"


async def test_a_child_whose_parent_is_elsewhere_or_knows_nothing_of_it_is_resumed(journal: Journal) -> None:
    for name, above in (("lost", "nowhere"), ("unknown", "stranger")):
        started = Started(1.0, VERSION, name, WORKER.spec, user("go"), parent_loop_id=above, depth=1)
        await journal.append(name, [started], 0)
    stranger = Started(1.0, VERSION, "stranger", LoopSpec(), user("go"))
    await journal.append("stranger", [stranger, SignalReceived(1.0, CANCEL)], 0)
    for name in ("lost", "unknown"):
        assert (await WORKER.resume(name, journal)).output == "four"


async def test_loops_that_stand_in_a_circle_are_no_trap(journal: Journal) -> None:
    """Nobody begins such; but a task from outside may say what it likes."""
    pairs = (("round", "about"), ("about", "round"))
    for name, above in pairs:
        started = Started(1.0, VERSION, name, WORKER.spec, user("go"), parent_loop_id=above, depth=1)
        answered = ModelAnswered(1.0, 1, assistant("four"))
        await journal.append(name, [started, ChildStarted(1.0, above), answered], 0)
    started = Started(1.0, VERSION, "inside", WORKER.spec, user("go"), parent_loop_id="round", depth=1)
    state, _ = await begin(journal, started, FakeClock())
    assert state.outcome is None
    root = Started(1.0, VERSION, "top", LoopSpec(), user("go"))
    await journal.append("top", [root, ChildStarted(1.0, "top-low")], 0)
    low = Started(1.0, VERSION, "top-low", WORKER.spec, user("go"), parent_loop_id="top", depth=1)
    await journal.append("top-low", [low, ChildStarted(1.0, "top"), ModelAnswered(1.0, 1, assistant("4"))], 0)
    await send_signal(journal, "top", CANCEL)
    await cancel_children(journal, await loop(journal, "top"), cancel_by_journal(journal, FakeClock()))
    assert (await loop(journal, "top-low")).outcome is Outcome.SUCCESS


async def test_a_retry_of_the_parent_may_cancel_again(journal: Journal) -> None:
    """The second cancel is another one: its id is of another attempt."""
    clock = FakeClock()
    await journal.append("twice", [Started(1.0, VERSION, "twice", LoopSpec(), user("go"))], 0)
    started = Started(1.0, VERSION, "twice-low", WORKER.spec, user("go"), parent_loop_id="twice", depth=1)
    await begin(journal, started, clock)
    for attempt in (1, 2):
        await send_signal(journal, "twice", Signal(SignalType.CANCEL))
        state = await loop(journal, "twice")
        await cancel_children(journal, state, cancel_by_journal(journal, clock))
        assert (await loop(journal, "twice-low")).outcome is Outcome.CANCELLED
        end = Ended(1.0, Outcome.CANCELLED, state.error)
        await journal.append("twice", [end], len(await journal.read("twice")))
        if attempt == 1:
            for loop_id in ("twice", "twice-low"):
                assert await send_signal(journal, loop_id, Signal(SignalType.RETRY))


class Died(Exception):  # noqa: N818 - it is a mishap of the simulation
    """A process died here."""


class Interleaved:
    """A journal whose users take turns as chance has it, and may die before or after each operation.

    One goes on for a while before it is another's turn: what is looked for is one that has stopped between
    two steps while another comes to its end.
    """

    def __init__(self, seed: int) -> None:
        self.inner = MemoryJournal()
        self._random = Random(seed)
        self._waiting: dict[asyncio.Task[Any], asyncio.Future[bool]] = {}
        self._lives = 3

    async def _turn(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._waiting[task] = turn = asyncio.get_running_loop().create_future()
        if await turn:
            raise Died

    async def append(self, loop_id: str, events: Sequence[Event], expected: int) -> int:
        await self._turn()
        length = await self.inner.append(loop_id, events, expected)
        await self._turn()
        return length

    async def read(self, loop_id: str, start: int = 0) -> list[Event]:
        await self._turn()
        return await self.inner.read(loop_id, start)

    async def wait(self, loop_id: str, length: int, timeout: float | None = None) -> bool:  # noqa: ASYNC109
        return await self.inner.wait(loop_id, length, timeout)

    async def loops(self, before: str = "", limit: int | None = None) -> list[str]:
        return await self.inner.loops(before, limit)

    async def sizes(self, loop_ids: Sequence[str]) -> list[int]:
        return await self.inner.sizes(loop_ids)

    async def play(self, *works: Callable[[], Awaitable[None]]) -> None:
        """Have all of this done, each by the next process if one dies of it."""
        tasks = [asyncio.create_task(_persistent(work)) for work in works]
        current = self._random.choice(tasks)
        while not all(task.done() for task in tasks):
            await asyncio.sleep(0)
            if current.done() or self._random.random() < 0.15:
                current = self._random.choice(tasks)
            turn = self._waiting.pop(current, None)
            if turn is not None:
                dies = self._lives > 0 and self._random.random() < 0.05
                self._lives -= dies
                turn.set_result(dies)
        for task in tasks:
            task.result()


async def _persistent(work: Callable[[], Awaitable[None]]) -> None:
    while True:
        try:
            return await work()
        except Died:
            continue


async def brought_to_its_end(journal: Journal, loop_id: str) -> None:
    """What a driver does with a loop whose outcome is decided, until that is written."""
    clock = FakeClock()
    while (state := await loop(journal, loop_id)).at != "done":
        (effect,) = owed(state)
        assert isinstance(effect, End)
        if effect.cancels:
            await cancel_children(journal, state, cancel_by_journal(journal, clock))
        await offer(journal, loop_id, Ended(1.0, effect.outcome, effect.error))


async def offer(journal: Journal, loop_id: str, event: Event) -> None:
    """Append an event if it fits, whoever else appends."""
    while accepts(fold(events := await journal.read(loop_id)), event):
        try:
            await journal.append(loop_id, [event], len(events))
        except JournalConflict:
            continue
        return


def orders(function: Any) -> Any:
    """In many orders, with some deaths in each."""
    return pytest.mark.seeded(pytest.mark.parametrize("part", range(4))(function))


async def under_way(journal: Journal, name: str, above: str, depth: int) -> None:
    started = Started(1.0, VERSION, name, LoopSpec(), user("go"), parent_loop_id=above, depth=depth)
    try:
        await begin(journal, started, FakeClock())
    except JournalConflict:
        return


async def cancelled(journal: Journal, loop_id: str) -> None:
    await send_signal(journal, loop_id, CANCEL)
    await brought_to_its_end(journal, loop_id)


@orders
async def test_no_order_of_events_leaves_a_child_running_under_a_loop_that_was_cancelled(part: int) -> None:
    for seed in range(part * 250, part * 250 + 250):
        journal = Interleaved(seed)
        await journal.inner.append("root", [Started(1.0, VERSION, "root", LoopSpec(), user("go"))], 0)
        await journal.play(
            lambda: cancelled(journal, "root"),  # noqa: B023 - it is played here
            lambda: under_way(journal, "child", "root", 1),  # noqa: B023
        )
        state = await loop(journal.inner, "child")
        assert state.outcome is Outcome.CANCELLED, seed
        assert (await loop(journal.inner, "root")).children in ((), ("child",))


@orders
async def test_no_order_of_events_leaves_a_loop_running_below_one_that_ended_well(part: int) -> None:
    """As an architect does, whose editor goes on: a cancel from above passes through it."""
    answered = ModelAnswered(1.0, 1, assistant("a plan"))
    for seed in range(part * 250, part * 250 + 250):
        journal = Interleaved(seed)
        await journal.inner.append("root", [Started(1.0, VERSION, "root", LoopSpec(), user("go"))], 0)
        await under_way(journal.inner, "child", "root", 1)

        async def child(journal: Interleaved = journal) -> None:
            await offer(journal, "child", answered)
            if (await loop(journal, "child")).outcome is Outcome.SUCCESS:
                await under_way(journal, "grandchild", "child", 2)
            await brought_to_its_end(journal, "child")

        await journal.play(lambda: cancelled(journal, "root"), child)  # noqa: B023 - it is played here
        above = await loop(journal.inner, "child")
        assert above.at == "done", seed
        if above.outcome is Outcome.SUCCESS:
            assert (await loop(journal.inner, "grandchild")).outcome is Outcome.CANCELLED, seed


@pytest.mark.seeded
@pytest.mark.parametrize("seed", range(20))
async def test_in_a_rough_world_every_loop_under_a_cancelled_one_is_over(seed: int) -> None:
    driver = SplitDriver(seed, ROUGH)
    where = Where("rough", driver.journal, driver)
    driven, _ = await three_deep(where)
    assert await send_signal(where.journal, driven.loop_id, CANCEL)
    with pytest.raises(CancelledSignal):
        await driven.end()
    await check_cancelled(where.journal, driven.loop_id, "cancelled by me: enough")
