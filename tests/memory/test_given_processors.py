"""The processors that come with flyball: whatever was said, what they send is valid, and ends as it did."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from flyball import NormalizeHistory, RunContext, SlidingWindow, TokenBudget, by_words, estimate_tokens
from flyball.core.cutting import cut_at
from flyball.core.errors import UserError
from flyball.core.history import check_history
from flyball.core.messages import (
    Image,
    Message,
    Role,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    system,
    tool_result,
    tool_results,
    user,
)
from flyball.memory.processor import HistoryProcessor
from tests.histories import histories

IMAGE = Image("https://example.org/a.png")
processors: st.SearchStrategy[HistoryProcessor] = st.one_of(
    st.just(NormalizeHistory()),
    st.builds(SlidingWindow, st.integers(1, 6)),
    st.builds(TokenBudget, st.integers(1, 300), st.sampled_from([by_words, len])),
)


def sent(processor: HistoryProcessor, messages: list[Message]) -> list[Message]:
    return cast("list[Message]", processor.process(cast("RunContext[Any]", None), messages))


@given(processors, histories())
def test_what_is_sent_is_valid_and_what_was_said_is_not_touched(
    processor: HistoryProcessor, history: list[Message]
) -> None:
    before = deepcopy(history)
    made = sent(processor, history)
    check_history(made, complete=True)
    assert history == before
    assert made[-1] == history[-1]
    assert [one for one in made if one.role is Role.SYSTEM] == [
        one for one in history if one.role is Role.SYSTEM
    ]
    assert len(made) <= len(history)
    assert sent(processor, made) == made, "it is enough to do it once"


@given(histories(), st.integers(1, 6))
def test_a_window_holds_the_last_pairs(history: list[Message], pairs: int) -> None:
    made = sent(SlidingWindow(pairs), history)
    wanted = 2 * pairs + 1
    assert made[-wanted:] == history[-wanted:]
    assert (
        len(made) <= wanted + 3
    )  # the system message, what the user asked, and the calls of the first results


@given(histories(), st.integers(1, 2000))
def test_a_budget_is_kept_and_no_more_is_left_out_than_must_be(history: list[Message], most: int) -> None:
    made = sent(TokenBudget(most), history)
    last = cut_at(history, len(history) - 1)
    if estimate_tokens(made) > most:
        assert made[-(len(history) - last) :] == history[last:]
        assert len(made) <= len(history) - last + 2
    if estimate_tokens(history) <= most:
        assert made == history


def test_the_oldest_are_left_out_first() -> None:
    talk = [system("Be brief."), user("x" * 400), assistant("y" * 400), user("z" * 40)]
    assert sent(TokenBudget(250), talk) == talk
    assert sent(TokenBudget(210), talk) == [talk[0], talk[3]]
    assert sent(TokenBudget(1), talk) == [talk[0], talk[3]]


def test_calls_are_sent_with_what_they_are_about() -> None:
    loop = [
        system("Be brief."),
        user("Look."),
        *[
            message
            for number in range(5)
            for message in (
                assistant("", ToolCall(f"c{number}", "look")),
                tool_result(f"c{number}", "look", "x"),
            )
        ],
    ]
    assert sent(SlidingWindow(1), loop) == [*loop[:2], *loop[-4:]]
    assert sent(TokenBudget(1), loop) == [*loop[:2], *loop[-2:]]


def test_orphaned_results_are_dropped_and_old_images_cleared() -> None:
    """What gollem's NormalizeHistory promises."""
    shown = tool_results([ToolResult("c", "look", "seen", images=(IMAGE,))])
    history = [
        tool_results([ToolResult("gone", "look", "of a call that is not there")]),
        user(["Look at this.", IMAGE]),
        assistant("", ToolCall("a", "look")),
        tool_results([ToolResult("a", "look", "seen", images=(IMAGE,)), ToolResult("b", "look", "who?")]),
        assistant("A cat."),
        user("And now?"),
        assistant("", ToolCall("c", "look")),
        shown,
    ]
    made = [
        user(["Look at this.", IMAGE]),
        assistant("", ToolCall("a", "look")),
        tool_results([ToolResult("a", "look", "seen")]),
        assistant("A cat."),
        user("And now?"),
        assistant("", ToolCall("c", "look")),
        shown,
    ]
    assert sent(NormalizeHistory(), history) == made
    later = sent(NormalizeHistory(), [*made, assistant("A dog."), user("Sure?")])
    assert later[6] == replace(shown, parts=(replace(shown.tool_results[0], images=()),))


def test_calls_without_results_are_dropped_with_what_is_then_empty() -> None:
    history = [
        user("Look."),
        assistant("", ToolCall("a", "look")),
        user("And?"),
        Message(Role.ASSISTANT, (Text("Wait."), ToolCall("b", "look"))),
        user("Well?"),
    ]
    assert sent(NormalizeHistory(), history) == [
        Message(Role.USER, (Text("Look."), Text("And?"))),
        assistant("Wait."),
        user("Well?"),
    ]


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "3", None], ids=repr)
@pytest.mark.parametrize("kind", [SlidingWindow, TokenBudget], ids=lambda kind: kind.__name__)
def test_numbers_are_asked_for(kind: Any, wrong: Any) -> None:
    with pytest.raises(UserError, match=f"{kind.__name__} takes a number of .*, at least 1, not"):
        kind(wrong)
