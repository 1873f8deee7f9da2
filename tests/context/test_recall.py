"""What was said is found again by its words, within its room."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from flyball import Recall
from flyball.core.messages import Role, assistant, system, tool_result, user

TALK = [
    system("Be brief: cake."),
    user("The cake is Ann's."),
    assistant("Noted."),
    user("And the lamp is Ben's, as the other cake is."),
    tool_result("1", "look_up", "the cake has candles"),
]


def test_what_shares_words_is_told_in_its_order_and_instructions_are_not() -> None:
    assert Recall(TALK).retrieve("Whose is the cake?").splitlines() == [
        "user: The cake is Ann's.",
        "user: And the lamp is Ben's, as the other cake is.",
        "tool: look_up gave the cake has candles",
    ]
    assert Recall(TALK).retrieve("What about music?") == ""
    assert Recall([]).retrieve("cake") == ""


def test_what_fits_best_has_the_room() -> None:
    found = Recall(TALK, 15).retrieve("Ben's lamp and cake")
    assert found == "user: And the lamp is Ben's, as the other cake is."


@given(st.lists(st.text(max_size=200), max_size=20), st.text(max_size=50), st.integers(1, 200))
def test_it_is_never_longer_than_its_room(said: list[str], query: str, tokens: int) -> None:
    found = Recall([user(text or "x") for text in said], tokens).retrieve(query)
    assert len(found.encode("utf-8", "surrogatepass")) <= tokens * 4 + len(said)


def test_much_takes_no_longer_than_it_is_long() -> None:
    began = time.process_time()
    Recall([user("cake " * 200_000), assistant("x" * 1_000_000)] * 2).retrieve("cake")
    assert time.process_time() - began < 5


def test_roles_are_said() -> None:
    assert Role.USER.value in Recall(TALK).retrieve("cake")
