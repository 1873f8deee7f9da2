"""Plans as users run them: chaining, branches, limits, failures, and going on after a crash."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from flyball import Agent, AgentStep, MemoryJournal, Message, Outcome, RetryPolicy, Text, send_signal, tool
from flyball.core.errors import (
    CancelledSignal,
    CancelledTimeout,
    ContextExceeded,
    EngineError,
    FlyballError,
    JournalFailure,
    LoopMismatch,
    LoopNotFound,
    PlanRejected,
    RuleFailed,
    StepFailed,
    StepMismatch,
    ToolExecutionFailed,
    UserError,
)
from flyball.core.events import StepEnded
from flyball.core.messages import Role
from flyball.inference.answers import tool_call as call
from flyball.inference.scripted import FunctionEngine
from flyball.orchestrate.flow.doing import StepContext
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.plan import (
    INFER,
    ExecutionPlan,
    PlanBranch,
    PlanExecutor,
    PlanParallel,
    PlanPolicy,
    PlanResult,
    PlanStep,
    PlanTrace,
)
from flyball.orchestrate.plan.handlers import agent_handler, infer_handler, pattern_handler
from flyball.orchestrate.projections import normal_form
from flyball.orchestrate.recorded import calls_waiting, load_any
from flyball.testing import FakeClock
from tests.orchestrate.dying import Dying
from tests.orchestrate.models import Script
from tests.orchestrate.where import Where


def shout(step: PlanStep) -> str:
    return step.input_as(str).upper()


async def count(step: PlanStep) -> PlanStep:
    await asyncio.sleep(0)
    return step.gives(len(step.input))


def is_short(step: PlanStep) -> bool:
    return len(step.input) < 6


HANDLERS: dict[str, Any] = {"shout": shout, "count": count, "short": is_short}


def plan(*steps: Any, trace: PlanTrace | None = None) -> ExecutionPlan:
    return ExecutionPlan(steps, trace)


async def test_a_step_takes_what_the_one_before_gave_unless_it_has_an_input_of_its_own() -> None:
    result = await PlanExecutor(HANDLERS).execute(
        plan(PlanStep("a", "shout", "hi"), PlanStep("b", "shout"), PlanStep("c", "count", [1, 2, 3])),
    )
    assert [(step.name, step.type, step.output) for step in result.steps] == [
        ("a", "shout", "HI"),
        ("b", "shout", "HI"),
        ("c", "count", 3),
    ]
    assert (result.output, result["a"], result.outcome) == (3, "HI", Outcome.SUCCESS)
    with pytest.raises(KeyError):
        result["d"]


async def test_the_first_step_takes_what_the_plan_is_given() -> None:
    executor = PlanExecutor(HANDLERS)
    assert (await executor.execute(plan(PlanStep("a", "shout")), "hi")).output == "HI"
    with pytest.raises(StepMismatch, match="expected string input, got none") as caught:
        await executor.execute(plan(PlanStep("a", "shout")))
    assert caught.value.details["expected"] == "string"


async def test_a_wrong_input_names_both_types_and_leaves_what_was_done() -> None:
    with pytest.raises(StepMismatch, match=r"step 'c' \(1\): expected string input, got int") as caught:
        await PlanExecutor(HANDLERS).execute(plan(PlanStep("a", "count", "abc"), PlanStep("c", "shout")))
    reached = caught.value.partial
    assert isinstance(reached, PlanResult)
    assert [(step.name, step.output) for step in reached.steps] == [("a", 3)]
    assert reached.outcome is Outcome.FAILED


async def test_branches_and_parallel_steps() -> None:
    branching = plan(
        PlanStep("a", "shout"),
        PlanBranch(
            PlanStep("is it short", "short"),
            (PlanParallel((PlanStep("n", "count"), PlanStep("m", "shout")), concurrency=1),),
            (PlanStep("only n", "count"),),
        ),
    )
    executor = PlanExecutor(HANDLERS)
    assert (await executor.execute(branching, "hi")).output == [2, "HI"]
    longer = await executor.execute(branching, "hello you")
    assert (longer.output, [step.name for step in longer.steps]) == (9, ["a", "is it short", "only n"])


@pytest.mark.parametrize(
    ("policy", "wanted", "limit"),
    [
        (PlanPolicy(max_steps=1), plan(PlanStep("a", "shout"), PlanStep("b", "shout")), "max_steps"),
        (PlanPolicy(allowed_step_types=("count",)), plan(PlanStep("a", "shout")), "allowed_step_types"),
        (PlanPolicy(require_linear=True), plan(PlanParallel((PlanStep("a", "shout"),))), "require_linear"),
        (PlanPolicy(), plan(PlanStep("a", "sing")), "handlers"),
        (PlanPolicy(), plan(PlanStep("a", "pipeline")), "handlers"),
        (PlanPolicy(), plan(), "empty"),
        (PlanPolicy(), plan(PlanParallel(())), "parallel"),
        (PlanPolicy(), plan(PlanStep("a", "shout", retries=-1)), "step"),
        (PlanPolicy(), plan(PlanStep("a", "shout", retries=RetryPolicy(11))), "max_retries"),
        (PlanPolicy(), plan(PlanStep("a", "shout", retries=RetryPolicy(1, retry_if=bool))), "retries"),
        (PlanPolicy(), plan(PlanStep("a", "shout", timeout=0.0)), "step"),
        (PlanPolicy(), plan(PlanParallel((PlanStep("a", "shout"),), concurrency=0)), "parallel"),
        (PlanPolicy(), plan(PlanStep("a", "shout", object())), "input"),
    ],
)
async def test_a_plan_that_may_not_be_is_refused_before_anything_runs(
    policy: PlanPolicy, wanted: ExecutionPlan, limit: str
) -> None:
    ran: list[str] = []
    journal = MemoryJournal()
    executor = PlanExecutor({"shout": lambda step: ran.append(step.name)}, policy=policy)
    with pytest.raises(PlanRejected) as caught:
        await executor.execute(wanted, "go", journal=journal)
    assert (caught.value.code, caught.value.details["limit"]) == ("ORCHESTRATION_PLAN_REJECTED", limit)
    assert not ran
    assert not await journal.loops()


def test_wrong_policies_and_handlers() -> None:
    with pytest.raises(UserError, match="max_steps should be more than 0"):
        PlanPolicy(max_steps=0)
    wrong: Any = 3
    with pytest.raises(UserError, match="the handler of 'x' is a function"):
        PlanExecutor({"x": wrong})
    with pytest.raises(UserError, match="handlers by the type of step"):
        PlanExecutor(wrong)
    with pytest.raises(UserError, match="retries= takes a number from 0"):
        PlanExecutor({}, retries=wrong - 4)


async def test_something_that_is_no_plan() -> None:
    wrong: Any = [PlanStep("a", "shout")]
    with pytest.raises(UserError, match="runs an ExecutionPlan"):
        await PlanExecutor(HANDLERS).execute(wrong)


# Failures


@pytest.mark.parametrize(
    ("error", "own", "tries"),
    [
        (RuleFailed("no"), None, 2),
        (RuleFailed("no", retryable=False), None, 1),
        (ToolExecutionFailed("no", retryable=True), None, 2),
        (ToolExecutionFailed("no"), None, 1),
        (ToolExecutionFailed("no"), 2, 3),
        (EngineError("no"), None, 1),
        (EngineError("no"), 2, 3),
        (UserError("no"), 2, 1),
        (ValueError("no"), 1, 2),
    ],
)
async def test_how_often_a_step_is_tried(error: Exception, own: int | None, tries: int) -> None:
    """By itself after what the matrix has plans recover from; if the step says so, after any failure."""
    tried: list[str] = []

    def fails(step: PlanStep) -> None:
        tried.append(step.name)
        raise error

    with pytest.raises((type(error), StepFailed), match="no"):
        await PlanExecutor({"fails": fails}).execute(plan(PlanStep("a", "fails", retries=own)))
    assert len(tried) == tries


def some(error: Exception) -> bool:
    return isinstance(error, ValueError)


@pytest.mark.parametrize(
    ("error", "own", "custom", "tries"),
    [
        (EngineError("no"), None, RetryPolicy(2), 3),
        (EngineError("no"), RetryPolicy(1), RetryPolicy(2), 2),
        (EngineError("no"), RetryPolicy(1, backoff=0.001), 5, 2),
        (ContextExceeded("no"), RetryPolicy(2), 5, 1),
        (ValueError("no"), RetryPolicy(2), 5, 3),
        (ValueError("no"), None, RetryPolicy(2, retry_if=some), 3),
        (EngineError("no"), None, RetryPolicy(2, retry_if=some), 1),
        (EngineError("no"), 1, RetryPolicy(2, retry_if=some), 2),
    ],
)
async def test_how_often_a_step_is_tried_by_a_policy(
    error: Exception, own: Any, custom: Any, tries: int
) -> None:
    tried: list[str] = []

    def fails(step: PlanStep) -> None:
        tried.append(step.name)
        raise error

    journal = MemoryJournal()
    executor = PlanExecutor({"fails": fails}, retries=custom)
    with pytest.raises((type(error), StepFailed), match="no"):
        await executor.execute(plan(PlanStep("a", "fails", retries=own)), journal=journal, loop_id="p")
    assert len(tried) == tries
    again = PlanExecutor({"fails": fails}, retries=custom)
    with pytest.raises((type(error), StepFailed), match="no"):
        await again.resume("p", journal=journal)
    assert len(tried) == tries, "what is over is told again, and nobody is asked"


async def test_time_passes_before_a_step_is_tried_again_also_in_another_process() -> None:
    clock, times = FakeClock(), list[float]()

    def fails(step: PlanStep) -> None:
        times.append(clock.now() - begun)
        raise EngineError("no power")

    begun, journal = clock.now(), MemoryJournal()
    wanted = plan(PlanStep("a", "fails", 1, retries=RetryPolicy(2, backoff=4.0, factor=2.0)))

    async def until(count: int, running: asyncio.Future[Any]) -> None:
        while len(times) < count and not running.done():
            for _ in range(50):
                await asyncio.sleep(0)
            if len(times) < count and not running.done():
                await clock.advance(1.0)

    executor = PlanExecutor({"fails": fails})
    options: Any = {"journal": journal, "loop_id": "p", "clock": clock}
    first = asyncio.ensure_future(executor.execute(wanted, **options))
    await until(2, first)
    for _ in range(50):
        await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert times == [0.0, 4.0]
    await clock.advance(3.0)
    second = asyncio.ensure_future(executor.execute(wanted, **options))
    await until(3, second)
    with pytest.raises(EngineError):
        await second
    assert times == [0.0, 4.0, 12.0], "what was waited before the crash counts"


async def test_a_retry_if_that_fails_itself_has_it_be_the_end_and_is_told() -> None:
    def odd(error: Exception) -> bool:
        raise KeyError("odd")

    def fails(step: PlanStep) -> None:
        raise EngineError("no power")

    with pytest.raises(EngineError) as caught:
        await PlanExecutor({"fails": fails}, retries=RetryPolicy(2, retry_if=odd)).execute(
            plan(PlanStep("a", "fails", 1))
        )
    assert "odd" in caught.value.details["retry_if"]


async def test_a_step_that_takes_too_long_fails_and_may_be_tried_again() -> None:
    slow = [True, False]

    async def sleeps(step: PlanStep) -> str:
        if slow.pop(0):
            await asyncio.Event().wait()
        return "at last"

    executor = PlanExecutor({"sleeps": sleeps}, policy=PlanPolicy(timeout_per_step=0.01))
    assert (await executor.execute(plan(PlanStep("a", "sleeps", retries=1)))).output == "at last"
    slow[:] = [True]
    with pytest.raises(CancelledTimeout, match="longer than its time-out") as caught:
        await executor.execute(plan(PlanStep("a", "sleeps")))
    assert caught.value.partial.outcome is Outcome.FAILED, "the step was stopped, the plan has failed"


async def test_who_took_too_long_is_not_left_at_it_when_the_step_is_tried_again(journal: Journal) -> None:
    slow = [True, False]

    async def answer(request: Any) -> Any:
        if slow.pop(0):
            await asyncio.Event().wait()
        return "at last"

    executor = PlanExecutor({INFER: infer_handler(FunctionEngine(answer))})
    wanted = plan(PlanStep("a", INFER, "?", retries=1, timeout=0.05))
    assert (await executor.execute(wanted, journal=journal, loop_id="slow-plan")).output.content == "at last"
    outcomes = [(await load_any(journal, f"slow-plan-s0{one}"))[1].outcome for one in ("-h1", "-t2-h1")]
    assert outcomes == [Outcome.CANCELLED, Outcome.SUCCESS]


async def test_a_plan_is_cancelled_between_its_steps(journal: Journal) -> None:
    async def cancels(step: PlanStep) -> str:
        await send_signal(journal, "cancelled-plan", "cancel")
        return "done"

    executor = PlanExecutor({**HANDLERS, "cancels": cancels})
    with pytest.raises(CancelledSignal) as caught:
        await executor.execute(
            plan(PlanStep("a", "shout", "x"), PlanStep("b", "cancels"), PlanStep("c", "shout")),
            journal=journal,
            loop_id="cancelled-plan",
        )
    names = [step.name for step in caught.value.partial.steps]
    assert names[:1] == ["a"]
    assert "c" not in names


# Going on


async def test_a_plan_that_breaks_off_anywhere_goes_on_where_it_stood() -> None:
    called: list[str] = []

    def noting(step: PlanStep) -> Any:
        called.append(step.name)
        return step.input

    def executor() -> PlanExecutor:
        return PlanExecutor({"note": noting, "infer": infer_handler(Script("said"))})

    wanted = plan(
        PlanStep("a", "note", "go"),
        PlanStep("b", "infer"),
        PlanStep("c", "note"),
        trace=PlanTrace("me", "so"),
    )
    expected = normal_form(await (await executor().execute(wanted)).flow.events())
    for left in range(40):
        called.clear()
        journal = Dying(left)
        try:
            await executor().execute(wanted, journal=journal, loop_id="p")
        except JournalFailure:
            ended = [event.path for event in await journal.read("p") if isinstance(event, StepEnded)]
            before, journal.left = len(called), -1
            if not await journal.read("p"):
                with pytest.raises(LoopNotFound):
                    await executor().resume("p", journal=journal)
                continue
            result = await executor().resume("p", journal=journal)
            assert result["b"].content == "said"
            assert result.plan.trace == PlanTrace("me", "so")
            assert normal_form(await result.flow.events()) == expected
            done = {step.name for step in result.steps if f"{'abc'.index(step.name)}" in ended}
            assert not done & set(called[before:]), "what has ended is not done again"
        else:
            assert left > 6
            return
    raise AssertionError("it never came to its end")


async def test_under_every_driver(where: Where) -> None:
    executor = PlanExecutor({**HANDLERS, INFER: infer_handler(Script("said"), name="asked")})
    options = where.options({"loop_id": f"plan-{where.kind}"})
    result = await executor.execute(plan(PlanStep("a", INFER, "?"), PlanStep("b", "count", "abc")), **options)
    assert (result["a"].content, result["b"], result.usage.requests) == ("said", 3, 1)
    again = await executor.resume(result.loop_id, **{k: v for k, v in options.items() if k != "loop_id"})
    assert again.output == 3


async def test_what_is_gone_on_with_must_be_a_plan_that_is_handled() -> None:
    journal = MemoryJournal()
    await PlanExecutor(HANDLERS).execute(plan(PlanStep("a", "shout", "x")), journal=journal, loop_id="p")
    with pytest.raises(LoopMismatch, match="a step of the type 'shout', which is not handled here"):
        await PlanExecutor({"other": shout}).resume("p", journal=journal)
    from flyball import Agent

    await Agent(Script("hi")).run("go", journal=journal, loop_id="agents")
    with pytest.raises(LoopMismatch, match="is an agent's"):
        await PlanExecutor(HANDLERS).resume("agents", journal=journal)
    with pytest.raises(LoopMismatch, match="another flow"):
        await PlanExecutor(HANDLERS).execute(plan(PlanStep("b", "shout", "x")), journal=journal, loop_id="p")


async def test_pieces_of_answers_can_be_heard() -> None:
    heard: list[Any] = []

    async def answer(request: Any) -> Any:
        return "some words"

    executor = PlanExecutor({INFER: infer_handler(FunctionEngine(answer))})
    await executor.execute(
        plan(PlanStep("a", INFER, "?")),
        loop_id="p",
        hear=lambda loop_id, piece: heard.append((loop_id, piece)),
    )
    assert {loop_id for loop_id, _ in heard} == {"p-s0-h1"}
    assert "".join([getattr(piece, "text", "") for _, piece in heard]) == "some words"
    wrong: Any = 3
    with pytest.raises(UserError, match="hear= takes a function"):
        await executor.execute(plan(PlanStep("a", INFER, "?")), hear=wrong)


# Waiting for people


@tool(approval=True)
async def burn() -> str:
    """Burn."""
    return "ash"


def nero() -> Agent[None, str]:
    return Agent(Script(call("burn"), "done"), tools=[burn], name="nero")


def held() -> Agent[None, str]:
    return Agent(Script("done"), output_approval=True, name="held")


def of_their_own(agent: Agent[None, str]) -> Any:
    async def ask(context: StepContext[Any], step: PlanStep) -> str:
        return (await context.run(agent, step.input)).output

    return ask


class Asking:
    """A pattern of one's own: a flow under the plan."""

    def __init__(self, agent: Agent[None, str]) -> None:
        self._agent = agent

    async def call(self, prompt: Any, /, **options: Any) -> Any:
        return Message(Role.ASSISTANT, (Text((await AgentStep(self._agent).run(prompt, **options)).output),))


KNOWN: dict[str, Any] = {
    "an agent with a tool": lambda: agent_handler(nero()),
    "an agent's answer": lambda: agent_handler(held()),
    "a model's answer": lambda: infer_handler(Script("done"), output_approval=True),
}
UNKNOWN: dict[str, Any] = {
    "a function": lambda: of_their_own(held()),
    "a function that tools are of": lambda: of_their_own(nero()),
    "a pattern": lambda: pattern_handler(Asking(held())),
}


@pytest.mark.parametrize("make", KNOWN.values(), ids=KNOWN)
async def test_a_plan_that_would_wait_for_nobody_is_refused_before_anything_runs(make: Any) -> None:
    done: list[str] = []
    executor = PlanExecutor({"note": lambda step: done.append(step.name), "ask": make()})  # pyright: ignore[reportUnknownLambdaType]
    with pytest.raises(UserError, match="needs approval, and nobody could give it"):
        await executor.execute(plan(PlanStep("a", "note", "x"), PlanStep("b", "ask", "go")))
    assert not done


@pytest.mark.parametrize("heard", [False, True])
@pytest.mark.parametrize("make", UNKNOWN.values(), ids=UNKNOWN)
async def test_a_step_that_would_wait_for_nobody_fails(make: Any, heard: bool) -> None:
    options: Any = {"hear": print} if heard else {}
    with pytest.raises(FlyballError, match="needs approval, and nobody could give it"):
        await PlanExecutor({"ask": make()}).execute(plan(PlanStep("b", "ask", "go")), **options)


@pytest.mark.parametrize("make", [agent_handler, of_their_own])
async def test_with_a_journal_a_plan_waits(make: Any) -> None:
    journal = MemoryJournal()
    executor = PlanExecutor({"ask": make(held())})
    running = asyncio.ensure_future(
        executor.execute(plan(PlanStep("b", "ask", "go")), journal=journal, loop_id="p")
    )
    await journal.wait("p", 1)  # FlowStarted, ChildStarted
    _, flow = await load_any(journal, "p")
    (child,) = flow.children
    await journal.wait(child, 1)  # Started, ModelAnswered: now it waits
    (waiting,) = await calls_waiting(journal, "p")
    assert waiting.answer
    await send_signal(journal, child, "approve")
    assert (await running).output == "done"
