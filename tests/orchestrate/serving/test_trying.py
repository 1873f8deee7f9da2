"""Requests that are tried again as a whole: by a policy, from where they stood."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from flyball import Agent, MemoryJournal, RetryPolicy, System, SystemResponse
from flyball.core.errors import ContextExceeded, EngineError, UserError
from flyball.core.events import Reopened
from flyball.inference.request import ModelInfo, Request
from flyball.inference.scripted import FunctionEngine
from flyball.inference.stream import Restart, TextDelta
from flyball.orchestrate.contracts import Mode, OutputContract
from flyball.orchestrate.lifecycle import execution_state
from flyball.orchestrate.plan import PlanStep
from flyball.testing import FakeClock
from tests.orchestrate.models import Script
from tests.orchestrate.serving.test_attacked import Breaking
from tests.orchestrate.serving.test_modes import HELD, PLAN, SCHEMA, X, asking, code, plan_of

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


def test_what_it_takes() -> None:
    wrong: Any = 3
    with pytest.raises(UserError, match="retry= takes a RetryPolicy"):
        System(Agent(Script()), journal=MemoryJournal(), retry=wrong)
    with pytest.raises(UserError, match="give a system with retry= a journal="):
        System(Agent(Script()), retry=RetryPolicy(1))
