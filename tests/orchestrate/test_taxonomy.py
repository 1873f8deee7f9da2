"""The failures of pagantic's documents: each code provoked, and each cell of the matrix proved."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from flyball import (
    Agent,
    Limits,
    MemoryJournal,
    ModelRetry,
    Rule,
    RuleValidator,
    Safety,
    System,
    SystemRequest,
    SystemResponse,
    send_signal,
    tool,
    user,
)
from flyball.constraint.grammar import GrammarDefinition
from flyball.core.errors import (
    ContextExceeded,
    EngineError,
    FailureCategory,
    FlyballError,
    ModelUnavailable,
    ToolExecutionFailed,
)
from flyball.inference.answers import Answer
from flyball.inference.answers import tool_call as call
from flyball.inference.request import ModelInfo, Request
from flyball.inference.scripted import FunctionEngine, ScriptedEngine
from flyball.orchestrate.contracts import ExecutionHints, Mode, OutputContract
from flyball.orchestrate.lifecycle.failures import FAILURES
from flyball.orchestrate.patterns import Redundancy, UnanimityVoting
from flyball.orchestrate.plan import ExecutionPlan, PlanStep
from flyball.orchestrate.plan.planner import StaticPlanner
from flyball.validate.semantic import SemanticCheck, Verdict
from tests.orchestrate.models import Hanging, Place

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"enum": ["x", "y"]}, "n": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}
X = '{"a":"x"}'


@tool
async def breaks() -> str:
    """Break."""
    raise OSError("no disk")


@tool(timeout=0.01)
async def hangs() -> str:
    """Hang."""
    await asyncio.Event().wait()
    return ""


@tool(available=lambda: False)
async def gone() -> str:
    """Be gone."""
    return ""


@tool
async def asks_again() -> str:
    """Never be content."""
    raise ModelRetry("not like that")


@tool
async def works() -> str:
    """Work."""
    return "done"


TOOLS = [breaks, hangs, gone, works]


def asking(mode: Mode = Mode.CHAT, *, schema: Any = None, **options: Any) -> SystemRequest:
    if mode in (Mode.STRUCTURED, Mode.REDUNDANT):
        options.setdefault("output", OutputContract(SCHEMA if schema is None else schema))
    return SystemRequest(messages=(user("Which?"),), mode=mode, **options)


async def served(
    request: SystemRequest, *answers: Answer, agent: dict[str, Any] | None = None, **options: Any
) -> SystemResponse:
    engine = (agent or {}).pop("model", None) or ScriptedEngine(*answers)
    return await System(Agent(engine, **(agent or {})), **options).handle(request)


def step(kind: str, given: Any = "x", **options: Any) -> StaticPlanner:
    return StaticPlanner({}, default=ExecutionPlan((PlanStep("s", kind, given, **options),)))


async def run_tool(name: str) -> SystemResponse:
    planner = step("tool", {"name": name})
    return await served(asking(Mode.PLAN), agent={"tools": TOOLS}, planner=planner)


async def raised(error: FlyballError) -> SystemResponse:
    return await served(asking(), error)


async def refused() -> SystemResponse:
    async def answer(request: Request) -> Any:
        raise ConnectionRefusedError("nobody listens")

    return await served(asking(), agent={"model": FunctionEngine(answer)})


async def malformed() -> SystemResponse:
    return await served(asking(), "", "")


async def constrained(*answers: str, **contract: Any) -> SystemResponse:
    held = OutputContract(SCHEMA, **contract)
    return await served(asking(Mode.STRUCTURED, output=held), *answers)


async def grammar_rejected() -> SystemResponse:
    return await served(asking(output=OutputContract(grammar='root ::= "yes"')), "no", "perhaps")


async def grammar_missing() -> SystemResponse:
    return await as_response(lambda: GrammarDefinition.from_file(Path("nowhere.gbnf")))


async def as_response(function: Callable[[], Any]) -> SystemResponse:
    try:
        function()
    except FlyballError as error:
        return SystemResponse(error=error.record())
    return SystemResponse()


async def ruled() -> SystemResponse:
    rules = RuleValidator([Rule("short", lambda text: "too long" if len(text) > 3 else None)])
    return await served(asking(), "a long answer", "a longer answer", agent={"validators": [rules]})


class Doubts:
    async def validate(self, output: Any, intent: str) -> Verdict:
        return Verdict(valid=False, reason="that is made up")


async def meant() -> SystemResponse:
    check = SemanticCheck(Doubts(), "the truth")
    return await served(asking(), "one", "two", agent={"validators": [check]})


async def mismatched() -> SystemResponse:
    def takes_text(given: PlanStep) -> str:
        return given.input_as(str)

    return await served(asking(Mode.PLAN), planner=step("text", 3), handlers={"text": takes_text})


async def endless() -> SystemResponse:
    calls = [call("works", id=f"c{number}") for number in range(5)]
    limits = Limits(max_iterations=2, repeated_calls=None)
    return await served(asking(), *calls, agent={"tools": TOOLS, "limits": limits})


async def at_odds() -> SystemResponse:
    redundancy = Redundancy(n=2, voting=UnanimityVoting())
    return await served(asking(Mode.REDUNDANT), X, '{"a":"y"}', redundancy=redundancy)


async def without_engine() -> SystemResponse:
    return await System().handle(asking())


async def late() -> SystemResponse:
    hanging = {"model": Hanging()}
    return await served(asking(hints=ExecutionHints(timeout=0.02)), agent=hanging)


async def called_off() -> SystemResponse:
    journal, place = MemoryJournal(), Place()
    system = System(Agent(Hanging(place=place)), journal=journal)
    running = asyncio.ensure_future(system.handle(asking(), loop_id="one"))
    await place.entered.wait()
    await send_signal(journal, "one", "cancel")
    return await running


PROVOKED: dict[str, Callable[[], Awaitable[SystemResponse]]] = {
    "INFERENCE_ENGINE_ERROR": refused,
    "INFERENCE_MODEL_UNAVAILABLE": lambda: raised(ModelUnavailable("not loaded")),
    "INFERENCE_CONTEXT_EXCEEDED": lambda: raised(ContextExceeded("too long")),
    "INFERENCE_MALFORMED_RESPONSE": malformed,
    "TOOL_NOT_FOUND": lambda: run_tool("sings"),
    "TOOL_EXECUTION_FAILED": lambda: run_tool("breaks"),
    "TOOL_TIMEOUT": lambda: run_tool("hangs"),
    "TOOL_UNAVAILABLE": lambda: run_tool("gone"),
    "CONSTRAINT_GRAMMAR_REJECTED": grammar_rejected,
    "CONSTRAINT_SCHEMA_INVALID": lambda: constrained('{"a":"x","n":"one"}', '{"a":"x","n":"two"}'),
    "CONSTRAINT_JSON_INVALID": lambda: constrained('{"a":', repair_allowed=False),
    "CONSTRAINT_ENUM_UNRECOGNIZED": lambda: constrained('{"a":"z"}', '{"a":"q"}'),
    "VALIDATION_RULE_FAILED": ruled,
    "VALIDATION_SEMANTIC_FAILED": meant,
    "ORCHESTRATION_STEP_MISMATCH": mismatched,
    "ORCHESTRATION_ITERATION_LIMIT": endless,
    "ORCHESTRATION_NO_CONSENSUS": at_odds,
    "CONFIG_NO_ENGINE": without_engine,
    "CONFIG_SCHEMA_REQUIRED": lambda: served(SystemRequest(messages=(user("?"),), mode=Mode.STRUCTURED), X),
    "CONFIG_GRAMMAR_NOT_FOUND": grammar_missing,
    "CANCELLED_TIMEOUT": late,
    "CANCELLED_SIGNAL": called_off,
}
CATEGORIES = {
    "INFERENCE": FailureCategory.INFERENCE,
    "TOOL": FailureCategory.TOOL,
    "CONSTRAINT": FailureCategory.CONSTRAINT,
    "VALIDATION": FailureCategory.VALIDATION,
    "ORCHESTRATION": FailureCategory.ORCHESTRATION,
    "CONFIG": FailureCategory.CONFIGURATION,
    "CANCELLED": FailureCategory.CANCELLATION,
}


@pytest.mark.parametrize("code", PROVOKED)
async def test_each_code_is_provoked(code: str) -> None:
    response = await PROVOKED[code]()
    assert response.error is not None
    assert (response.error.code, response.error.category) == (code, CATEGORIES[code.partition("_")[0]])
    assert response.error.message
    never = (FailureCategory.ORCHESTRATION, FailureCategory.CONFIGURATION, FailureCategory.CANCELLATION)
    if response.error.category in never:
        assert not response.error.retryable


# The matrix: for each pattern, a failure of each category that is the end, and one that is got over.


def always(error: Exception) -> dict[str, Any]:
    async def answer(request: Request) -> Any:
        raise error

    return {"model": FunctionEngine(answer, info=ModelInfo("breaks", provider="test"))}


def once(error: Exception, then: str) -> dict[str, Any]:
    """A model that fails the first time it is asked."""
    left = [error]

    async def answer(request: Request) -> Any:
        if left:
            raise left.pop()
        return then

    return {"model": FunctionEngine(answer, info=ModelInfo("shaky", provider="test"))}


def shaky(error: FlyballError) -> Callable[[PlanStep], str]:
    """A handler that fails the first time."""
    left = [error]

    def handle(given: PlanStep) -> str:
        if left:
            raise left.pop()
        return "done"

    return handle


@tool(safety=Safety.IDEMPOTENT, retries=1)
async def shaky_tool() -> str:
    """Fail the first time."""
    tries.append(1)
    if len(tries) % 2:
        raise OSError("not now")
    return "done"


tries: list[int] = []
LATE = ExecutionHints(timeout=0.02)


def broken_rule(text: Any) -> None:
    raise ValueError("never good enough")


def failing_plan(error: FlyballError) -> Awaitable[SystemResponse]:
    def handle(given: PlanStep) -> str:
        raise error

    return served(asking(Mode.PLAN), planner=step("fails"), handlers={"fails": handle})


def recovering_plan(error: FlyballError) -> Awaitable[SystemResponse]:
    return served(asking(Mode.PLAN), planner=step("shaky"), handlers={"shaky": shaky(error)})


RULES = {"validators": [RuleValidator([Rule("good", broken_rule)])]}
PICKY = {"validators": [RuleValidator([Rule("y", lambda value: None if value["a"] == "y" else "not y")])]}
Y = '{"a":"y"}'
_F = FailureCategory

EMITTED: dict[tuple[Mode, FailureCategory], Callable[[], Awaitable[SystemResponse]]] = {
    (Mode.CHAT, _F.INFERENCE): lambda: served(asking(), agent=always(EngineError("no power"))),
    (Mode.CHAT, _F.TOOL): lambda: served(
        asking(), *[call("asks_again", id=f"c{n}") for n in range(3)], agent={"tools": [asks_again]}
    ),
    (Mode.CHAT, _F.CANCELLATION): lambda: served(asking(hints=LATE), agent={"model": Hanging()}),
    (Mode.STRUCTURED, _F.INFERENCE): lambda: served(asking(Mode.STRUCTURED), agent=always(EngineError("no"))),
    (Mode.STRUCTURED, _F.CONSTRAINT): lambda: served(asking(Mode.STRUCTURED), '{"a":"z"}', '{"a":"z"}'),
    (Mode.STRUCTURED, _F.VALIDATION): lambda: served(asking(Mode.STRUCTURED), X, X, agent=dict(RULES)),
    (Mode.STRUCTURED, _F.CANCELLATION): lambda: served(
        asking(Mode.STRUCTURED, hints=LATE), agent={"model": Hanging()}
    ),
    (Mode.PLAN, _F.INFERENCE): lambda: served(
        asking(Mode.PLAN), agent=always(EngineError("no")), planner=step("infer")
    ),
    (Mode.PLAN, _F.TOOL): lambda: run_tool("breaks"),
    (Mode.PLAN, _F.CONSTRAINT): lambda: failing_plan(_constraint()),
    (Mode.PLAN, _F.VALIDATION): lambda: failing_plan(_validation()),
    (Mode.PLAN, _F.ORCHESTRATION): mismatched,
    (Mode.PLAN, _F.CONFIGURATION): lambda: served(
        asking(Mode.PLAN, plan={"steps": [{"type": "infer"}]}), "never"
    ),
    (Mode.PLAN, _F.CANCELLATION): lambda: served(
        asking(Mode.PLAN, hints=LATE), agent={"model": Hanging()}, planner=step("infer")
    ),
    (Mode.REDUNDANT, _F.INFERENCE): lambda: served(asking(Mode.REDUNDANT), agent=always(EngineError("no"))),
    (Mode.REDUNDANT, _F.CONSTRAINT): lambda: served(
        asking(Mode.REDUNDANT), *['{"a":"z"}'] * 4, redundancy=Redundancy(n=2)
    ),
    (Mode.REDUNDANT, _F.ORCHESTRATION): at_odds,
    (Mode.REDUNDANT, _F.CANCELLATION): lambda: served(
        asking(Mode.REDUNDANT, hints=LATE), agent={"model": Hanging()}
    ),
}

RECOVERED: dict[tuple[Mode, FailureCategory], Callable[[], Awaitable[SystemResponse]]] = {
    (Mode.CHAT, _F.TOOL): lambda: served(asking(), call("shaky_tool"), "done", agent={"tools": [shaky_tool]}),
    (Mode.STRUCTURED, _F.CONSTRAINT): lambda: served(asking(Mode.STRUCTURED), '{"a":"X"'),
    (Mode.STRUCTURED, _F.VALIDATION): lambda: served(asking(Mode.STRUCTURED), X, Y, agent=dict(PICKY)),
    (Mode.PLAN, _F.CONSTRAINT): lambda: recovering_plan(_constraint()),
    (Mode.PLAN, _F.VALIDATION): lambda: recovering_plan(_validation()),
    (Mode.PLAN, _F.TOOL): lambda: recovering_plan(ToolExecutionFailed("not now", retryable=True)),
    (Mode.REDUNDANT, _F.INFERENCE): lambda: served(asking(Mode.REDUNDANT), agent=once(EngineError("no"), X)),
    (Mode.REDUNDANT, _F.CONSTRAINT): lambda: served(asking(Mode.REDUNDANT), '{"a":"X"', X, X),
}


def _constraint() -> FlyballError:
    from flyball.core.errors import SchemaInvalid

    return SchemaInvalid("not by its schema")


def _validation() -> FlyballError:
    from flyball.core.errors import RuleFailed

    return RuleFailed("not good enough")


def test_the_matrix_is_proved_whole() -> None:
    assert set(EMITTED) == {(mode, one) for mode, cell in FAILURES.items() for one in cell.emits}
    assert set(RECOVERED) == {(mode, one) for mode, cell in FAILURES.items() for one in cell.recovers}


@pytest.mark.parametrize(("mode", "category"), EMITTED)
async def test_what_a_pattern_ends_with(mode: Mode, category: FailureCategory) -> None:
    response = await EMITTED[mode, category]()
    assert response.error is not None
    assert response.error.category is category


@pytest.mark.parametrize(("mode", "category"), RECOVERED)
async def test_what_a_pattern_gets_over(mode: Mode, category: FailureCategory) -> None:
    response = await RECOVERED[mode, category]()
    assert response.error is None
    assert response.content
