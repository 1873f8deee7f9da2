"""The one door: whatever is asked of the system, a response comes back, and the request's own word holds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from flyball import Agent, CallDeferred, Limits, ModelRetry, ModelSettings, RunContext, tool
from flyball.constraint.grammar import schema_grammar
from flyball.core.errors import (
    ContextExceeded,
    EngineError,
    FailureCategory,
    GrammarWithoutRoot,
    JournalFailure,
)
from flyball.core.events import Event, Started
from flyball.core.messages import FinishReason, Message, Role, assistant, system, tool_result, user
from flyball.core.signals import Signal, SignalType
from flyball.core.usage import Usage
from flyball.inference.answers import Answer, multi_tool_call_answer, tool_call, tool_call_answer
from flyball.inference.request import Request
from flyball.inference.scripted import FunctionEngine, ScriptedEngine
from flyball.inference.stream import StreamEvent, TextDelta
from flyball.orchestrate.contracts import (
    ExecutionHints,
    Mode,
    OutputContract,
    SystemRequest,
    SystemResponse,
    ValidationResult,
)
from flyball.orchestrate.journal import MemoryJournal
from flyball.orchestrate.lifecycle import PATHS, transitions
from flyball.orchestrate.projections import correlate, normal_form
from flyball.orchestrate.recorded import send_signal
from flyball.orchestrate.system import System
from flyball.testing.clock import FakeClock
from flyball.testing.split import SplitDriver

SCHEMA = {
    "type": "object",
    "properties": {"sentiment": {"enum": ["positive", "negative"]}, "confidence": {"type": "number"}},
    "required": ["sentiment", "confidence"],
}
GOOD = '{"sentiment":"positive","confidence":0.95}'
HALF = '{"sentiment":"positive","confidence":"high"}'


@tool
async def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@tool
async def broken() -> str:
    """Break."""
    raise RuntimeError("out of order")


def asking(text: str = "hi", **fields: Any) -> SystemRequest:
    return SystemRequest(messages=(user(text),), **fields)


def structured(**fields: Any) -> SystemRequest:
    contract = OutputContract(schema=SCHEMA, **fields)
    return asking(mode=Mode.STRUCTURED, output=contract)


async def handled(request: SystemRequest, *answers: Answer, **options: Any) -> SystemResponse:
    return await System(ScriptedEngine(*answers), **options).handle(request)


def code(response: SystemResponse) -> str:
    assert response.error is not None
    return response.error.code


# Chat


async def test_a_chat_fills_content_tool_calls_and_usage() -> None:
    asked = replace(tool_call_answer("add", {"a": 1, "b": 2}), usage=Usage(input_tokens=5, output_tokens=2))
    said = replace(assistant("three"), usage=Usage(input_tokens=9, output_tokens=1))
    response = await handled(asking(), asked, said, tools=[add])
    assert response.ok
    assert response.content == "three"
    (call,) = response.tool_calls_made
    assert (call.name, call.arguments, call.result) == ("add", {"a": 1, "b": 2}, 3)
    assert (response.usage.prompt_tokens, response.usage.completion_tokens) == (14, 3)
    assert (response.usage.total_tokens, response.usage.requests, response.usage.tool_calls) == (17, 2, 1)
    assert response.structured_output is None
    assert response.validation_result is None
    assert response.confidence is None
    assert (response.model, response.finish_reason) == ("test", FinishReason.STOP)


async def test_the_messages_are_history_and_prompt() -> None:
    engine = ScriptedEngine("fine")
    journal = MemoryJournal()
    talk = (system("Speak English."), user("hi"), assistant("hello"), user("how are you?"))
    response = await System(engine, instructions="Be brief.", journal=journal).handle(
        SystemRequest(messages=talk)
    )
    assert response.content == "fine"
    sent = engine.calls[0].messages
    assert sent[0].text == "Be brief.\n\nSpeak English."
    assert sent[1:] == talk[1:]
    started = (await journal.read(response.loop_id))[0]
    assert isinstance(started, Started)
    assert started.prompt == talk[-1]


async def test_a_conversation_may_go_on_from_tool_results() -> None:
    engine = ScriptedEngine("three")
    asked = tool_call_answer("add", {"a": 1, "b": 2}, "one")
    request = SystemRequest(messages=(user("1+2?"), asked, tool_result("one", "add", 3)))
    response = await System(engine, tools=[add]).handle(request)
    assert response.content == "three"
    assert not response.tool_calls_made, "it was made before this request"


# Ids


async def test_ids_that_are_given_go_on() -> None:
    journal = MemoryJournal()
    request = asking(request_id="r", session_id="s", trace_id="t")
    response = await System(ScriptedEngine("yes"), journal=journal).handle(request)
    assert (response.request_id, response.session_id, response.trace_id) == ("r", "s", "t")
    for ids, _ in correlate(await journal.read(response.loop_id)):
        assert (ids.request_id, ids.session_id, ids.trace_id) == ("r", "s", "t")


async def test_ids_that_are_missing_are_filled_in() -> None:
    journal = MemoryJournal()
    served = System(ScriptedEngine("yes", "yes"), journal=journal)
    one, two = await served.handle(asking()), await served.handle(asking())
    assert len({one.request_id, two.request_id, one.trace_id, two.trace_id}) == 4
    assert int(one.request_id, 16)
    assert len(one.trace_id) == 32
    assert one.session_id == ""
    started = (await journal.read(one.loop_id))[0]
    assert isinstance(started, Started)
    assert started.correlation.request_id == one.request_id


async def test_two_requests_of_a_session_are_two_loops() -> None:
    engine = ScriptedEngine("one", "two")
    served = System(engine, journal=MemoryJournal())
    one, two = [await served.handle(asking(session_id="s")) for _ in range(2)]
    assert one.loop_id != two.loop_id
    assert one.session_id == two.session_id == "s"
    assert engine.calls[1].messages == (user("hi"),), "nothing of the first is in the second"


# Hints


async def test_hints_reach_the_engine_untouched() -> None:
    engine = ScriptedEngine("yes")
    hints = ExecutionHints(max_tokens=9, temperature=0.0, top_p=0.5, options={"vendor": {"deep": [None]}})
    agent = Agent(engine, settings=ModelSettings(temperature=0.7, seed=4))
    await System(agent).handle(asking(hints=hints))
    assert engine.calls[0].settings == ModelSettings(
        max_tokens=9, temperature=0.0, top_p=0.5, seed=4, options={"vendor": {"deep": [None]}}
    )


async def test_without_hints_the_engines_defaults_hold() -> None:
    engine = ScriptedEngine("yes")
    await System(engine).handle(asking(hints=ExecutionHints(max_tokens=0, timeout=0.0, top_p=0.0)))
    assert engine.calls[0].settings == ModelSettings()


def waiting(clock: FakeClock) -> ScriptedEngine:
    """An engine during whose answer an hour passes."""

    async def wait() -> None:
        await clock.advance(3600)
        await asyncio.sleep(0)

    return ScriptedEngine("too late", pause=wait)


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_deadline_ends_in_cancelled(streamed: bool) -> None:
    clock = FakeClock()
    served = System(waiting(clock), clock=clock)
    request = asking(hints=ExecutionHints(timeout=5.0))
    response = (await pieces_of(served, request))[-1] if streamed else await served.handle(request)
    assert isinstance(response, SystemResponse)
    assert code(response) == "CANCELLED_TIMEOUT"
    assert response.error is not None
    assert (response.error.category, response.error.retryable) == (FailureCategory.CANCELLATION, False)


async def test_a_request_has_no_more_time_than_the_agent() -> None:
    clock = FakeClock()
    served = System(waiting(clock), limits=Limits(timeout=5.0), clock=clock)
    response = await served.handle(asking(hints=ExecutionHints(timeout=10_000.0)))
    assert response.error is not None
    assert "5 s" in response.error.message


# Tools


async def test_a_request_may_use_the_tools_that_it_names() -> None:
    engine = ScriptedEngine("yes", "yes")
    served = System(engine, tools=[add, broken])
    await served.handle(asking(tools=("add",)))
    await served.handle(asking())
    names = [[definition.name for definition in call.tools] for call in engine.calls]
    assert names == [["add"], ["add", "broken"]], "none named means all"


async def test_a_call_to_a_tool_outside_the_whitelist_is_not_run() -> None:
    response = await handled(
        asking(tools=("add",)), tool_call_answer("broken"), "never mind", tools=[add, broken]
    )
    assert response.content == "never mind"
    assert not response.tool_calls_made


async def test_a_tool_that_there_is_not() -> None:
    response = await handled(asking(tools=("add", "fly")), tools=[add, broken])
    assert code(response) == "CONFIG_INVALID_REQUEST"
    assert response.error is not None
    assert response.error.message == "tools: there is no 'fly'; there are: add, broken"
    assert response.error.details is not None
    assert response.error.details["field"] == "tools"


async def test_metadata_and_deps_reach_the_tools() -> None:
    seen: list[Any] = []

    @tool
    async def look(ctx: RunContext[Any]) -> str:
        """Look."""
        seen.append((ctx.metadata, ctx.deps))
        return "seen"

    await handled(
        asking(metadata={"customer": 7}), tool_call_answer("look"), "done", tools=[look], deps="database"
    )
    assert seen == [({"customer": 7}, "database")]


# Structured


async def test_a_structured_request_fills_output_and_validation() -> None:
    engine = ScriptedEngine(GOOD)
    response = await System(engine).handle(structured())
    assert response.ok
    assert response.content == GOOD
    assert response.structured_output == {"sentiment": "positive", "confidence": 0.95}
    assert response.validation_result == ValidationResult(passed=1)
    assert engine.calls[0].output is not None
    assert engine.calls[0].output.schema == SCHEMA


@pytest.mark.parametrize(
    ("own", "hints", "temperature", "thinking"),
    [
        (ModelSettings(), ExecutionHints(), 0.3, False),
        (ModelSettings(temperature=0.9, thinking=True), ExecutionHints(), 0.9, True),
        (ModelSettings(temperature=0.9), ExecutionHints(temperature=0.0), 0.0, False),
    ],
)
async def test_a_structured_request_is_calm_unless_told_otherwise(
    own: ModelSettings, hints: ExecutionHints, temperature: float, thinking: bool
) -> None:
    engine = ScriptedEngine(GOOD)
    await System(engine, settings=own).handle(replace(structured(), hints=hints))
    settings = engine.calls[0].settings
    assert (settings.temperature, settings.thinking) == (temperature, thinking)


async def test_an_answer_in_a_call_is_the_raw_text() -> None:
    async def answer(request: Request) -> Message:
        return tool_call_answer(request.tools[0].name, GOOD)

    response = await System(FunctionEngine(answer)).handle(structured())
    assert response.content == GOOD
    assert response.structured_output == {"sentiment": "positive", "confidence": 0.95}
    assert not response.tool_calls_made, "the output's own call is no tool"


async def test_broken_json_is_put_right_where_that_is_allowed() -> None:
    raw = "{'sentiment': 'positive', 'confidence': 1,}"
    response = await handled(structured(), raw)
    assert response.content == raw
    assert response.structured_output == {"sentiment": "positive", "confidence": 1}
    assert response.validation_result is not None
    assert (response.validation_result.passed, response.validation_result.repairs) == (1, 1)
    assert response.validation_result.warnings
    refused = await handled(structured(repair_allowed=False), raw)
    assert code(refused) == "CONSTRAINT_JSON_INVALID"


async def test_the_model_is_asked_again() -> None:
    journal = MemoryJournal()
    response = await handled(structured(), HALF, GOOD, journal=journal)
    assert response.ok
    assert response.validation_result == ValidationResult(passed=1, failed=1)
    moves = transitions(await journal.read(response.loop_id))
    assert [str(move.to) for move in moves][-4:] == ["validate", "execute", "validate", "complete"]
    assert moves[-1].attempt == 2


async def test_used_up_retries_end_in_the_category_of_the_last_failure() -> None:
    response = await handled(structured(), "nothing", HALF)
    assert code(response) == "CONSTRAINT_SCHEMA_INVALID"
    assert response.error is not None
    assert (response.error.category, response.error.retryable) == (FailureCategory.CONSTRAINT, True)
    assert response.error.details is not None
    assert response.error.details["path"] == "confidence"
    assert response.error.caused_by is not None
    assert "no acceptable answer" in response.error.caused_by


async def test_what_is_partly_valid_is_given_back_with_a_warning() -> None:
    response = await handled(structured(), HALF, HALF)
    assert response.content == HALF
    assert response.structured_output == {"sentiment": "positive", "confidence": "high"}
    assert response.validation_result is not None
    assert response.validation_result.failed == 2
    assert response.validation_result.violations == ('confidence: "high" is not of type "number"',)
    assert response.validation_result.warnings == ("the output is given back although it is not valid",)


async def test_strictly_any_violation_is_the_end_and_nothing_partial_is_given() -> None:
    engine = ScriptedEngine(HALF, GOOD)
    response = await System(engine).handle(structured(strict_validation=True))
    assert code(response) == "CONSTRAINT_SCHEMA_INVALID"
    assert len(engine.calls) == 1
    assert (response.content, response.structured_output) == ("", None)
    assert response.validation_result is not None
    assert response.validation_result.violations


async def test_strictly_a_rule_is_the_end_of_a_chat_too() -> None:
    def never(ctx: RunContext[Any], output: str) -> str:
        raise ModelRetry("not like that")

    engine = ScriptedEngine("one", "two")
    strict = OutputContract(strict_validation=True)
    response = await System(engine, validators=[never]).handle(asking(output=strict))
    assert (code(response), response.content) == ("VALIDATION_RULE_FAILED", "")
    assert len(engine.calls) == 1


async def test_a_failed_model_call_says_of_which_model_and_after_how_much() -> None:
    @tool
    async def look() -> str:
        """Look."""
        return "found"

    asks = tool_call_answer("look", usage=Usage(input_tokens=30, output_tokens=4))
    engine = ScriptedEngine(asks, EngineError("no power"), name="small")
    response = await System(engine, tools=[look]).handle(asking())
    assert response.error is not None
    assert response.error.details == {"model": "small", "total_tokens": 34}
    told = await System(ScriptedEngine(ContextExceeded("too long", tokens=9, model="own"))).handle(asking())
    assert told.error is not None
    assert told.error.details == {"model": "own", "total_tokens": 0, "tokens": 9}, "what an engine says holds"


async def test_strictly_a_rule_is_the_end_too() -> None:
    def sure(_: RunContext[Any], output: Any) -> Any:
        if output["confidence"] < 0.99:
            raise ModelRetry("Be more confident.")
        return output

    strict = await handled(structured(strict_validation=True), GOOD, GOOD, validators=[sure])
    assert code(strict) == "VALIDATION_RULE_FAILED"
    lenient = await handled(structured(), GOOD, GOOD, validators=[sure])
    assert code(lenient) == "VALIDATION_RULE_FAILED", "the last failure was a rule's"
    assert lenient.error is not None
    assert lenient.error.message == "Be more confident."
    assert lenient.structured_output == {"sentiment": "positive", "confidence": 0.95}
    assert lenient.validation_result is not None
    assert lenient.validation_result.violations == ("Be more confident.",)


async def test_a_structured_request_needs_a_schema() -> None:
    engine = ScriptedEngine()
    response = await System(engine).handle(asking(mode=Mode.STRUCTURED))
    assert code(response) == "CONFIG_SCHEMA_REQUIRED"
    assert not engine.calls
    assert response.loop_id == ""


async def test_a_schema_is_kept_in_a_chat_too() -> None:
    engine = ScriptedEngine(GOOD)
    response = await System(engine).handle(asking(output=OutputContract(schema=SCHEMA)))
    assert response.structured_output == {"sentiment": "positive", "confidence": 0.95}
    assert engine.calls[0].settings == ModelSettings(), "the settings are a chat's"


async def test_a_grammar_reaches_the_decoder() -> None:
    engine = ScriptedEngine("yes", GOOD)
    grammar, of_schema = 'root ::= "yes"', schema_grammar(SCHEMA)
    await System(engine).handle(asking(output=OutputContract(grammar=grammar)))
    await System(engine).handle(structured(grammar=of_schema))
    assert [call.grammar for call in engine.calls] == [grammar, of_schema]


@pytest.mark.parametrize("contract", [{"repair_allowed": False}, {"strict_validation": True}])
async def test_an_answer_that_breaks_its_grammar_is_the_end_where_nothing_may_be_put_right(
    contract: dict[str, Any],
) -> None:
    engine = ScriptedEngine(GOOD, GOOD)
    response = await System(engine).handle(structured(grammar='root ::= "yes"', **contract))
    assert code(response) == "CONSTRAINT_GRAMMAR_REJECTED"
    assert len(engine.calls) == 1


async def test_the_model_reads_where_its_answer_breaks_its_grammar() -> None:
    engine = ScriptedEngine("no", "yes")
    response = await System(engine).handle(asking(output=OutputContract(grammar='root ::= "yes"')))
    assert response.content == "yes"
    assert response.validation_result == ValidationResult(passed=1, failed=1)
    assert "line 1, column 1: 'no' may not stand there" in str(engine.calls[1].messages[-1].parts[0])


async def test_a_grammar_that_is_none_is_refused_before_anything_is_recorded() -> None:
    engine, journal = ScriptedEngine("yes"), MemoryJournal()
    system = System(engine, journal=journal)
    response = await system.handle(asking(output=OutputContract(grammar='answer ::= "yes"')))
    assert response.error is not None
    assert response.error.code == "CONFIG_GRAMMAR_NO_ROOT"
    assert not engine.calls
    assert not await journal.loops()
    with pytest.raises(GrammarWithoutRoot):
        System(engine, grammar='answer ::= "yes"')


async def test_an_agent_with_an_output_type_of_its_own() -> None:
    agent = Agent(ScriptedEngine(tool_call_answer("final_result", {"result": [1, 2]})), output=list[int])
    response = await System(agent).handle(asking())
    assert response.structured_output == [1, 2]
    wrong = tool_call_answer("final_result", {"result": "x"})
    failed = await System(Agent(ScriptedEngine(wrong, wrong), output=list[int])).handle(asking())
    assert code(failed) == "CONSTRAINT_SCHEMA_INVALID"
    assert failed.content == '{"result":"x"}'


async def test_the_phases_of_each_mode() -> None:
    journal = MemoryJournal()
    for request, answer in ((asking(), "yes"), (structured(), GOOD)):
        response = await handled(request, answer, journal=journal)
        moves = transitions(await journal.read(response.loop_id))
        assert ("init", *[str(move.to) for move in moves]) == PATHS[request.mode].phases


# What goes wrong


async def test_a_mode_that_is_not_served() -> None:
    wrong: Any = "talk"
    response = await handled(asking(mode=wrong))
    assert code(response) == "CONFIG_INVALID_REQUEST"
    assert response.error is not None
    assert response.error.message.endswith("it serves chat, structured, plan, redundant")
    assert System("test").modes == tuple(Mode)


async def test_a_request_that_makes_no_sense() -> None:
    response = await handled(SystemRequest(request_id="r", messages=()))
    assert code(response) == "CONFIG_INVALID_REQUEST"
    assert response.request_id == "r"
    assert response.error is not None
    assert response.error.details == {"field": "messages"}


async def test_no_engine() -> None:
    assert code(await System().handle(asking())) == "CONFIG_NO_ENGINE"


async def test_a_failing_engine_and_what_had_been_said_before() -> None:
    asked = multi_tool_call_answer(tool_call("add", {"a": 1, "b": 2}))
    asked = replace(asked, parts=(*assistant("Let me see.").parts, *asked.parts))
    failure = ContextExceeded("too long", tokens=9000)
    response = await handled(asking(), asked, failure, tools=[add])
    assert code(response) == "INFERENCE_CONTEXT_EXCEEDED"
    assert response.error is not None
    assert response.error.details == {"model": "test", "total_tokens": 0, "tokens": 9000}
    assert response.content == "Let me see."
    assert response.tool_calls_made[0].result == 3
    assert response.usage.requests == 2
    assert response.finish_reason is FinishReason.ERROR


async def test_an_error_keeps_its_cause() -> None:
    response = await handled(asking(), OSError("connection refused"))
    assert code(response) == "INFERENCE_ENGINE_ERROR"
    assert response.error is not None
    assert response.error.caused_by == "OSError: connection refused"


async def test_a_failing_tool_does_not_fail_the_request() -> None:
    response = await handled(asking(), tool_call_answer("broken"), "never mind", tools=[broken])
    assert response.ok
    (call,) = response.tool_calls_made
    assert call.error is not None
    assert call.code == "TOOL_EXECUTION_FAILED"


async def test_a_loop_without_an_end() -> None:
    endless = [tool_call_answer("add", {"a": n, "b": n}) for n in range(5)]
    response = await handled(asking(), *endless, tools=[add], limits=Limits(max_iterations=3))
    assert code(response) == "ORCHESTRATION_ITERATION_LIMIT"
    assert len(response.tool_calls_made) == 3


class FullDisk(MemoryJournal):
    """A journal that cannot be written any more after some events."""

    async def append(self, loop_id: str, events: Any, expected: int) -> int:
        if expected:
            raise self.failure
        return await super().append(loop_id, events, expected)

    failure: Exception = JournalFailure("the disk is full")


async def test_a_journal_that_breaks() -> None:
    journal = FullDisk()
    response = await handled(asking(), "yes", journal=journal)
    assert code(response) == "ORCHESTRATION_JOURNAL_FAILED"
    assert await journal.loops() == [response.loop_id], "so that it can be resumed"


async def test_what_nobody_foresaw() -> None:
    journal = FullDisk()
    journal.failure = ZeroDivisionError("a bug")
    response = await handled(asking(), "yes", journal=journal)
    assert code(response) == "ORCHESTRATION_FAILED"
    assert response.error is not None
    assert response.error.caused_by == "ZeroDivisionError: a bug"


async def test_somebody_cancels_the_loop() -> None:
    journal = MemoryJournal()
    called = asyncio.Event()

    async def tell() -> None:
        called.set()

    engine = ScriptedEngine(tool_call_answer("_add", {"a": 1, "b": 2}), pause=tell)
    served = System(engine, tools=[tool(approval=True)(_add)], journal=journal)
    serving = asyncio.create_task(served.handle(asking()))
    await called.wait()
    (loop_id,) = await journal.loops()
    assert await journal.wait(loop_id, 1), "it waits for approval now"
    assert await send_signal(journal, loop_id, Signal(SignalType.CANCEL, by="ann", text="enough"))
    response = await serving
    assert code(response) == "CANCELLED_SIGNAL"
    assert response.error is not None
    assert response.error.details == {"by": "ann", "reason": "enough"}
    assert not response.tool_calls_made


async def _add(a: int, b: int) -> int:
    """Add."""
    return a + b


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_tool_that_nobody_can_approve(streamed: bool) -> None:
    served = System(ScriptedEngine("yes"), tools=[tool(approval=True)(_add)])
    response = (await pieces_of(served, asking()))[-1] if streamed else await served.handle(asking())
    assert isinstance(response, SystemResponse)
    assert code(response) == "CONFIG_USAGE"
    assert response.error is not None
    assert "approval" in response.error.message


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_run_that_waits_for_results_says_so_and_can_be_found(streamed: bool) -> None:
    @tool
    async def later() -> str:
        raise CallDeferred

    journal = MemoryJournal()
    served = System(ScriptedEngine(tool_call("later"), "ok"), tools=[later], journal=journal)
    response = (await pieces_of(served, asking()))[-1] if streamed else await served.handle(asking())
    assert isinstance(response, SystemResponse)
    assert code(response) == "ORCHESTRATION_DEFERRED"
    assert (response.structured_output, response.usage.requests) == (None, 1)
    assert isinstance((await journal.read(response.loop_id))[0], Started)


async def test_cancelling_the_task_goes_through_and_leaves_the_loop() -> None:
    journal = MemoryJournal()
    started = asyncio.Event()

    async def wait() -> None:
        started.set()
        await asyncio.Event().wait()

    agent = Agent(ScriptedEngine("never", "hello", pause=wait))
    serving = asyncio.create_task(System(agent, journal=journal).handle(asking()))
    await started.wait()
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving
    (loop_id,) = await journal.loops()
    agent = Agent(ScriptedEngine("hello"))
    assert (await agent.resume(loop_id, journal)).output == "hello"


# Streams


async def pieces_of(served: System, request: SystemRequest) -> list[StreamEvent | SystemResponse]:
    return [piece async for piece in served.stream(request)]


def text_of(pieces: list[StreamEvent | SystemResponse]) -> str:
    return "".join([piece.text for piece in pieces if isinstance(piece, TextDelta)])


async def test_a_stream_gives_the_pieces_and_last_the_response() -> None:
    journal = MemoryJournal()
    answers = (tool_call_answer("add", {"a": 1, "b": 2}, "one"), "the sum is three")
    pieces = await pieces_of(
        System(ScriptedEngine(*answers, chunk=4), tools=[add], journal=journal), asking(request_id="r")
    )
    response = pieces[-1]
    assert isinstance(response, SystemResponse)
    assert not [piece for piece in pieces[:-1] if isinstance(piece, SystemResponse)]
    assert text_of(pieces) == response.content == "the sum is three"
    assert response.request_id == "r"
    assert response.tool_calls_made[0].result == 3
    plain = await handled(asking(request_id="r"), *answers, tools=[add], journal=journal)
    streamed = normal_form(await journal.read(response.loop_id))
    assert streamed == normal_form(await journal.read(plain.loop_id))


async def test_a_stream_that_breaks_off_ends_with_what_was_said() -> None:
    pieces = await pieces_of(System(ScriptedEngine("hello world", chunk=3, fail_after=2)), asking())
    response = pieces[-1]
    assert isinstance(response, SystemResponse)
    assert code(response) == "INFERENCE_ENGINE_ERROR"
    assert response.content == "hello "


async def test_a_stream_that_runs_out_of_time_ends_with_what_was_said() -> None:
    clock = FakeClock()
    served = System(ScriptedEngine("hello world", chunk=3), clock=clock)
    said: list[str] = []
    last: object = None
    async for last in served.stream(asking(hints=ExecutionHints(timeout=5.0))):
        if isinstance(last, TextDelta):
            said.append(last.text)
            if len(said) == 2:
                await clock.advance(10)
    assert isinstance(last, SystemResponse)
    assert code(last) == "CANCELLED_TIMEOUT"
    assert last.content == "".join(said) == "hello "


async def test_a_structured_stream() -> None:
    pieces = await pieces_of(System(ScriptedEngine(HALF, GOOD, chunk=5)), structured())
    response = pieces[-1]
    assert isinstance(response, SystemResponse)
    assert text_of(pieces) == HALF + GOOD, "what was refused had been said all the same"
    assert (response.content, response.ok) == (GOOD, True)


async def test_a_request_that_is_refused_is_one_response() -> None:
    for mode in (Mode.STRUCTURED, Mode.REDUNDANT):
        (response,) = await pieces_of(System(ScriptedEngine()), asking(mode=mode))
        assert isinstance(response, SystemResponse)
        assert code(response) == "CONFIG_SCHEMA_REQUIRED"


async def test_closing_a_stream_early_ends_the_call_and_leaves_the_loop() -> None:
    journal = MemoryJournal()
    closed: list[bool] = []

    class Watched(ScriptedEngine):
        async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
            try:
                async for event in super().stream(request):
                    yield event
            finally:
                closed.append(True)

    stream = System(Watched("hello world", chunk=3), journal=journal).stream(asking())
    assert isinstance(await anext(stream), StreamEvent)
    await stream.aclose()
    assert closed == [True]
    (loop_id,) = await journal.loops()
    assert (await Agent(ScriptedEngine("again")).resume(loop_id, journal)).output == "again"


# Elsewhere, and whatever comes


async def test_another_driver_may_drive() -> None:
    answers = (tool_call_answer("add", {"a": 1, "b": 2}, "one"), "three")
    response = await handled(asking(), *answers, tools=[add], runtime=SplitDriver())
    assert (response.content, response.tool_calls_made[0].result) == ("three", 3)
    *pieces, last = await pieces_of(System(ScriptedEngine("yes"), runtime=SplitDriver()), asking())
    assert pieces[0] == TextDelta(0, "yes")
    assert isinstance(last, SystemResponse)
    assert last.content == "yes"


async def test_an_agent_may_be_given_more() -> None:
    agent = Agent(ScriptedEngine(tool_call_answer("add", {"a": 1, "b": 2}), "three"))
    served = System(agent, tools=[add])
    assert (await served.handle(asking())).tool_calls_made[0].result == 3
    assert not agent.config.tools


async def test_an_engine_is_made_once() -> None:
    served = System("test:hello")
    assert [(await served.handle(asking())).content for _ in range(2)] == ["hello", "hello"]
    first = served._engine  # pyright: ignore[reportPrivateUsage]
    await served.handle(asking())
    assert served._engine is first  # pyright: ignore[reportPrivateUsage]


answers = st.sampled_from(
    [
        "yes",
        "",
        GOOD,
        HALF,
        "{'sentiment': 'positive'",
        tool_call_answer("add", {"a": 1, "b": 2}),
        tool_call_answer("add", {"a": "x"}),
        tool_call_answer("broken"),
        tool_call_answer("nothing", "{"),
        multi_tool_call_answer(tool_call("add", {"a": 1, "b": 2}), tool_call("broken")),
        Message(Role.ASSISTANT, assistant("cut").parts, finish_reason=FinishReason.LENGTH),
        Message(Role.ASSISTANT, (), finish_reason=FinishReason.CONTENT_FILTER),
        EngineError("no power"),
        ValueError("a bug in the engine"),
    ]
)
talks = st.lists(
    st.sampled_from(
        [
            system("Be brief."),
            user("hi"),
            assistant("hello"),
            tool_call_answer("add", {}, "one"),
            Message(Role.TOOL),
        ]
    ),
    max_size=4,
).map(tuple)
requests = st.builds(
    SystemRequest,
    request_id=st.sampled_from(["", "r"]),
    messages=st.just((user("hi"),)) | talks,
    mode=st.sampled_from([*Mode, Mode.CHAT, Mode.STRUCTURED]),
    hints=st.just(ExecutionHints())
    | st.builds(
        ExecutionHints,
        max_tokens=st.sampled_from([None, 0, 5, -1]),
        timeout=st.sampled_from([None, 0.0, 60.0]),
        temperature=st.sampled_from([None, 0.0, float("nan")]),
        options=st.sampled_from([None, {"a": 1}]),
    ),
    output=st.none()
    | st.builds(
        OutputContract,
        schema=st.sampled_from(
            [None, SCHEMA, {}, {"type": "thing"}, {"type": "array", "items": {"$ref": "#"}}]
        ),
        grammar=st.sampled_from([None, "", 'root ::= "yes"']),
        repair_allowed=st.booleans(),
        strict_validation=st.booleans(),
    ),
    tools=st.sampled_from([(), ("add",), ("broken", "add"), ("fly",)]),
    metadata=st.sampled_from([None, {"a": 1}]),
)


@given(requests, st.lists(answers, max_size=5), st.booleans())
def test_whatever_is_asked_a_response_comes_back(
    request: SystemRequest, script: list[Any], streamed: bool
) -> None:
    async def ask() -> tuple[SystemResponse, list[Event]]:
        journal = MemoryJournal()
        served = System(ScriptedEngine(*script), tools=[add, broken], journal=journal)
        if streamed:
            *_, response = await pieces_of(served, request)
            assert isinstance(response, SystemResponse)
        else:
            response = await served.handle(request)
        return response, await journal.read(response.loop_id)

    response, events = asyncio.run(ask())
    assert response.request_id == (request.request_id or response.request_id)
    assert response.request_id
    assert response.trace_id
    assert bool(response.loop_id) == bool(events)
    assert SystemResponse.from_json(response.to_json()) == response
    if response.ok:
        assert response.content
        if request.output is not None and request.output.schema is not None:
            assert response.validation_result is not None
            assert response.validation_result.passed == 1
    elif not events:
        assert response.error is not None
        assert response.error.category is FailureCategory.CONFIGURATION
