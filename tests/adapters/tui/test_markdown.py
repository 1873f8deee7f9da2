"""Markdown in answers: it is set as what it says, no letter is lost, and nothing makes it slow."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from flyball import Agent
from flyball.adapters.tui.lines import Line, text_of
from flyball.adapters.tui.markdown import set_in_lines
from flyball.core.harmless import harmless
from tests.adapters.tui.driving import chat_with, over
from tests.adapters.tui.test_hostile import ANY
from tests.core.test_harmless import hidden

SIGNS = "*`#>-+~_ \n\t|[]()!1.)ab漢é"
TEXTS = st.one_of(ANY, st.text(st.sampled_from(SIGNS), max_size=200))


def letters(text: str) -> str:
    """What must not be lost: all but spaces, and the signs that Markdown is made of."""
    return "".join([one for one in text if not one.isspace() and one not in "*`#>-+~_•│▎─"])


@given(TEXTS, st.integers(8, 80))
def test_no_letter_is_lost_and_no_line_too_long(text: str, width: int) -> None:
    lines = set_in_lines(text, width, 10_000)
    assert lines
    drawn = text_of(lines)
    assert letters(drawn) == letters(harmless(text))
    assert not hidden(drawn)
    assert drawn.count("\n") == len(lines) - 1
    assert max([cell_len(text_of([line])) for line in lines]) <= width


@given(st.text(st.characters(categories=["L", "Nd", "Zs"]), max_size=300), st.integers(8, 60))
def test_what_is_no_markdown_stays_as_it_is(text: str, width: int) -> None:
    lines = set_in_lines(text, width, 10_000)
    assert "".join(text_of(lines).split()) == "".join(text.split())
    assert {look for line in lines for piece, look in line if piece} <= {"plain"}


def of(text: str, width: int = 40) -> list[Line]:
    """The lines of a text, without what is not there."""
    return [
        tuple([(piece, look) for piece, look in line if piece]) for line in set_in_lines(text, width, 9_999)
    ]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("## Rome", [(("Rome", "strong"),)]),
        ("a **b c** d", [(("a ", "plain"), ("b c", "strong"), (" d", "plain"))]),
        ("a `b**c**` d", [(("a ", "plain"), ("b**c**", "code"), (" d", "plain"))]),
        ("**a `b`**", [(("a ", "strong"), ("b", "code"))]),
        ("``a`b`` c", [(("a`b", "code"), (" c", "plain"))]),
        (
            "2**3 and 4**2",
            [(("2", "plain"), ("**", "plain"), ("3 and 4", "plain"), ("**", "plain"), ("2", "plain"))],
        ),
        ("- one", [(("• ", "dim"), ("one", "plain"))]),
        ("  12. one", [(("  12. ", "dim"), ("one", "plain"))]),
        ("> one", [(("▎ ", "dim"), ("one", "dim"))]),
        ("---", [(("─" * 40, "dim"),)]),
        (
            "```py\na  # **b**\n```\nc",
            [(("│ py", "dim"),), (("│ ", "dim"), ("a  # **b**", "code")), (("c", "plain"),)],
        ),
        ("````\n```\n````", [(("│", "dim"),), (("│ ", "dim"), ("```", "code"))]),
    ],
)
def test_it_is_set_as_what_it_says(text: str, lines: list[Line]) -> None:
    assert of(text) == lines


def test_items_hang_and_what_is_bold_goes_on_in_the_next_line() -> None:
    assert text_of(of("- **one two** three", 10)) == "• one two\n  three"
    assert of("**one two**", 8) == [(("one two", "strong"),)]
    assert of("**one two three**", 8) == [(("one two", "strong"),), (("three", "strong"),)]


@pytest.mark.parametrize("text", ["```py\na **b", "a **b", "a `b", "**", "`", "- ", "#", ">"])
def test_what_is_half_there_is_drawn_as_far_as_it_goes(text: str) -> None:
    assert letters(text_of(set_in_lines(text, 40, 100))) == letters(text)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "x",
        "x ",
        "**a",
        "** ",
        "`",
        "`a",
        "``a`",
        "> ",
        "- ",
        "*",
        "#",
        " ",
        "-",
        "~~~",
        "[a](",
        "|",
        "漢",
        "**a`",
    ],
)
def test_it_takes_as_long_as_the_text_is_long(text: str) -> None:
    def took(length: int) -> float:
        long, begin = text * (length // len(text)), time.process_time()
        set_in_lines(long, 80, length)
        set_in_lines(f"{long}x", 80, length + 1)
        return time.process_time() - begin

    took(1_000)
    assert took(400_000) < 10 * took(100_000) + 0.5


async def test_an_answer_is_set_and_a_question_is_not() -> None:
    async with over(Agent("test:# It is **so**", name="poet")) as (ui, _):
        await chat_with(ui, "poet")
        await ui.write("Is it **so**?")
        await ui.sees("  It is so")
        assert "Is it **so**?" in ui.said()
