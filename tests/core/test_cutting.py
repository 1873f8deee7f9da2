"""Cutting: wherever a history may be cut, what is left of it is as valid as it was."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flyball.core.cutting import GO_ON, can_be_summed_up, cut_at, head_of, summed_up, tail_of
from flyball.core.edits import edited
from flyball.core.history import check_history
from flyball.core.messages import Message, Role, ToolCall, ToolResult, assistant, system, tool_result, user
from tests.histories import histories

LOOPING = [
    system("Be brief."),
    user("Read it."),
    assistant("", ToolCall("a", "read")),
    tool_result("a", "read", "one"),
    assistant("", ToolCall("b", "read")),
    tool_result("b", "read", "two"),
]


@given(histories(), st.data())
def test_a_tail_is_valid_wherever_it_begins(history: list[Message], data: st.DataObject) -> None:
    index = cut_at(history, data.draw(st.integers(0, len(history) - 1)))
    tail = tail_of(history, index)
    check_history(tail, complete=True)
    assert tail[-(len(history) - index) :] == history[index:]
    assert [one.role for one in tail if one.role is Role.SYSTEM] == [
        one.role for one in history if one.role is Role.SYSTEM
    ]
    assert len(tail) <= len(history)


@given(histories())
def test_one_answer_in_the_place_of_many_is_valid(history: list[Message]) -> None:
    head = head_of(history)
    for stop in range(-1, len(history) + 2):
        if not can_be_summed_up(history, stop):
            continue
        made = edited(history, (summed_up(history, stop, "So far."),))
        check_history(made, complete=True)
        assert made[:head] == history[:head]
        assert made[head].text == "So far."
        assert made[-(len(history) - stop) :] == history[stop:]


def test_calls_stay_with_their_results_and_with_what_was_asked() -> None:
    assert cut_at(LOOPING, 5) == 4
    assert tail_of(LOOPING, 4) == [LOOPING[0], LOOPING[1], *LOOPING[4:]]
    assert [stop for stop in range(9) if can_be_summed_up(LOOPING, stop)] == [4]
    edit = summed_up(LOOPING, 4, "One page was read.")
    assert (edit.start, edit.stop) == (2, 4)
    assert edit.messages == (assistant("One page was read."), user(GO_ON))


def test_before_the_user_nothing_has_to_be_said_between() -> None:
    talk = [user("One?"), assistant("1."), user("Two?")]
    assert summed_up(talk, 2, "So far.").messages == (assistant("So far."),)
    assert tail_of(talk, 0) == talk
    assert tail_of(talk, 2) == talk[2:]


def test_what_is_kept_after_a_summary_keeps_the_task_and_the_summary() -> None:
    """What leads on from a summary is nothing that the user has said."""
    row = [
        system("Be brief."),
        user("The task."),
        assistant("[Conversation Summary] so far"),
        user(GO_ON),
        assistant(ToolCall("a", "look")),
        Message(Role.TOOL, (ToolResult("a", "look", 1),)),
        assistant(ToolCall("b", "look")),
        Message(Role.TOOL, (ToolResult("b", "look", 2),)),
    ]
    assert tail_of(row, 6) == [*row[:4], *row[6:]]
    assert tail_of(row, 3) == tail_of(row, 2) == row
    assert tail_of([*row[:4], *row[6:]], 4) == [*row[:4], *row[6:]]
