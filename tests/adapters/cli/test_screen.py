"""What is shown: plain text stays plain, whoever wrote it."""

from __future__ import annotations

from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from flyball import Agent, MemoryJournal
from flyball.adapters.cli.runs import Line, table_of
from flyball.adapters.cli.screen import one_line, plain
from flyball.adapters.cli.timeline import print_timeline, steps_of
from flyball.core.errors import EngineError
from flyball.inference.answers import tool_call
from flyball.inference.scripted import ScriptedEngine
from tests.adapters.cli.toolbox import weather


@given(st.text())
def test_plain_text_has_no_control_characters(text: str) -> None:
    assert not [
        char for char in plain(text) if (ord(char) < 32 and char not in "\n\t") or 127 <= ord(char) < 160
    ]


@given(
    st.text(
        alphabet=st.characters(
            categories=["L", "Nd", "P", "Sm", "Sc", "Zs"],
            exclude_characters="\u115f\u1160\u17b4\u17b5\u3164\uffa0",
        )
    )
)
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert plain(text) == text


@given(st.text(), st.integers(2, 50))
def test_a_line_is_one_line_and_no_longer_than_its_limit(text: str, limit: int) -> None:
    assert "\n" not in one_line(text)
    assert len(one_line(text, limit)) <= limit


async def test_no_escape_sequence_comes_through_the_name_of_an_agent() -> None:
    journal = MemoryJournal()
    agent = Agent(ScriptedEngine("Hello."), name="\x1b]0;bad\x07\x1b[2Jm")
    result = await agent.run("Hi", journal=journal)
    out = StringIO()
    print_timeline(await journal.read(result.loop_id), Console(file=out, width=80))
    assert "\x1b" not in out.getvalue()


def test_escape_sequences_are_taken_out_whole() -> None:
    assert plain("\x1b[31mred\x1b[0m \x1b]0;title\x07and\x1b]8;;x\x1b\\ so on\x1bM") == "red and so on"


def test_what_turns_a_line_around_has_a_mark() -> None:
    assert plain("pay \u202eelbissop\u202c") == "pay ⟨U+202E⟩elbissop⟨U+202C⟩"


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_runs_fit_any_width(width: int) -> None:
    line = Line("0" * 32, 1.0, "prophet", "m" * 100, "awaiting_approval", 3, 12345, 12345, "p" * 1000)
    console = Console(width=width, record=True, file=StringIO())
    console.print(table_of([line, line], width))
    shown = [text for text in console.export_text().splitlines() if "0" * 12 in text]
    assert len(shown) == 2
    assert all(len(text.rstrip()) <= width and "awaiting_approval" in text for text in shown)


async def test_a_timeline_fits_any_width() -> None:
    journal = MemoryJournal()
    agent = Agent(ScriptedEngine(tool_call("weather", {"city": "R" * 300}), "x" * 300), tools=[weather])
    await agent.run("p" * 300, journal=journal, loop_id="loop")
    events = await journal.read("loop")
    bars: list[int] = []
    for width in (30, 40, 60, 80, 100, 200):
        console = Console(width=width, record=True, file=StringIO())
        print_timeline(events, console)
        _, _, _, *lines = console.export_text().splitlines()
        assert all(len(line) <= width for line in lines)
        words = ["model call 1", "weather", "model call 2", "complete"]
        assert [word for word, line in zip(words, lines, strict=True) if word in line] == words
        assert all(line.split("model call 1 ")[1][:10].strip() for line in lines[:1]), "what is about it"
        if any("━" in line for line in lines):
            bars.append(width)
    assert bars == [80, 100, 200]


async def test_in_a_narrow_place_a_timeline_still_says_how_it_stands() -> None:
    journal = MemoryJournal()
    await Agent(ScriptedEngine("yes", name="m" * 80)).run("p", journal=journal, loop_id="0" * 32)
    out = StringIO()
    print_timeline(await journal.read("0" * 32), Console(file=out, width=40))
    assert out.getvalue().startswith("run 000000000000  complete  mmm")


async def test_a_timeline_of_a_failure_and_of_a_check() -> None:
    journal = MemoryJournal()
    with pytest.raises(EngineError):
        await Agent(ScriptedEngine(EngineError("gone"))).run("hi", journal=journal, loop_id="one")
    steps = steps_of(await journal.read("one"))
    assert [(step.mark, step.style) for step in steps] == [("◆", "red"), ("✘", "bold red")]
    engine = ScriptedEngine("nonsense", '{"result": [1]}')
    await Agent(engine, output=list[int], output_mode="prompted").run("hi", journal=journal, loop_id="two")
    steps = steps_of(await journal.read("two"))
    assert [step.what for step in steps] == ["model call 1", "asked again", "model call 2", "complete"]
