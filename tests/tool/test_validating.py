"""Validators of results: what they are shown, what they may say, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flyball.core.context import RunContext
from flyball.core.errors import UserError
from flyball.core.messages import ResultKind, ToolResult
from flyball.tool import ModelRetry, execute, tool
from flyball.tool.validating import ResultValidator
from flyball.tool.wrapped import ValidatedTool
from tests.tool.contexts import a_call, a_context


async def given_back(value: Any, *validators: ResultValidator) -> ToolResult:
    """What comes of a tool's result, once with the validators in its options, once with them around it."""

    @tool(validators=validators)
    async def own() -> object:
        return value

    @tool
    async def bare() -> object:
        return value

    assert own.wants_context is bool(validators)
    around = ValidatedTool(bare, validators)
    assert around.wants_context
    results = [await execute(one, a_call(), a_context("deps", tool_name="it")) for one in (own, around)]
    assert results[0] == results[1]
    return results[0]


async def test_what_passes_is_left_as_it_is() -> None:
    seen: list[Any] = []

    def look(ctx: RunContext[Any], result: Any) -> None:
        seen.append((ctx.deps, ctx.tool_name, result))

    async def look_later(ctx: RunContext[Any], result: Any) -> Any:
        look(ctx, result)

    result = await given_back({"rain": {1, 2}}, look, look_later)
    assert result.content == {"rain": [1, 2]}
    assert seen == [("deps", "it", {"rain": {1, 2}})] * 4, "they are shown what the tool gave"


async def test_another_result_may_take_its_place_and_the_next_one_sees_it() -> None:
    def more(_: RunContext[Any], result: int) -> int:
        return result + 1

    async def twice(_: RunContext[Any], result: int) -> int:
        return result * 2

    assert (await given_back(1, more, twice)).content == 4
    assert (await given_back(1, twice, more)).content == 3
    yes = True
    assert (await given_back(yes, lambda _, result: not result)).content is False


class OddError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def raising(error: Exception) -> Callable[..., Any]:
    def refuse(_: RunContext[Any], __: Any) -> None:
        raise error

    return refuse


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ModelRetry("too cold"), "too cold"),
        (ValueError("too warm"), "The result was not accepted: ValueError: too warm"),
        (OddError(), "The result was not accepted: OddError: its message cannot be read"),
    ],
    ids=["retry", "error", "odd"],
)
async def test_whatever_is_raised_goes_to_the_model_as_a_retry(error: Exception, told: str) -> None:
    result = await given_back("rain", raising(error), lambda _, __: pytest.fail("not asked"))
    assert (result.status, result.content, result.error) == (ResultKind.RETRY, told, None)


@pytest.mark.parametrize("said", [True, False])
async def test_a_yes_or_a_no_is_no_result(*, said: bool) -> None:
    result = await given_back("rain", lambda _, __: said)
    assert result.status is ResultKind.RETRY
    assert f"'<lambda>' gave {said}; it must raise ModelRetry to refuse" in result.text


async def test_of_a_result_of_the_tools_own_the_content_is_looked_at() -> None:
    seen: list[Any] = []
    own = ToolResult("", "", "rain", metadata={"k": 1}, stop_loop=True)
    result = await given_back(own, lambda _, result: f"much {result}")
    assert (result.content, result.metadata, result.stop_loop) == ("much rain", {"k": 1}, True)
    for unsaid in (ToolResult("", "", error="no"), ToolResult("", "", "again", status=ResultKind.RETRY)):
        told = await given_back(unsaid, lambda _, result: seen.append(result))
        assert (told.error, told.status) == (unsaid.error, unsaid.status)
    assert seen == []


async def test_a_call_that_fails_is_not_looked_at() -> None:
    @tool(validators=[lambda _, __: pytest.fail("not asked")])
    async def breaks(n: int) -> None:
        raise KeyError("no")

    assert (await execute(breaks, a_call('{"n": 1}'), a_context())).error == "KeyError: 'no'"
    assert (await execute(breaks, a_call("{}"), a_context())).status is ResultKind.RETRY


async def test_a_refused_result_of_an_idempotent_tool_is_not_tried_again_at_once() -> None:
    runs: list[int] = []

    @tool(safety="idempotent", retries=3, validators=[raising(ValueError("no"))])
    async def look() -> str:
        runs.append(1)
        return "rain"

    assert (await execute(look, a_call(), a_context())).status is ResultKind.RETRY
    assert runs == [1]


@pytest.mark.parametrize("validators", [len, [1], "abc"], ids=["a function", "a number", "text"])
def test_validators_that_cannot_be_are_refused(validators: Any) -> None:
    with pytest.raises(UserError, match=r"validators=.* must be a list of functions"):
        tool(name="it", validators=validators)(lambda: 1)
