"""What is pasted is one text, however it is cut and whatever is in it: it presses no key and does nothing."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import constants
from textual.events import Key, Paste
from textual.message import Message

from flyball.adapters.tui.app import FlyballApp
from flyball.adapters.tui.pasting import WholePastes
from flyball.adapters.tui.prompt import Prompt
from flyball.adapters.tui.runs import RunsScreen
from tests.adapters.tui.driving import chat_with, over
from tests.core.test_harmless import hidden

BEGIN, END = "\x1b[200~", "\x1b[201~"
HOSTILE = "\x1b\x1ba\x1b[A\r\x1b[200~\x1b" + "1" * 40 + "\x1b[13u\x1b[99;5u\t\x03\x18"
PASTED = st.text(st.sampled_from("ab\x1b[20~1;5uA\r\t漢")).filter(lambda text: END not in text)
TYPED = st.text(st.sampled_from("abc"))


def parsed(*chunks: str) -> list[Message]:
    parser = WholePastes()
    return [message for chunk in chunks for message in [*parser.feed(chunk), *parser.tick()]]


def keys(messages: list[Message]) -> str:
    return "".join([message.key for message in messages if isinstance(message, Key)])


def pastes(messages: list[Message]) -> list[str]:
    return [message.text for message in messages if isinstance(message, Paste)]


def driver_parser() -> type[WholePastes]:
    """The parser that the driver of the application reads with."""
    driver = FlyballApp("http://127.0.0.1:1").get_driver_class()
    return vars(sys.modules[driver.__module__])["XTermParser"]


def test_the_driver_makes_no_key_of_what_is_pasted() -> None:
    parser = driver_parser()()
    messages = list(parser.feed(f"x{BEGIN}{HOSTILE}{END}y"))
    assert (keys(messages), pastes(messages)) == ("xy", [HOSTILE])


@given(st.lists(st.tuples(TYPED, PASTED), min_size=1, max_size=4), TYPED, st.integers(1, 12))
def test_what_is_typed_and_what_is_pasted_are_told_apart_however_it_is_cut(
    parts: list[tuple[str, str]], last: str, size: int
) -> None:
    sent = "".join([f"{typed}{BEGIN}{pasted}{END}" for typed, pasted in parts]) + last
    messages = parsed(*[sent[start : start + size] for start in range(0, len(sent), size)])
    assert pastes(messages) == [pasted for _, pasted in parts]
    assert keys(messages) == "".join([typed for typed, _ in parts]) + last


def test_a_pause_within_a_paste_presses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ESCAPE_DELAY", -1.0)
    assert not keys(parsed(f"{BEGIN}a\x1b", "b\x1b[", f"c{END}"))
    assert keys(parsed("\x1b")) == "escape"


def test_an_end_within_a_paste_is_not_its_end() -> None:
    messages = parsed(f"{BEGIN}one{END}a{END}b{BEGIN}two{END}")
    assert (keys(messages), pastes(messages)) == ("b", [f"one{END}a", "two"])


def test_keys_and_all_else_are_what_they_were() -> None:
    messages = parsed("a\x1b[A\x1b", "[B\x1bOP\x1b[13u")
    assert keys(messages) == "aupdownf1enter"


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
async def test_what_is_pasted_keeps_its_lines_however_a_terminal_sends_their_ends(end: str) -> None:
    async with over() as (ui, _):
        await chat_with(ui, "echo")
        await ui.write(f"one{end}{end}two")
        await ui.sees("You said: one")
        assert "  You said: one\n  \n  two" in ui.said()


async def test_what_is_pasted_is_harmless_wherever_one_writes() -> None:
    nasty = "one\x1b[2J\u202etwo\x00\u200b\r\nthree\tfour"
    async with over() as (ui, _):
        await chat_with(ui, "echo")
        ui.app.post_message(Paste(nasty))
        prompt = ui.app.screen.query_one(Prompt)
        await ui.until(lambda: "three" in prompt.text)
        assert prompt.text == "one␛[2J⟨U+202E⟩two␀⟨U+200B⟩\nthree\tfour"
        assert not hidden(ui.screen)
        await ui.press("escape")
        await ui.opens(RunsScreen)
        await ui.press("slash")
        ui.app.post_message(Paste(nasty))
        await ui.sees("one␛[2J⟨U+202E⟩two␀⟨U+200B⟩")
        assert not hidden(ui.screen)
