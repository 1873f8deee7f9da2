from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.context import RunContext
from flyball.core.errors import ToolUnavailable
from flyball.core.messages import ResultKind, ToolResult
from flyball.core.tools import Safety
from flyball.tool import CallDeferred, FunctionTool, ModelRetry, execute, tool
from tests.tool.contexts import a_call, a_context

FAILED = {"code": "TOOL_EXECUTION_FAILED"}


async def test_a_result_answers_its_call():
    @tool
    async def weather(city: str) -> str:
        return f"sun in {city}"

    result = await execute(weather, a_call('{"city": "Rome"}', "weather"), None)
    assert result == ToolResult("call-1", "weather", "sun in Rome")
    assert not result.is_error


async def test_the_context_is_passed_on():
    @tool
    async def who(ctx: RunContext[str]) -> str:
        return ctx.deps

    assert (await execute(who, a_call(), a_context("me"))).content == "me"
    missing = await execute(who, a_call(), None)
    assert missing.error == "UserError: the tool takes a RunContext, and was run without one"


class TestFailures:
    async def test_a_retry_is_no_error(self):
        @tool
        async def guess() -> str:
            raise ModelRetry("try \ud800 again")

        result = await execute(guess, a_call(), None)
        assert result == ToolResult("call-1", "it", "try \ufffd again", status=ResultKind.RETRY)
        assert not result.is_error

    async def test_wrong_arguments_are_a_retry(self):
        @tool
        async def weather(city: str) -> str: ...

        result = await execute(weather, a_call('{"town": 1}'), None)
        assert result.status is ResultKind.RETRY
        assert "city: Field required" in result.text

    async def test_an_exception_is_an_error_with_its_type(self):
        @tool
        async def fail() -> str:
            raise ValueError("bad \ud800 luck")

        result = await execute(fail, a_call(), None)
        assert result == ToolResult("call-1", "it", error="ValueError: bad \ufffd luck", metadata=FAILED)

    async def test_a_long_message_is_cut(self):
        @tool
        async def fail() -> str:
            raise ValueError("x" * 1_000_000)

        result = await execute(fail, a_call(), None)
        assert len(result.error or "") == 4_000

    async def test_a_message_that_cannot_be_read_does_not_matter(self):
        class Rude(Exception):  # noqa: N818
            def __str__(self) -> str:
                raise RuntimeError

        class RudeRetry(ModelRetry):
            def __str__(self) -> str:
                raise RuntimeError

        async def fail(retry: bool) -> str:
            raise RudeRetry("x") if retry else Rude

        made = tool(fail)
        assert (
            await execute(made, a_call('{"retry": false}'), None)
        ).error == "Rude: its message cannot be read"
        assert (await execute(made, a_call('{"retry": true}'), None)).status is ResultKind.RETRY

    async def test_a_group_tells_what_is_inside(self):
        @tool
        async def fail() -> str:
            raise ExceptionGroup("both", [ValueError("a"), ExceptionGroup("inner", [KeyError("b")])])

        result = await execute(fail, a_call(), None)
        assert result.error == "ExceptionGroup: ValueError: a; ExceptionGroup: KeyError: 'b'"

    async def test_a_failure_of_the_taxonomy_keeps_its_code(self):
        @tool
        async def fail() -> str:
            raise ToolUnavailable("the printer is off")

        result = await execute(fail, a_call(), None)
        assert (result.error, result.metadata) == (
            "ToolUnavailable: the printer is off",
            {"code": "TOOL_UNAVAILABLE"},
        )

    async def test_a_sync_tool_fails_the_same(self):
        @tool
        def fail() -> str:
            return next(iter(()))

        result = await execute(fail, a_call(), None)
        assert result.error == "RuntimeError: StopIteration: "

    async def test_an_exit_in_a_thread_ends_no_process(self):
        @tool
        def leave() -> str:
            raise SystemExit(3)

        result = await execute(leave, a_call(), None)
        assert result.error == "RuntimeError: SystemExit: 3"

    @pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
    async def test_interrupts_and_exits_pass(self, kind: type[BaseException]):
        async def stop() -> str:
            raise kind

        coroutine = execute(tool(stop), a_call(), None)
        with pytest.raises(kind):
            coroutine.send(None)


class TestTime:
    async def test_a_call_that_takes_too_long_is_cancelled(self):
        cancelled = asyncio.Event()

        @tool(timeout=0.01)
        async def wait() -> str:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.set()
                raise
            return "never"

        result = await execute(wait, a_call(name="wait"), None)
        assert (result.error, result.metadata) == (
            "wait took longer than its time-out of 0.01 seconds",
            {"code": "TOOL_TIMEOUT"},
        )
        assert cancelled.is_set()

    async def test_it_is_a_time_out_also_if_the_tool_hides_it(self):
        @tool(timeout=0.01)
        async def wait() -> str:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise RuntimeError("stopped") from None
            return "never"

        assert (await execute(wait, a_call(), None)).metadata == {"code": "TOOL_TIMEOUT"}

    async def test_a_tools_own_time_out_is_its_failure(self):
        @tool(timeout=60)
        async def fail() -> str:
            raise TimeoutError("the server")

        result = await execute(fail, a_call(), None)
        assert (result.error, result.metadata) == ("TimeoutError: the server", FAILED)

    async def test_a_call_in_time_is_as_without(self):
        @tool(timeout=60)
        async def quick(x: int) -> int:
            return x

        assert await execute(quick, a_call('{"x": 1}'), None) == ToolResult("call-1", "it", 1)

    async def test_cancelling_the_task_cancels_the_tool(self):
        started, cancelled = asyncio.Event(), asyncio.Event()

        async def wait() -> str:
            started.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.set()
                raise
            return "never"

        for made in (tool(wait), tool(timeout=60)(wait), tool(safety="idempotent", retries=5)(wait)):
            started.clear()
            cancelled.clear()
            task = asyncio.ensure_future(execute(made, a_call(), None))
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert cancelled.is_set()

    async def test_a_cancellation_of_something_inside_is_the_tools_failure(self):
        @tool
        async def fail() -> str:
            inner = asyncio.ensure_future(asyncio.Event().wait())
            inner.cancel()
            await inner
            return "never"

        result = await execute(fail, a_call(), None)
        assert (result.error, result.metadata) == ("CancelledError", FAILED)


class Flaky:
    """Fails a number of times, then works."""

    def __init__(self, failures: int, error: BaseException) -> None:
        self.calls = 0
        self.failures = failures
        self.error = error

    async def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self.failures:
            raise self.error
        return "worked"


class TestRepeating:
    @given(st.integers(0, 5), st.one_of(st.none(), st.integers(0, 5)))
    async def test_an_idempotent_tool_is_repeated_as_often_as_it_says(
        self, failures: int, retries: int | None
    ):
        flaky = Flaky(failures, OSError("gone"))
        made = tool(name="flaky", safety="idempotent", retries=retries)(flaky)
        result = await execute(made, a_call(), None)
        allowed = 1 if retries is None else retries
        assert flaky.calls == min(failures, allowed) + 1
        assert result.is_error == (failures > allowed)

    @pytest.mark.parametrize("safety", [Safety.AT_LEAST_ONCE, Safety.AT_MOST_ONCE])
    async def test_others_are_not(self, safety: Safety):
        flaky = Flaky(1, OSError("gone"))
        result = await execute(tool(name="flaky", safety=safety, retries=3)(flaky), a_call(), None)
        assert (flaky.calls, result.error) == (1, "OSError: gone")

    async def test_a_retry_goes_to_the_model_at_once(self):
        flaky = Flaky(1, ModelRetry("no"))
        result = await execute(tool(name="flaky", safety="idempotent", retries=3)(flaky), a_call(), None)
        assert (flaky.calls, result.status) == (1, ResultKind.RETRY)

    async def test_a_time_out_is_not_repeated(self):
        calls: list[int] = []

        @tool(safety="idempotent", retries=3, timeout=0.01)
        async def wait() -> str:
            calls.append(1)
            await asyncio.Event().wait()
            return "never"

        assert (await execute(wait, a_call(), None)).metadata == {"code": "TOOL_TIMEOUT"}
        assert len(calls) == 1


@tool
async def typed(a: int, b: list[str] = [], c: dict[str, float] | None = None) -> str:  # noqa: B006
    return "fine"


arguments = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
).map(str)


@given(st.one_of(st.text(), arguments, st.binary().map(lambda raw: raw.decode("utf-8", "surrogateescape"))))
async def test_no_arguments_make_it_raise(args_json: str):
    for made in (typed, FunctionTool.from_schema(typed.__wrapped__, "given", "", {"type": "object"})):
        result = await execute(made, a_call(args_json), None)
        assert (result.call_id, result.name) == ("call-1", "it")
        result.text.encode("utf-8")


async def test_a_call_that_is_deferred_is_told_as_that() -> None:
    asked: list[int] = []

    @tool(safety="idempotent")
    async def later(x: int) -> str:
        asked.append(x)
        raise CallDeferred(f"job {x}")

    result = await execute(later, a_call('{"x": 3}', "later"), None)
    assert (result.status, result.content, result.error) == (ResultKind.DEFERRED, "job 3", None)
    assert asked == [3], "it is not tried again"
    assert CallDeferred().message == ""
