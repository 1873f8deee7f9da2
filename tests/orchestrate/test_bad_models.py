"""Models and engines that do what they should not: whatever comes, the run ends in an orderly way."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from flyball import Agent, Limits, tool
from flyball.core.errors import (
    ContentFilterError,
    ContextExceeded,
    EngineError,
    FlyballError,
    IncompleteToolCall,
    ModelHTTPError,
    ToolRetriesExceeded,
    UnexpectedModelBehavior,
)
from flyball.core.events import ModelAnswered, ModelFailed, Outcome
from flyball.core.history import check_history
from flyball.core.messages import (
    Audio,
    Document,
    FinishReason,
    Image,
    Message,
    Part,
    ResultKind,
    Retry,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    user,
)
from flyball.core.usage import Usage
from flyball.inference.answers import tool_call as call
from flyball.inference.request import ModelInfo, Request, Result
from flyball.inference.stream import Finish, PartStart, StreamEvent, TextDelta, ToolCallDelta
from flyball.testing.split import SplitDriver
from tests.orchestrate.conftest import Runner
from tests.orchestrate.models import Saying, Script
from tests.orchestrate.scenarios import add, said
from tests.orchestrate.where import Where, read_into


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even that")


# What an engine raises


@pytest.mark.parametrize(
    "error",
    [
        EngineError("down", server="a"),
        ModelHTTPError("429", status_code=429, retry_after=1.5),
        ContextExceeded("too long"),
        ContentFilterError("not that"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_an_engines_error_is_the_runs_error(run: Runner, error: FlyballError) -> None:
    found = await run.failing(type(error), Agent(Script(error)), "hi")
    assert (found.code, str(found), found.details) == (error.code, str(error), error.details)
    assert found.retryable == error.retryable
    assert found.partial.messages == (user("hi"),)
    assert found.partial.usage.requests == 1


@pytest.mark.parametrize(
    ("error", "retryable"),
    [
        (RuntimeError("oops"), False),
        (ConnectionResetError("gone"), True),
        (KeyError("x"), False),
        (UnprintableError(), False),
        (StopIteration(), False),
        (ExceptionGroup("both", [ValueError("a"), OSError("b")]), False),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_whatever_else_an_engine_raises_becomes_an_engine_error(
    run: Runner, error: Exception, *, retryable: bool
) -> None:
    found = await run.failing(EngineError, Agent(Script(error)), "hi")
    assert found.retryable is retryable
    assert type(error).__name__ in (found.caused_by or "") or isinstance(error, StopIteration)


async def test_an_engine_whose_own_call_was_cancelled_has_failed_and_the_run_was_not_cancelled(
    run: Runner,
) -> None:
    class Broken(Script):
        async def infer(self, request: Request) -> Result:
            raise asyncio.CancelledError

    error = await run.failing(EngineError, Agent(Broken()), "hi")
    assert error.partial.outcome is Outcome.FAILED


async def test_details_that_cannot_be_written_do_not_hide_the_error(run: Runner) -> None:
    found = await run.failing(
        EngineError, Agent(Script(EngineError("half \ud800", what=object(), ok=1))), "hi"
    )
    assert str(found) == "half �"
    assert found.details == {"what": "<object>", "ok": 1}


# What an engine gives


GIVEN: dict[str, Any] = {
    "nothing": None,
    "text": "hello",
    "a message": said(Text("hello")),
    "a result without a message": Result(None),  # pyright: ignore[reportArgumentType]
    "text that is none": Result(said(Text(5))),  # pyright: ignore[reportArgumentType]
    "arguments that are no text": Result(said(ToolCall("a", "add", {"x": 1}))),  # pyright: ignore[reportArgumentType]
}


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
async def test_an_engine_that_gives_something_else_than_an_answer_has_failed(run: Runner, given: Any) -> None:
    class Odd(Script):
        async def infer(self, request: Request) -> Result:
            return given

    error = await run.failing(EngineError, Agent(Odd(), tools=[add]), "hi")
    assert error.partial.messages == (user("hi"),)


OUT_OF_PLACE: list[Part] = [ToolResult("a", "add", 3), Retry("again"), Document("https://example.org/a.pdf")]


@pytest.mark.parametrize("part", OUT_OF_PLACE, ids=lambda part: type(part).__name__)
async def test_parts_that_an_answer_cannot_carry_are_left_out(run: Runner, part: Part) -> None:
    result = await run(Agent(Saying(Result(said(part, Text("yes"))))), "hi")
    assert result.output == "yes"
    assert result.messages[-1].parts == (Text("yes"),)
    answered = [event for event in await result.events() if isinstance(event, ModelAnswered)]
    assert len(answered[0].notes) == 1


async def test_an_answer_may_carry_images_and_sound(run: Runner) -> None:
    parts = (Text("look"), Image("https://example.org/a.png"), Audio("https://example.org/a.mp3"))
    assert (await run(Agent(Script(said(*parts))), "hi")).messages[-1].parts == parts


@pytest.mark.parametrize("role", [Role.USER, Role.SYSTEM, Role.TOOL])
async def test_an_answer_in_another_role_is_the_assistants(run: Runner, role: Role) -> None:
    result = await run(Agent(Saying(Result(Message(role, (Text("yes"),))))), "hi")
    assert result.messages[-1] == said(Text("yes"))


EMPTY: dict[str, Message] = {
    "no parts": said(),
    "empty text": said(Text("")),
    "only thinking": said(Thinking("hm")),
    "only what it cannot carry": said(Retry("x")),
}


@pytest.mark.parametrize("answer", EMPTY.values(), ids=EMPTY)
async def test_an_empty_answer_is_asked_for_again(run: Runner, answer: Message) -> None:
    script = Saying(Result(answer), "here")
    result = await run(Agent(script), "hi")
    assert result.output == "here"
    assert script.last.messages == (user(["hi", Retry("The answer was empty. Answer the request.")]),)


async def test_empty_answers_again_and_again_fail_the_run(run: Runner) -> None:
    error = await run.failing(UnexpectedModelBehavior, Agent(Script(said(), said(), "late"), retries=1), "hi")
    assert error.details["allowed"] == 1


async def test_an_empty_answer_after_tools_is_asked_for_again(run: Runner) -> None:
    result = await run(Agent(Script(call("add", {"x": 1, "y": 2}), said(), "3"), tools=[add]), "hi")
    assert result.output == "3"
    assert [message.role for message in result.messages] == ["user", "assistant", "tool", "user", "assistant"]


async def test_an_answer_that_used_up_its_tokens_in_thinking_fails_the_run(run: Runner) -> None:
    answer = said(Thinking("hm" * 1000), reason=FinishReason.LENGTH, usage=Usage(5, 100))
    error = await run.failing(UnexpectedModelBehavior, Agent(Script(answer, "late")), "hi")
    assert "max_tokens" in str(error)
    assert error.partial.usage.output_tokens == 100
    assert len(error.details["body"]) == 500


async def test_text_that_was_cut_is_still_an_answer(run: Runner) -> None:
    result = await run(Agent(Script(said(Text("it goes on and"), reason=FinishReason.LENGTH))), "hi")
    assert result.output == "it goes on and"
    assert result.messages[-1].finish_reason is FinishReason.LENGTH


async def test_a_content_filter_that_left_nothing_fails_the_run(run: Runner) -> None:
    answer = said(reason=FinishReason.CONTENT_FILTER)
    error = await run.failing(ContentFilterError, Agent(Script(answer, "late")), "hi")
    assert not error.retryable


async def test_calls_that_were_cut_go_back_to_the_model(run: Runner) -> None:
    cut = said(ToolCall("a", "add", '{"x": 1, "y'), reason=FinishReason.LENGTH)
    result = await run(Agent(Script(cut, call("add", {"x": 1, "y": 2}), "3"), tools=[add]), "hi")
    assert result.messages[2].tool_results[0].status is ResultKind.RETRY


class Sum(BaseModel):
    x: int


@tool(retries=9)
async def other(x: int) -> int:
    """May be called wrongly more often."""
    return x


CUT = '{"x": 1, "y'


@pytest.mark.parametrize("name", ["add", "final_result", "nobody"])
async def test_calls_that_are_cut_again_and_again_fail_the_run_as_such(run: Runner, name: str) -> None:
    answers = [said(ToolCall(str(n), name, CUT), reason=FinishReason.LENGTH) for n in range(3)]
    error = await run.failing(IncompleteToolCall, Agent(Script(*answers), tools=[add], output=Sum), "hi")
    assert "max_tokens" in str(error)
    assert (error.body, error.details["tool"]) == (CUT, name)


WRONG = {
    "what is no JSON, though it was not cut": ([ToolCall("0", "add", CUT)], FinishReason.TOOL_CALL),
    "another call was cut": ([ToolCall("0", "add"), ToolCall("1", "other", CUT)], FinishReason.LENGTH),
    "cut where it was whole": ([ToolCall("0", "add")], FinishReason.LENGTH),
}


@pytest.mark.parametrize(("calls", "reason"), WRONG.values(), ids=WRONG)
async def test_calls_that_are_only_wrong_do_not(
    run: Runner, calls: list[ToolCall], reason: FinishReason
) -> None:
    agent = Agent(Script(*[said(*calls, reason=reason)] * 3), tools=[add, other], retries=1)
    await run.failing(ToolRetriesExceeded, agent, "hi")


@pytest.mark.parametrize("depth", [100, 100_000])
async def test_arguments_nested_without_end_go_back_to_the_model(run: Runner, depth: int) -> None:
    deep = ToolCall("a", "add", '{"x":' + "[" * depth + "]" * depth + "}")
    result = await run(Agent(Script(deep, "ok"), tools=[add]), "hi")
    assert result.messages[2].tool_results[0].status is ResultKind.RETRY


async def test_a_call_without_a_name_is_a_call_to_no_tool(run: Runner) -> None:
    result = await run(Agent(Script(ToolCall("a", ""), "ok"), tools=[add]), "hi")
    assert "There is no tool ''" in result.messages[2].tool_results[0].text


@pytest.mark.parametrize(
    "asked", [ToolCall("\ud800", "add"), ToolCall("a", "\ud800"), ToolCall("a", "add", "\ud800")]
)
async def test_a_call_with_half_a_character_in_it_is_made_whole(run: Runner, asked: ToolCall) -> None:
    result = await run(Agent(Saying(Result(said(asked)), "ok"), tools=[add]), "hi")
    assert result.messages[2].tool_results[0].status is ResultKind.RETRY
    assert "\ud800" not in str(result.messages)


async def test_a_model_that_never_stops_calling_is_stopped(run: Runner) -> None:
    class Restless(Script):
        def result(self, request: Request, answer: Any) -> Result:
            return super().result(request, call("add", {"x": len(request.messages), "y": 1}))

    with pytest.raises(FlyballError) as caught:
        await run(Agent(Restless(*[""] * 100), tools=[add], limits=Limits(max_iterations=7)), "hi")
    assert caught.value.code == "ORCHESTRATION_ITERATION_LIMIT"
    assert caught.value.partial.usage.tool_calls == 7


parts: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, st.text(st.characters(), max_size=5)),
    st.builds(Thinking, st.text(st.characters(), max_size=5)),
    st.builds(
        ToolCall,
        st.sampled_from(["", "a", "a~2", "b", "\ud800"]),
        st.sampled_from(["add", "nope", "final_result", "", "\ud800"]),
        st.sampled_from(["{}", '{"x":1,"y":2}', "", "[", '{"result": 3}', "\ud800"]),
    ),
    st.sampled_from([*OUT_OF_PLACE, Image("https://example.org/a.png")]),
)
messages = st.builds(
    Message,
    st.sampled_from(Role),
    st.lists(parts, max_size=4).map(tuple),
    usage=st.none() | st.just(Usage(1, 1)),
    finish_reason=st.none() | st.sampled_from(FinishReason),
)


@given(st.lists(messages, max_size=5), st.sampled_from([str, int]), st.sampled_from(["early", "exhaustive"]))
async def test_whatever_a_model_says_the_history_stays_valid_and_both_drivers_agree(
    answers: list[Message], kind: Any, strategy: Any
) -> None:
    agent = Agent(
        Saying(*[Result(answer) for answer in answers], "done", "done", "done"),
        tools=[add],
        output=kind,
        end_strategy=strategy,
        retries=2,
        output_mode="text" if kind is str else "tool",
    )
    ends: list[Any] = []
    worlds: list[dict[str, Any]] = [{}, {"runtime": SplitDriver()}]
    for options in worlds:
        try:
            result = await agent.run("go", **options)
        except FlyballError as error:
            result = error.partial
            ends.append((error.code, str(error)))
        else:
            ends.append(result.output)
        check_history(result.messages)
        ends.append((result.messages, result.usage))
    assert ends[:2] == ends[2:]


# Streams


def streaming(pieces: Callable[[Request], AsyncIterator[Any]]) -> Agent[Any, str]:
    class Streaming:
        async def infer(self, request: Request) -> Result:
            raise NotImplementedError

        def stream(self, request: Request) -> AsyncIterator[StreamEvent]:
            return pieces(request)

        def model_info(self) -> ModelInfo:
            return ModelInfo("odd")

    return Agent(Streaming())


def giving(*events: Any) -> Callable[[Request], AsyncIterator[Any]]:
    async def pieces(_: Request) -> AsyncIterator[Any]:
        for event in events:
            if isinstance(event, BaseException):
                raise event
            yield event

    return pieces


WRONG_STREAMS: dict[str, tuple[tuple[Any, ...], type[FlyballError], str | None]] = {
    "nothing": ((), UnexpectedModelBehavior, None),
    "no Finish": ((TextDelta(0, "half"),), UnexpectedModelBehavior, "half"),
    "a call that never began": ((TextDelta(0, "a"), ToolCallDelta(1, "{")), UnexpectedModelBehavior, "a"),
    "a part that changes": ((TextDelta(0, "a"), PartStart(0, Thinking("b"))), UnexpectedModelBehavior, "a"),
    "more after the end": ((TextDelta(0, "a"), Finish(), TextDelta(0, "b")), UnexpectedModelBehavior, "a"),
    "a break": ((TextDelta(0, "a \ud800"), ConnectionResetError("gone")), EngineError, "a �"),
    "a cancellation of its own": ((TextDelta(0, "a"), asyncio.CancelledError()), EngineError, "a"),
    "an error of the taxonomy": ((ContextExceeded("long"),), ContextExceeded, None),
    "no events": ((TextDelta(0, "a"), "text"), EngineError, "a"),
}


@pytest.mark.parametrize(("events", "kind", "text"), WRONG_STREAMS.values(), ids=WRONG_STREAMS)
async def test_a_stream_that_goes_wrong_fails_the_run_and_keeps_what_came(
    where: Where, events: tuple[Any, ...], kind: type[FlyballError], text: str | None
) -> None:
    async with where.stream(streaming(giving(*events)), "hi") as stream:
        seen: list[Any] = []
        with pytest.raises(kind) as caught:
            await read_into(seen, stream.events())
        with pytest.raises(kind, match=re.escape(str(caught.value))):
            _ = stream.result
    assert type(caught.value) is kind
    assert len(seen) <= len(events) or not where.calm
    failed = [event for event in await where.journal.read(stream.loop_id) if isinstance(event, ModelFailed)]
    assert [event.partial.text if event.partial is not None else None for event in failed] == [text]
    assert caught.value.partial.messages == (user("hi"),), "what was cut off does not join the history"


async def test_a_stream_that_cannot_even_begin_fails_the_run() -> None:
    def broken(_: Request) -> AsyncIterator[Any]:
        raise OSError("no socket")

    async with streaming(broken).run_stream("hi") as stream:
        with pytest.raises(EngineError, match="no socket"):
            await anext(stream.text())
