"""Requests that are tried again as a whole: by a policy, from where they stood."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from flyball import Agent, MemoryJournal, RetryPolicy, System, SystemResponse
from flyball.core.errors import ContextExceeded, EngineError, UserError
from flyball.core.events import Reopened
from flyball.inference.request import ModelInfo, Request
from flyball.inference.scripted import FunctionEngine, ScriptedEngine
from flyball.inference.stream import Restart, TextDelta
from flyball.orchestrate.contracts import ExecutionHints, Mode, OutputContract
from flyball.orchestrate.lifecycle import execution_state
from flyball.orchestrate.plan import PlanStep
from flyball.testing import FakeClock
from tests.orchestrate.models import Script
from tests.orchestrate.serving.test_attacked import Breaking
from tests.orchestrate.serving.test_modes import HELD, PLAN, SCHEMA, X, asking, code, plan_of
from tests.patience import PATIENCE

REQUESTS = [
    (asking(Mode.CHAT), "said"),
    (asking(Mode.STRUCTURED, output=HELD), X),
    (asking(Mode.PLAN, plan=PLAN), "said"),
    (asking(Mode.REDUNDANT, output=HELD), X),
]


def shaky(answer: str, failures: int, error: Exception | None = None) -> Agent[Any, str]:
    """An agent whose model fails so often, and then answers."""
    left = [error or EngineError("no")] * failures

    async def infer(request: Request) -> Any:
        if left:
            raise left.pop()
        return answer

    return Agent(FunctionEngine(infer, info=ModelInfo("shaky", provider="test")))


@pytest.mark.parametrize(("request_", "answer"), REQUESTS, ids=lambda one: str(getattr(one, "mode", "")))
async def test_a_failure_that_may_pass_is_got_over(request_: Any, answer: str) -> None:
    failures = 6 if request_.mode is Mode.REDUNDANT else 2
    journal = MemoryJournal()
    system = System(shaky(answer, failures), journal=journal, retry=RetryPolicy(2))
    response = await system.handle(request_, loop_id="r")
    assert (response.ok, response.content, response.loop_id) == (True, answer, "r")
    assert execution_state(await journal.read("r")).attempt == 3
    once = System(shaky(answer, failures), journal=MemoryJournal(), retry=RetryPolicy(1))
    assert code(await once.handle(request_)) == "INFERENCE_ENGINE_ERROR", "as often as the policy says"
    assert code(await System(shaky(answer, failures)).handle(request_)) == "INFERENCE_ENGINE_ERROR"


async def test_what_is_not_worth_it_is_not_tried_again() -> None:
    async def reopened(agent: Agent[Any, Any], policy: RetryPolicy, **options: Any) -> int:
        journal = MemoryJournal()
        system = System(agent, journal=journal, retry=policy)
        assert not (await system.handle(asking(Mode.CHAT, **options), loop_id="r")).ok
        return len([event for event in await journal.read("r") if isinstance(event, Reopened)])

    long = shaky("never", 9, ContextExceeded("too long"))
    assert await reopened(long, RetryPolicy(3)) == 0
    wanted = RetryPolicy(3, retry_if=lambda error: isinstance(error, ContextExceeded))
    assert await reopened(long, wanted) == 3
    assert await reopened(shaky("never", 9), RetryPolicy(3, retry_if=lambda error: False)) == 0
    assert await reopened(shaky("never", 9), RetryPolicy(3), tools=("no",)) == 0, "no loop was begun"


async def test_what_had_ended_is_not_done_again() -> None:
    done: list[str] = []

    def notes(step: PlanStep) -> str:
        done.append(step.name)
        return "noted"

    steps = plan_of(PlanStep("a", "notes", "x"), PlanStep("b", "infer"))
    system = System(
        shaky("said", 1),
        journal=MemoryJournal(),
        planner=steps,
        handlers={"notes": notes},
        retry=RetryPolicy(1),
    )
    assert (await system.handle(asking(Mode.PLAN))).content == "said"
    assert done == ["a"]


async def test_time_passes_between_tries() -> None:
    clock = FakeClock()
    policy = RetryPolicy(2, backoff=4.0, factor=2.0)
    system = System(shaky("said", 2), journal=MemoryJournal(), clock=clock, retry=policy)
    begun, serving = clock.now(), asyncio.ensure_future(system.handle(asking(Mode.CHAT)))
    while not serving.done():
        for _ in range(50):
            await asyncio.sleep(0)
        if not serving.done():
            await clock.advance(1.0)
    assert (await serving).ok
    assert clock.now() - begun == 12.0


async def test_of_an_answer_that_broke_off_the_pieces_are_taken_back() -> None:
    system = System(Agent(Breaking()), journal=MemoryJournal(), retry=RetryPolicy(1))
    pieces = [piece async for piece in system.stream(asking(Mode.CHAT))]
    assert [piece.text for piece in pieces if isinstance(piece, TextDelta)] == ["zz", "said"]
    assert isinstance(pieces[1], Restart)
    assert [type(piece) for piece in pieces].count(SystemResponse) == 1
    assert isinstance(pieces[-1], SystemResponse)
    assert pieces[-1].ok


async def test_closing_early_tries_nothing_again() -> None:
    journal = MemoryJournal()
    system = System(Agent(Breaking()), journal=journal, retry=RetryPolicy(1))
    stream = system.stream(asking(Mode.CHAT), loop_id="r")
    async for piece in stream:
        if isinstance(piece, Restart):
            break
    await stream.aclose()
    assert not [event for event in await journal.read("r") if isinstance(event, Reopened)]


async def test_a_strict_contract_gives_nothing_partial_after_any_try() -> None:
    strict = OutputContract(SCHEMA, strict_validation=True)
    system = System(Agent(Script(*['{"a":"z"}'] * 3)), journal=MemoryJournal(), retry=RetryPolicy(1))
    response = await system.handle(asking(Mode.STRUCTURED, output=strict))
    assert (code(response), response.content, response.structured_output) == (
        "CONSTRAINT_ENUM_UNRECOGNIZED",
        "",
        None,
    )


@pytest.mark.parametrize("contract", [{"repair_allowed": False}, {"strict_validation": True}])
async def test_a_try_from_the_journal_keeps_the_contract(contract: dict[str, Any]) -> None:
    held = OutputContract(SCHEMA, **contract)
    for retry in (RetryPolicy(1), None):
        engine = ScriptedEngine(EngineError("no"), '{"a":"z"}', X)
        system = System(Agent(engine), journal=MemoryJournal(), retry=retry)
        response = await system.handle(asking(Mode.STRUCTURED, output=held), loop_id="r")
        if retry is None:
            response = await system.resume("r", retry=True)
        assert code(response) == "CONSTRAINT_ENUM_UNRECOGNIZED"
        assert len(engine.calls) == 2, "and nobody is asked again"


async def tried_in(seconds: float, policy: RetryPolicy, error: Exception, **options: Any) -> SystemResponse:
    """The response of a request that has its answer at the second try, if it comes in so many seconds."""
    clock = FakeClock()
    system = System(shaky("said", 1, error), journal=MemoryJournal(), clock=clock, retry=policy)
    serving = asyncio.ensure_future(system.handle(asking(Mode.CHAT, **options)))
    for _ in range(50):
        await asyncio.sleep(0)
    if not serving.done():
        await clock.advance(seconds)
    return await asyncio.wait_for(serving, PATIENCE)


async def test_it_is_waited_for_as_long_as_the_error_asks() -> None:
    busy = EngineError("busy", retry_after=30.0)
    assert (await tried_in(30.0, RetryPolicy(1), busy)).ok
    assert code(await tried_in(0.0, RetryPolicy(1, max_retry_after=20.0), busy)) == "INFERENCE_ENGINE_ERROR"


async def test_a_requests_time_is_for_all_tries() -> None:
    error, policy = EngineError("no"), RetryPolicy(1, backoff=4.0)
    assert (await tried_in(4.0, policy, error, hints=ExecutionHints(timeout=5.0))).ok
    late = await tried_in(0.0, policy, error, hints=ExecutionHints(timeout=3.0))
    assert code(late) == "INFERENCE_ENGINE_ERROR", "a try that would come too late is not waited for"
    wrong: Any = "soon"
    refused = await tried_in(0.0, policy, error, hints=ExecutionHints(timeout=wrong))
    assert code(refused) == "CONFIG_INVALID_REQUEST"


async def test_a_policy_that_cannot_judge_is_told_in_the_response() -> None:
    def broken(error: Exception) -> bool:
        raise ValueError("oh")

    system = System(shaky("said", 1), journal=MemoryJournal(), retry=RetryPolicy(1, retry_if=broken))
    response = await system.handle(asking(Mode.CHAT))
    assert response.error is not None
    assert (response.error.code, response.error.retryable) == ("VALIDATION_RULE_FAILED", False)
    assert response.error.message == "retry_if failed: ValueError: oh"
    assert response.error.caused_by == "EngineError: no"


def test_what_it_takes() -> None:
    wrong: Any = 3
    with pytest.raises(UserError, match="retry= takes a RetryPolicy"):
        System(Agent(Script()), journal=MemoryJournal(), retry=wrong)
    with pytest.raises(UserError, match="give a system with retry= a journal="):
        System(Agent(Script()), retry=RetryPolicy(1))
