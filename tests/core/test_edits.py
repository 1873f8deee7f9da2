"""Edits: what they make of one list is the other, and they hold no more than what differs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flyball.core.edits import Edit, edited, edits_between, fits
from flyball.core.messages import Message, user

_messages = st.lists(st.sampled_from([user(text) for text in "abcde"]), max_size=7)
_edits = st.lists(st.builds(Edit, st.integers(-1, 6), st.integers(-1, 6)), max_size=3)


@given(_messages, _messages)
def test_edits_make_the_one_of_the_other(before: list[Message], after: list[Message]) -> None:
    edits = edits_between(before, after)
    assert fits(edits, len(before))
    assert edited(before, edits) == after
    assert (edits == ()) == (before == after)


@given(_messages, st.integers(0, 6), st.integers(0, 6))
def test_messages_that_were_changed_one_by_one_are_recorded_alone(
    before: list[Message], first: int, second: int
) -> None:
    changed = [user("new") if number in (first, second) else message for number, message in enumerate(before)]
    edits = edits_between(before, changed)
    assert sum(len(edit.messages) for edit in edits) == len(
        {number for number in (first, second) if number < len(before)}
    )


@given(_messages, _edits, st.integers(0, 6))
def test_only_edits_that_fit_are_of_a_list(before: list[Message], edits: list[Edit], length: int) -> None:
    places = [place for edit in edits for place in (edit.start, edit.stop)]
    assert fits(edits, length) == (places == sorted(places) and all(0 <= one <= length for one in places))
