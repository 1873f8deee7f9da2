"""Cutting what a tool gave back: what is kept, what is said, and what is left alone."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.encodable import as_text, clean_text
from flyball.core.errors import UserError
from flyball.core.messages import Image, ToolResult
from flyball.core.tokens import BYTES_PER_TOKEN
from flyball.tool import ToolOutputTruncation, execute, tool, truncate_tool_output
from flyball.tool.wrapped import TruncatedTool
from tests.strategies import json_values
from tests.tool.contexts import a_call

MARK = re.compile(r"\.\.\. \[truncated (\d+) tokens\] \.\.\.")
budgets = st.integers(1, 40)
_letters = st.text(st.sampled_from(["a", "b", "é", "漢", "🎛", "\n", "\r", " "]), max_size=300)
texts = _letters | st.text(max_size=200)


def size(text: str) -> int:
    return len(clean_text(text).encode("utf-8"))


def parts(text: str, max_tokens: int) -> tuple[str, int, str]:
    """The beginning, the number of tokens and the end of a text that is cut."""
    cut = truncate_tool_output(text, max_tokens)
    found = [one for one in MARK.finditer(cut) if _fits(clean_text(text), cut, one)]
    assert found, cut
    return cut[: found[0].start()], int(found[0][1]), cut[found[0].end() :]


def _fits(text: str, cut: str, mark: re.Match[str]) -> bool:
    head, tail = cut[: mark.start()].removesuffix("\n"), cut[mark.end() :].removeprefix("\n")
    return text.startswith(head) and text.endswith(tail)


@given(texts, budgets)
def test_within_the_budget_nothing_changes(text: str, tokens: int) -> None:
    enough = -(-size(text) // BYTES_PER_TOKEN) + tokens - 1
    assert truncate_tool_output(text, max(1, enough)) is text


@given(texts, budgets)
def test_what_is_kept_are_the_beginning_and_the_end_within_their_shares(text: str, tokens: int) -> None:
    if size(text) <= tokens * BYTES_PER_TOKEN:
        return
    head, left_out, tail = parts(text, tokens)
    head, tail = head.removesuffix("\n"), tail.removeprefix("\n")
    budget = tokens * BYTES_PER_TOKEN
    assert size(head) <= budget * 60 // 100
    assert size(tail) <= budget - budget * 60 // 100
    # The mark counts what is missing, with the line ends beside it.
    assert abs(left_out * BYTES_PER_TOKEN - (size(text) - size(head) - size(tail))) <= BYTES_PER_TOKEN + 2


@given(texts, budgets)
def test_what_was_cut_is_not_cut_again(text: str, tokens: int) -> None:
    cut = truncate_tool_output(text, tokens)
    assert truncate_tool_output(cut, tokens) == cut


@given(texts, budgets)
def test_no_character_is_cut_in_two(text: str, tokens: int) -> None:
    cut = truncate_tool_output(text, tokens)
    assert "�" not in cut or "�" in clean_text(text)
    cut.encode("utf-8", "surrogatepass" if cut is text else "strict")


@given(st.lists(st.text("abc", min_size=1, max_size=8), min_size=40, max_size=80), st.integers(12, 30))
def test_lines_stay_whole_where_they_are_short(lines: list[str], tokens: int) -> None:
    text = "\n".join(lines)
    if size(text) <= tokens * BYTES_PER_TOKEN:
        return
    head, _, tail = parts(text, tokens)
    kept = [*head.splitlines(), *tail.removeprefix("\n").splitlines()]
    assert kept == lines[: len(head.splitlines())] + lines[len(lines) - len(tail.splitlines()) + 1 :]


def test_one_long_line_uses_its_whole_budget() -> None:
    cut = truncate_tool_output("x\n" + "a" * 1000, 100)
    head, left_out, tail = parts("x\n" + "a" * 1000, 100)
    assert (len(head), left_out, len(tail)) == (241, (1002 - 400) // 4 + 1, 161)
    assert cut == f"x\n{'a' * 238}\n... [truncated {left_out} tokens] ...\n{'a' * 160}"


def test_the_default_is_gollems() -> None:
    assert ToolOutputTruncation().max_tokens == 16_000
    text = "a" * 64_000
    assert truncate_tool_output(text, 16_000) is text
    assert len(truncate_tool_output(text + "a", 16_000)) == 64_000 + len("\n... [truncated 1 tokens] ...\n")


@pytest.mark.parametrize("tokens", [0, -1, 1.5, True, "8", None])
def test_a_budget_that_cannot_be_is_refused(tokens: Any) -> None:
    with pytest.raises(UserError, match="takes a number of tokens"):
        ToolOutputTruncation(tokens)


# Around a tool

PICTURE = Image("https://example.com/a.png")


async def given_back(value: object, tokens: int = 10) -> ToolResult:
    @tool
    async def it() -> object:
        return value

    return await execute(TruncatedTool(it, ToolOutputTruncation(tokens)), a_call(), None)


@given(json_values)
async def test_json_is_kept_whole_or_cut_as_text(value: Any) -> None:
    result = await given_back(value)
    whole = as_text(value)
    if value is None or isinstance(value, bool | int | float) or size(whole) <= 40:
        assert result.content == value
    else:
        assert result.content == truncate_tool_output(whole, 10)


async def test_pictures_stay_beside_the_text_that_is_cut() -> None:
    result = await given_back(["a" * 1000, PICTURE])
    assert result.images == (PICTURE,)
    assert result.content == truncate_tool_output("a" * 1000, 10)
    both = await given_back([PICTURE, "b" * 30, "c" * 30])
    assert both.content == truncate_tool_output(as_text(["b" * 30, "c" * 30]), 10)
    assert (await given_back([PICTURE, PICTURE])).content == "2 images"
    assert (await given_back(PICTURE)).content == "1 image"


async def test_a_result_of_the_tools_own_is_cut_but_for_an_error_and_the_answer() -> None:
    long = "a" * 1000
    own = ToolResult("", "", long, images=(PICTURE,), metadata={"k": long})
    result = await given_back(own)
    assert (result.content, result.images) == (truncate_tool_output(long, 10), (PICTURE,))
    assert result.metadata == {"k": long}
    assert (await given_back(ToolResult("", "", long, stop_loop=True))).content == long
    failed = await given_back(ToolResult("", "", error=long, metadata={"code": "TOOL_TIMEOUT"}))
    assert (failed.error, failed.metadata) == (long, {"code": "TOOL_TIMEOUT"})


async def test_what_is_too_large_to_be_taken_is_cut_and_not_refused() -> None:
    result = await given_back("a" * (5 * 1024 * 1024))
    assert not result.is_error
    assert MARK.search(result.text)


async def test_what_has_no_json_form_is_an_error_as_ever() -> None:
    result = await given_back([object()])
    assert result.error is not None
    assert "has no JSON form" in result.error
