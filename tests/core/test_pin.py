"""The instruction pin: what is still to be followed, each once, and in few words."""

from __future__ import annotations

from hypothesis import given

from flyball import instruction_pin
from flyball.core.messages import Image, Message, Retry, assistant, system, user
from flyball.core.pin import PIN_TOKENS
from flyball.core.tokens import by_bytes
from tests.histories import histories

TALK = [
    system("Be brief.", "Be kind."),
    user("Plan a trip."),
    assistant("Where to?"),
    user("To Rome."),
    assistant("When?"),
]


def test_it_holds_the_instructions_the_task_and_the_latest_word() -> None:
    assert instruction_pin([*TALK, user(["By train.", Image("https://example.org/a.png")])]) == (
        "[Still to be followed]\n"
        "Instructions: Be brief.\nBe kind.\n"
        "Task: Plan a trip.\n"
        "Latest instruction: By train."
    )


def test_what_is_the_same_stands_there_once() -> None:
    assert instruction_pin([user("Plan.")]) == "[Still to be followed]\nTask: Plan."
    assert instruction_pin([user("Plan."), assistant("How?"), user("Plan.")]) == (
        "[Still to be followed]\nTask: Plan."
    )


def test_what_only_asks_for_another_try_is_no_instruction() -> None:
    told = instruction_pin([user("Plan."), assistant("?"), user(Retry("Answer in JSON."))])
    assert told == "[Still to be followed]\nTask: Plan."


def test_without_words_there_is_none() -> None:
    assert instruction_pin([]) == ""
    assert instruction_pin([user(Image("https://example.org/a.png"))]) == ""


@given(histories())
def test_it_stays_short(history: list[Message]) -> None:
    assert by_bytes(instruction_pin(history)) <= 3 * PIN_TOKENS + 60


def test_long_texts_are_cut() -> None:
    told = instruction_pin([system("rule " * 5000), user("task " * 5000), assistant("?"), user("x" * 9999)])
    assert by_bytes(told) <= 3 * PIN_TOKENS + 60
    assert told.count("[truncated") == 3
