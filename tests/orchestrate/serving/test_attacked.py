"""What a hostile look at the modes found, each with the case that showed it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from flyball import (
    Agent,
    AgentLoop,
    ExecutionPlan,
    LoopConfig,
    MemoryJournal,
    PlanBranch,
    PlanExecutor,
    PlanParallel,
    PlanPolicy,
    PlanStep,
    RedundantConfig,
    RedundantLoop,
    SpecializedConfig,
    SpecializedLoop,
    System,
    SystemRequest,
    SystemResponse,
    tool,
    user,
)
from flyball.core.errors import (
    EngineError,
    EnumUnrecognized,
    JSONInvalid,
    NoConsensus,
    PlanRejected,
    SchemaRequired,
    UserError,
)
from flyball.inference.answers import tool_call as call
from flyball.inference.request import ModelInfo, Request, Result
from flyball.inference.scripted import FunctionEngine, ScriptedEngine
from flyball.inference.stream import Finish, Restart, StreamEvent, TextDelta
from flyball.orchestrate.contracts import ExecutionHints, Mode, OutputContract
from flyball.orchestrate.patterns import Redundancy
from tests.orchestrate.models import Script

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"enum": ["x", "y"]}},
    "required": ["a"],
    "additionalProperties": False,
}
X = '{"a":"x"}'
ran: list[str] = []


@tool(approval=True)
async def danger(place: str) -> str:
    """Do something dangerous."""
    ran.append(place)
    return "done"


def upper(step: PlanStep) -> str:
    return step.input_as(str).upper()


def refuses(*_: Any) -> bool:
    return False


def never(step: PlanStep) -> bool:
    return False


def same(step: PlanStep) -> Any:
    return step.input


def asking(mode: Mode = Mode.PLAN, **options: Any) -> SystemRequest:
    return SystemRequest(messages=(user("Which?"),), mode=mode, **options)


def plan(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"steps": list(steps)}


def code(response: SystemResponse) -> str:
    return response.error.code if response.error is not None else ""


# Approval


async def test_a_plan_gets_nobody_past_an_approval() -> None:
    ran.clear()
    step = {"name": "w", "type": "tool", "input": {"name": "danger", "arguments": {"place": "here"}}}
    agent = Agent(Script(), tools=[danger], approval=refuses)
    response = await System(agent).handle(asking(plan=plan(step)))
    assert code(response) == "CONFIG_USAGE"
    assert not ran


async def test_who_could_not_be_asked_is_not_waited_for() -> None:
    agent = Agent(Script(call("danger", {"place": "here"}), "done"), tools=[danger])
    step = {"name": "i", "type": "infer", "input": "x"}
    response = await asyncio.wait_for(System(agent).handle(asking(plan=plan(step))), 60)
    assert code(response) == "CONFIG_USAGE"


# Conversations


async def test_a_conversation_goes_on_after_a_turn_that_failed() -> None:
    engine = ScriptedEngine("Hello!", EngineError("no power"), "Third.")
    loop = AgentLoop(LoopConfig(engine=engine, journal=MemoryJournal(), session_id="s"))
    await loop.chat("Hi")
    with pytest.raises(EngineError):
        await loop.chat("And?")
    assert (await loop.chat("Still there?")).loop_id == "s-t3"
    assert [message.text for message in loop.messages()] == ["Hi", "Hello!", "Still there?", "Third."]


async def test_a_restore_that_failed_may_be_tried_again() -> None:
    journal = MemoryJournal()
    first = AgentLoop(LoopConfig(engine=ScriptedEngine("Hello!"), journal=journal, session_id="s"))
    await first.chat("Hi")
    again = AgentLoop(
        LoopConfig(engine=ScriptedEngine("Fine."), system_prompt="Be.", journal=journal, session_id="s")
    )
    assert (await again.restore(), await again.restore()) == (1, 1)
    assert [message.text for message in again.messages()] == ["Be.", "Hi", "Hello!"]


async def test_a_turn_by_no_schema_is_refused() -> None:
    with pytest.raises(SchemaRequired):
        await AgentLoop(LoopConfig(engine=Script("x"))).chat_structured("q", None)


# Streams


class Breaking:
    """Streams a word and breaks off, the first time; then answers."""

    def __init__(self) -> None:
        self.tries = 0

    async def infer(self, request: Request) -> Result:
        raise AssertionError("it is asked for pieces")

    async def stream(self, request: Request) -> AsyncIterator[StreamEvent]:
        self.tries += 1
        yield TextDelta(0, "zz" if self.tries == 1 else "said")
        if self.tries == 1:
            raise EngineError("no power")
        yield Finish()

    def model_info(self) -> ModelInfo:
        return ModelInfo("breaks", provider="test")


async def test_an_answer_that_breaks_off_is_taken_back_and_the_others_are_heard() -> None:
    steps = plan(
        {"name": "a", "type": "infer", "input": "One?", "retries": 1},
        {"name": "b", "type": "infer", "input": "Two?"},
    )
    pieces = [piece async for piece in System(Agent(Breaking())).stream(asking(plan=steps))]
    assert isinstance(pieces[-1], SystemResponse)
    assert pieces[-1].ok
    told = [type(piece).__name__ for piece in pieces if isinstance(piece, TextDelta | Restart | Finish)]
    assert told == ["TextDelta", "Restart", "TextDelta", "Finish", "TextDelta", "Finish"]


# What a plan gives


async def test_the_content_is_what_the_plan_gives_and_not_what_ended_last() -> None:
    handlers: dict[str, Any] = {"up": upper, "no": never}
    steps = plan(
        {"name": "a", "type": "up", "input": "abc"},
        {
            "name": "b",
            "test": {"name": "t", "type": "no"},
            "then": [{"name": "c", "type": "up", "input": "x"}],
        },
    )
    response = await System(Agent(Script()), handlers=handlers).handle(asking(plan=steps))
    assert response.content == "ABC"


@pytest.mark.parametrize(
    "other",
    [
        {"redundancy": Redundancy(n=5)},
        {"plan_policy": PlanPolicy(allowed_step_types=("infer",))},
        {"handlers": {}},
    ],
    ids=["votes", "policy", "handlers"],
)
async def test_what_is_over_is_told_under_any_configuration(other: dict[str, Any]) -> None:
    journal = MemoryJournal()
    handlers: dict[str, Any] = {"up": upper}
    system = System(Agent(Script(X)), journal=journal, handlers=handlers)
    steps = plan({"name": "a", "type": "up", "input": "abc"})
    done = [
        await system.handle(asking(plan=steps), loop_id="p"),
        await system.handle(asking(Mode.REDUNDANT, output=OutputContract(SCHEMA)), loop_id="v"),
    ]
    elsewhere = System(Agent(Script(X)), journal=journal, **other)
    told = [await elsewhere.replay("p"), await elsewhere.replay("v")]
    assert [one.content for one in told] == [one.content for one in done]


# Failures by their category


async def test_patterns_fail_in_the_category_of_what_went_wrong_last() -> None:
    with pytest.raises(JSONInvalid):
        await SpecializedLoop(SpecializedConfig(engine=Script("junk", "junk"), schema=SCHEMA)).call("?")
    wrong = '{"a":"z"}'
    with pytest.raises(EnumUnrecognized) as caught:
        await RedundantLoop(RedundantConfig(engine=Script(wrong, wrong), schema=SCHEMA)).call("?")
    assert caught.value.partial is not None
    loop = AgentLoop(LoopConfig(engine=Script("junk", "junk")))
    with pytest.raises(JSONInvalid):
        await loop.chat_structured("?", SCHEMA)


async def test_a_step_whose_answer_broke_its_schema_is_tried_again() -> None:
    left = ["junk", "junk", X]

    async def answer(request: Request) -> Any:
        return left.pop(0)

    engine = FunctionEngine(answer, info=ModelInfo("shaky", provider="test"))
    held = asking(output=OutputContract(SCHEMA), plan=plan({"name": "i", "type": "infer", "input": "?"}))
    assert (await System(Agent(engine)).handle(held)).ok


# What is malformed


@pytest.mark.parametrize(
    "hints", [None, "x", {"timeout": 3}, ExecutionHints(max_tokens=10**400)], ids=lambda one: str(one)[:20]
)
@pytest.mark.parametrize("mode", list(Mode))
async def test_hints_of_the_wrong_type(mode: Mode, hints: Any) -> None:
    response = await System(Agent(Script("x"))).handle(asking(mode, hints=hints))
    assert code(response) == "CONFIG_INVALID_REQUEST"
    wrong: Any = ExecutionHints(timeout="1")  # pyright: ignore[reportArgumentType]
    assert (
        code(await System(Agent(Script("x"))).handle(asking(mode, hints=wrong))) == "CONFIG_INVALID_REQUEST"
    )


@pytest.mark.parametrize("request_", [None, "x", {}])
async def test_what_is_no_request(request_: Any) -> None:
    system = System(Agent(Script("x")))
    assert code(await system.handle(request_)) == "CONFIG_INVALID_REQUEST"
    (response,) = [piece async for piece in system.stream(request_)]
    assert isinstance(response, SystemResponse)
    assert code(response) == "CONFIG_INVALID_REQUEST"


def _deep(levels: int) -> Any:
    item: Any = PlanStep("a", "up", "x")
    for _ in range(levels):
        item = PlanParallel((item,))
    return item


MALFORMED: list[Any] = [
    ExecutionPlan((5,)),  # pyright: ignore[reportArgumentType]
    ExecutionPlan(None),  # pyright: ignore[reportArgumentType]
    ExecutionPlan((PlanStep(5, "up", "x"),)),  # pyright: ignore[reportArgumentType]
    ExecutionPlan((PlanStep("", "up", "x"),)),
    ExecutionPlan((PlanStep("a", [], "x"),)),  # pyright: ignore[reportArgumentType]
    ExecutionPlan((PlanStep("a", "up", "x", retries="x"),)),  # pyright: ignore[reportArgumentType]
    ExecutionPlan((PlanStep("a", "up", "x", retries=1.5),)),  # pyright: ignore[reportArgumentType]
    ExecutionPlan((PlanStep("a", "up", "x", retries=10**9),)),
    ExecutionPlan((PlanStep("a", "up", "x", timeout=float("inf")),)),
    ExecutionPlan((PlanStep("a", "up", "x", timeout="x"),)),  # pyright: ignore[reportArgumentType]
    ExecutionPlan((PlanParallel((PlanStep("a", "up", "x"),), concurrency="x"),)),  # pyright: ignore[reportArgumentType]
    ExecutionPlan((PlanBranch(PlanParallel(()), ()),)),  # pyright: ignore[reportArgumentType]
    ExecutionPlan((PlanStep("a", "up", "x"),), trace=5),  # pyright: ignore[reportArgumentType]
    ExecutionPlan((_deep(40),)),
    ExecutionPlan((_deep(400),)),
]


@pytest.mark.parametrize("wrong", MALFORMED, ids=range(len(MALFORMED)))
async def test_a_malformed_plan_is_rejected(wrong: Any) -> None:
    journal = MemoryJournal()
    with pytest.raises(PlanRejected):
        await PlanExecutor({"up": same}).execute(wrong, journal=journal)
    assert not await journal.loops()


@pytest.mark.parametrize(
    "options",
    [{"planner": 5}, {"handlers": 5}, {"handlers": {"x": 5}}, {"plan_policy": 5}, {"redundancy": "x"}],
)
def test_a_system_of_wrong_parts_is_refused_as_it_is_made(options: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        System(Agent(Script()), **options)


@pytest.mark.parametrize(
    "options",
    [
        {"max_steps": "x"},
        {"max_steps": 2.5},
        {"max_steps": True},
        {"require_linear": "no"},
        {"allowed_step_types": "infer"},
        {"timeout_per_step": "x"},
        {"max_retries": -1},
    ],
)
def test_a_policy_that_cannot_be_meant(options: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        PlanPolicy(**options)


def test_an_empty_plan_stays_one() -> None:
    request = asking(plan={})
    assert SystemRequest.from_json(request.to_json()) == request


class Odd:
    """A voting that gives what is no vote."""

    def __init__(self, given: Any) -> None:
        self.given = given

    def vote(self, candidates: Any) -> Any:
        return self.given


@pytest.mark.parametrize("given", [None, ("x",), (X, "sure"), (X, 0.5, 1), (X, float("nan"))], ids=str)
async def test_a_vote_that_is_none(given: Any) -> None:
    loop = RedundantLoop(RedundantConfig(engine=Script(X), schema=SCHEMA, voting=Odd(given)))
    with pytest.raises(NoConsensus, match="it must give one of the candidates"):
        await loop.call("?")
