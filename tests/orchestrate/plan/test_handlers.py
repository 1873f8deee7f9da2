"""The handlers of pagantic's types of steps, and what crosses from one to the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from flyball import Agent, Message, Text, tool, user
from flyball.context.chunk import Chunk
from flyball.context.in_memory import InMemoryRetriever
from flyball.core.errors import (
    ConfigurationFailure,
    NoEngine,
    RuleFailed,
    StepMismatch,
    ToolExecutionFailed,
    ToolNotFound,
    ToolTimeout,
    ToolUnavailable,
    UserError,
)
from flyball.core.forms.semstreams import ToolCallFilterResult, ToolCallRejection
from flyball.core.messages import Role, ToolCall, ToolResult, assistant
from flyball.core.settings import ModelSettings
from flyball.core.tools import Safety, ToolDefinition
from flyball.inference.answers import tool_call as call
from flyball.inference.request import OutputObject, Request, Result
from flyball.orchestrate.patterns import RedundantConfig, RedundantLoop
from flyball.orchestrate.plan import (
    INFER,
    RERANK,
    RETRIEVE,
    TOOL,
    VALIDATE,
    ExecutionPlan,
    PlanExecutor,
    PlanResult,
    PlanStep,
)
from flyball.orchestrate.plan.handlers import (
    agent_handler,
    infer_handler,
    pattern_handler,
    rerank_handler,
    retrieve_handler,
    tool_handler,
    validate_handler,
)
from flyball.orchestrate.plan.handlers.tooling import call_of
from flyball.orchestrate.plan.ir import (
    ContextIR,
    RerankInput,
    StepInput,
    StepOutput,
    candidates_of,
    chunks_of,
)
from flyball.rerank.candidate import Candidate
from flyball.rerank.keyword import KeywordScorer
from flyball.rerank.reranker import Reranker
from flyball.tool.preparing import ToolsPrepare
from flyball.tool.truncation import ToolOutputTruncation
from tests.orchestrate.models import Script

CHUNKS = [
    Chunk("Rivers flood in spring.", "a.md"),
    Chunk("Cats sleep.", "b.md"),
    Chunk("Rivers freeze.", "c.md"),
]


async def one(kind: str, handler: Any, given: Any, plan_input: Any = None) -> PlanResult:
    """Run a plan of one step."""
    return await PlanExecutor({kind: handler}).execute(
        ExecutionPlan((PlanStep("s", kind, given),)), plan_input
    )


class Provider:
    async def build(self, query: str) -> list[Message]:
        return [Message(Role.SYSTEM, (Text(f"Relevant context:\n\n[1] (a.md): about {query}"),))]


async def test_the_canonical_pipeline() -> None:
    """Retrieve with an input of its own, rerank and infer with what came before, and nothing between."""
    engine = Script("In spring.")
    executor = PlanExecutor(
        {
            RETRIEVE: retrieve_handler(InMemoryRetriever(CHUNKS)),
            RERANK: rerank_handler(Reranker(KeywordScorer(), top_k=1)),
            INFER: infer_handler(engine),
            VALIDATE: validate_handler(lambda text: len(text) > 3 or f"only {len(text)} characters"),
        }
    )
    plan = ExecutionPlan(
        (
            PlanStep("find", RETRIEVE, "When do rivers flood?"),
            PlanStep("order", RERANK),
            PlanStep("answer", INFER),
            PlanStep("check", VALIDATE),
        )
    )
    result = await executor.execute(plan, "When do rivers flood?")
    assert result.output == "In spring."
    assert isinstance(result["find"], RerankInput)
    assert [candidate.source for candidate in result["order"]] == ["a.md"]
    assert isinstance(result["answer"], Result)
    assert engine.last.messages[-1].text == (
        "Relevant context:\n\n[1] (a.md): Rivers flood in spring.\n\nWhen do rivers flood?"
    )
    assert result.usage.requests == 1


@pytest.mark.parametrize(
    ("handler", "kind", "told"),
    [
        (infer_handler(None), NoEngine, "infer handler: nil engine"),
        (rerank_handler(None), ConfigurationFailure, "rerank handler: nil reranker"),
        (retrieve_handler(None), ConfigurationFailure, "retrieve handler: nil context provider"),
        (validate_handler(None), ConfigurationFailure, "validate handler: nil check"),
        (tool_handler(None), ConfigurationFailure, "tool handler: nil registry"),
        (pattern_handler(None), ConfigurationFailure, "pattern handler: nil pattern"),
    ],
)
async def test_what_is_missing_is_told_when_the_step_is_run(
    handler: Any, kind: type[Exception], told: str
) -> None:
    with pytest.raises(kind, match=told):
        await one("x", handler, "go")


# Asking


async def test_infer_takes_text_messages_and_requests() -> None:
    engine = Script("yes")
    assert (await one(INFER, infer_handler(engine), "Why?")).output.content == "yes"
    talk = [user("Hi"), assistant("Hello"), user("Why?")]

    def talks(step: PlanStep) -> list[Message]:
        return talk

    chained = PlanExecutor({"talk": talks, INFER: infer_handler(engine)})
    await chained.execute(ExecutionPlan((PlanStep("t", "talk", 1), PlanStep("s", INFER))))
    assert [message.text for message in engine.last.messages] == ["Hi", "Hello", "Why?"]

    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}

    def request(step: PlanStep) -> Request:
        settings = ModelSettings(max_tokens=9)
        return Request((user("Which?"),), settings=settings, output=OutputObject(schema))

    other = Script('{"a":1}')
    asked = PlanExecutor({"ask": request, INFER: infer_handler(other, output_mode="native")})
    result = await asked.execute(ExecutionPlan((PlanStep("t", "ask", 1), PlanStep("s", INFER))))
    assert result.output.content == '{"a":1}'
    assert other.last.settings.max_tokens == 9


async def test_infer_runs_no_tools() -> None:
    def request(step: PlanStep) -> Request:
        return Request((user("Which?"),), tools=(ToolDefinition("look", {"type": "object"}),))

    executor = PlanExecutor({"ask": request, INFER: infer_handler(Script("never"))})
    with pytest.raises(StepMismatch, match="expected Request without tools input, got Request"):
        await executor.execute(ExecutionPlan((PlanStep("t", "ask", 1), PlanStep("s", INFER))))


async def test_a_context_stands_before_the_plans_question() -> None:
    engine = Script("so")
    executor = PlanExecutor({RETRIEVE: retrieve_handler(Provider()), INFER: infer_handler(engine)})
    plan = ExecutionPlan((PlanStep("f", RETRIEVE, "floods"), PlanStep("a", INFER)))
    await executor.execute(plan, "Why are there floods?")
    assert engine.last.messages[-1].text.endswith("[1] (a.md): about floods\n\nWhy are there floods?")


async def test_an_agent_as_a_handler_has_its_tools() -> None:
    @tool
    async def look(topic: str) -> str:
        """Look something up."""
        return f"about {topic}"

    agent = Agent(Script(call("look", {"topic": "tea"}), "It is tea."), tools=[look])
    result = await one("ask", agent_handler(agent), "Which?")
    assert (result.output, result.usage.tool_calls) == ("It is tea.", 1)
    wrong: Any = "agent"
    with pytest.raises(UserError, match="agent_handler takes an agent"):
        agent_handler(wrong)


async def test_patterns_as_handlers_take_text() -> None:
    schema = {"type": "object", "properties": {"a": {"enum": ["x"]}}, "required": ["a"]}
    votes = RedundantLoop(RedundantConfig(engine=Script('{"a":"x"}'), schema=schema))
    executor = PlanExecutor(
        {"research": agent_handler(Agent(Script("found"))), "classify": pattern_handler(votes)}
    )
    plan = ExecutionPlan((PlanStep("research", "research", "Why?"), PlanStep("classify", "classify")))
    result = await executor.execute(plan, loop_id="p")
    assert (result.output, result.usage.requests) == ('{"a":"x"}', 4)
    with pytest.raises(StepMismatch, match="expected string input, got int"):
        await one("classify", pattern_handler(votes), 3)
    wrong: Any = "vote"
    with pytest.raises(UserError, match="something with call"):
        pattern_handler(wrong)


# Finding and checking


async def test_rerank_takes_candidates() -> None:
    handler = rerank_handler(Reranker(KeywordScorer()))

    def found(step: PlanStep) -> list[Candidate]:
        return list(candidates_of(CHUNKS))

    executor = PlanExecutor({"found": found, RERANK: handler})
    result = await executor.execute(ExecutionPlan((PlanStep("f", "found", 1), PlanStep("r", RERANK))), "cats")
    assert result.output[0].source == "b.md"
    with pytest.raises(StepMismatch, match="expected RerankInput input, got string"):
        await one(RERANK, handler, "cats")


@pytest.mark.parametrize("verdict", [False, "too short", ValueError("too short")])
async def test_a_check_refuses(verdict: Any) -> None:
    def check(text: str) -> Any:
        if isinstance(verdict, Exception):
            raise verdict
        return verdict

    with pytest.raises(RuleFailed) as caught:
        await one(VALIDATE, validate_handler(check, "length"), "text")
    assert caught.value.details["rules"] == ["length"]
    if verdict:
        assert "too short" in caught.value.message


async def test_a_check_may_be_async_and_gives_the_text_on() -> None:
    async def check(text: str) -> None:
        assert text == "text"

    assert (await one(VALIDATE, validate_handler(check), "text")).output == "text"


# Tools


def tools() -> Any:
    @tool
    async def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    @tool
    async def fails() -> str:
        """Fail."""
        raise OSError("no disk")

    @tool(timeout=0.01)
    async def hangs() -> str:
        """Hang."""
        import asyncio

        await asyncio.Event().wait()
        return ""

    @tool(available=lambda: False)
    async def gone() -> str:
        """Be gone."""
        return ""

    @tool(safety=Safety.AT_MOST_ONCE)
    async def pays() -> str:
        """Pay."""
        return ""

    return tool_handler([add, fails, hangs, gone, pays])


async def test_a_tool_is_run() -> None:
    handler = tools()
    assert (await one(TOOL, handler, {"name": "add", "arguments": {"a": 1, "b": 2}})).output == 3

    def asks(step: PlanStep) -> ToolCall:
        return ToolCall("c", "add", '{"a": 2, "b": 2}')

    executor = PlanExecutor({"asks": asks, TOOL: handler})
    result = await executor.execute(ExecutionPlan((PlanStep("a", "asks", 1), PlanStep("t", TOOL))))
    assert result.output == 4


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"name": "sing"}, ToolNotFound),
        ({"name": "fails"}, ToolExecutionFailed),
        ({"name": "hangs"}, ToolTimeout),
        ({"name": "gone"}, ToolUnavailable),
        ({"name": "pays"}, UserError),
        ({"name": "add", "arguments": {"a": "x"}}, ToolExecutionFailed),
        ("add", StepMismatch),
        ({"arguments": {}}, StepMismatch),
    ],
)
async def test_how_a_tool_fails(given: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        await one(TOOL, tools(), given)


@pytest.mark.parametrize(("safety", "runs"), [(Safety.AT_LEAST_ONCE, 1), (Safety.IDEMPOTENT, 4)])
async def test_only_an_idempotent_tool_is_run_again_by_itself(safety: Safety, runs: int) -> None:
    """The call is repeated once, and so is the step."""
    ran: list[int] = []

    @tool(safety=safety)
    async def breaks() -> str:
        """Break."""
        ran.append(1)
        raise OSError("no disk")

    with pytest.raises(ToolExecutionFailed) as caught:
        await one(TOOL, tool_handler([breaks]), {"name": "breaks"})
    assert (len(ran), caught.value.retryable) == (runs, safety is Safety.IDEMPOTENT)


ASKED = ToolCall("c", "add", '{"a": 2, "b": 2}')


@pytest.mark.parametrize(
    "given", [ASKED, [ASKED], Result(assistant("", ASKED)), StepOutput("so", tool_calls=(ASKED,))], ids=repr
)
def test_a_call_is_read_from_what_was_recorded(given: Any) -> None:
    assert call_of(given, "new") == call_of(to_builtins(given), "new") == ASKED


def test_a_call_by_its_name() -> None:
    assert call_of({"name": "add", "arguments": {"a": 1}}, "new") == ToolCall("new", "add", '{"a":1}')
    assert call_of({"name": "add", "id": "x", "arguments": {"a": 1}}, "new") == ToolCall(
        "new", "add", '{"a":1}'
    )
    assert call_of({"name": "add"}, "new") == ToolCall("new", "add", "{}")
    assert [call_of(other, "new") for other in ("add", None, {"name": 3}, [ASKED, ASKED], {})] == [None] * 5


# Reading what came before


def test_what_a_step_may_be_given() -> None:
    candidates = candidates_of(CHUNKS)
    assert chunks_of(candidates) == tuple(CHUNKS)
    assert StepInput.of("text").text == "text"
    assert StepInput.of({"a": 1}).text == '{"a":1}'
    assert StepInput.of([]).text == "[]"
    assert StepInput.of([1, "x"]).raw == [1, "x"]
    assert StepInput.of(ContextIR(tuple(CHUNKS))).candidates == candidates
    assert StepInput.of(CHUNKS).context.text.startswith("Relevant context:\n\n[1] (a.md): Rivers flood")
    assert ContextIR().text == ""
    assert StepInput.of(StepOutput("said", candidates)).text == "said"
    calls = (ToolCall("c", "look", "{}"),)
    assert StepInput.of(calls[0]).tool_calls == StepInput.of(list(calls)).tool_calls == calls
    assert StepInput.of(Result(assistant("", *calls))).tool_calls == calls
    results = (ToolResult("c", "look", "found"), ToolResult("d", "look", error="gone"))
    assert StepInput.of(results[0]).tool_results == results[:1]
    assert (StepInput.of(list(results)).tool_results, StepInput.of(results).text) == (results, "found\ngone")
    assert StepInput.of(Request((user("Hi"),))).text == "Hi"
    again = StepInput.of(RerankInput("q", candidates))
    assert StepInput.of(again) is again
    assert (again.query, again.candidates) == ("q", candidates)


async def test_an_agents_tools_are_run_as_in_its_loops() -> None:
    """What is not on offer is not run, filters refuse and change calls, and results are cut."""
    ran: list[str] = []

    @tool
    async def say(text: str) -> str:
        """Say."""
        ran.append(text)
        return text

    @tool
    async def hidden() -> str:
        """Hide."""
        ran.append("hidden")
        return ""

    async def prepare(_: Any, definitions: list[Any]) -> list[Any]:
        return [one for one in definitions if one.name != "hidden"]

    async def polite(_: Any, calls: Sequence[ToolCall]) -> ToolCallFilterResult:
        (call,) = calls
        if call.arguments["text"] == "damn":
            return ToolCallFilterResult(rejected=(ToolCallRejection(call, "be polite"),))
        return ToolCallFilterResult((replace(call, args_json='{"text": "' + "please " * 40 + '"}'),))

    agent = Agent(
        "test",
        tools=[say, hidden],
        tool_filters=[polite],
        features=[ToolsPrepare(prepare), ToolOutputTruncation(20)],
    )
    handler = tool_handler(agent)
    output = (await one(TOOL, handler, {"name": "say", "arguments": {"text": "now"}})).output
    assert ran == ["please " * 40]
    assert output.startswith("please")
    assert "please " * 40 not in output
    with pytest.raises(RuleFailed, match="be polite") as caught:
        await one(TOOL, handler, {"name": "say", "arguments": {"text": "damn"}})
    assert caught.value.retryable is False
    with pytest.raises(ToolUnavailable, match="not on offer"):
        await one(TOOL, handler, {"name": "hidden"})
    assert ran == ["please " * 40]


async def test_a_filter_that_fails_refuses() -> None:
    async def breaks(_: Any, calls: Any) -> Any:
        raise OSError("no list")

    @tool
    async def say() -> str:
        """Say."""
        raise AssertionError("it runs")

    handler = tool_handler(Agent("test", tools=[say], tool_filters=[breaks]))
    with pytest.raises(RuleFailed, match="a tool filter failed"):
        await one(TOOL, handler, {"name": "say"})
