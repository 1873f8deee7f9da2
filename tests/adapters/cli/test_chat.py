"""A conversation: on a terminal, and line by line where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.cli.conftest import TOOLBOX, Flyball
from tests.adapters.cli.terminal import OnTerminal

ECHO = ("chat", "-m", "scripted:echo")


# Without a terminal


def test_each_line_is_said_in_turn(flyball: Flyball) -> None:
    said = flyball(*ECHO, "-q", stdin="one\n\ntwo \\\nlines\n")
    assert (said.code, said.err) == (0, "")
    assert said.out == "one\none | two \nlines\n"
    runs = flyball("runs", "--json").json
    assert [run["prompt"] for run in runs] == ["two \nlines", "one"]


def test_an_answer_in_a_conversation_may_be_bounded(flyball: Flyball) -> None:
    flyball("chat", "-m", "scripted:echo", "--max-tokens", "7", "--temperature", "0.5", stdin="one\n")
    (turn,) = flyball("why", "--json").json["turns"]
    assert turn["sent"]["settings"] == {"max_tokens": 7, "temperature": 0.5}
    said = flyball("chat", "-m", "scripted:echo", "--max-tokens", "0", stdin="one\n")
    assert (said.code, said.out) == (2, "")


def test_a_conversation_is_gone_on_with(flyball: Flyball) -> None:
    flyball(*ECHO, "-s", "Be brief.", stdin="one\n")
    said = flyball("chat", "--resume", "last", "-q", stdin="two\n")
    assert said.out == "one | two\n"
    assert flyball("why").out.count("Be brief.") == 1
    assert flyball("chat", "--resume", "nothing").code == 8


def test_commands(flyball: Flyball) -> None:
    lines = "/help\n/model\n/why\nhello\n/why\n/save talk.md\n/new\nagain\n"
    lines += "/model test:other\nand you?\n/quit\nnever\n"
    said = flyball(*ECHO, "-q", stdin=lines)
    assert said.code == 0
    assert "/save FILE" in said.err
    assert "scripted:echo" in said.err
    assert "CONFIG_USAGE: nothing was answered yet" in said.err
    assert said.out.startswith("hello\n")
    assert "came back" in said.out
    assert said.out.endswith("again\nother\n")
    assert Path("talk.md").read_text() == "**user**\n\nhello\n\n**assistant**\n\nhello\n\n"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("/nonsense", "there is no /nonsense"),
        ("/save", "name the file"),
        ("/save none/talk.md", "cannot be written"),
        ("/model nonsense", "CONFIG_UNKNOWN_MODEL"),
    ],
)
def test_commands_that_cannot_be(flyball: Flyball, line: str, told: str) -> None:
    said = flyball(*ECHO, "-q", stdin=f"{line}\nhello\n")
    assert told in said.err
    assert (said.code, said.out) == (0, "hello\n"), "the conversation goes on as it was"


def test_an_answer_that_fails_is_not_part_of_the_conversation(flyball: Flyball) -> None:
    said = flyball("chat", "-m", "scripted:dark", "-q", stdin="one\n/model scripted:echo\ntwo\n")
    assert "INFERENCE_ENGINE_ERROR" in said.err
    assert (said.code, said.out) == (0, "two\n")
    assert flyball("chat", "-m", "scripted:dark", stdin="one\n").code == 4


def test_a_conversation_is_no_document(flyball: Flyball) -> None:
    assert flyball(*ECHO, "--json").json["error"]["code"] == "CONFIG_USAGE"


def test_a_model_that_is_none(flyball: Flyball) -> None:
    assert flyball("chat", "-m", "nonsense").code == 3


def test_tools_in_a_conversation(flyball: Flyball) -> None:
    said = flyball(
        "chat", "-m", "scripted:forecast", "--tools", TOOLBOX + ":weather", "-q", stdin="Rome?\nAnd?\n"
    )
    assert said.out.count("It says: rain in Rome.") == 2


# On a terminal


def test_control_c_stops_an_answer_and_stays(on_terminal: OnTerminal, home: Path) -> None:
    terminal = on_terminal("chat", "-m", "scripted:hangs")
    terminal.wait_for("> ")
    terminal.type("A story.\n")
    terminal.wait_for("Once upon a ")
    terminal.type("\x03")
    terminal.wait_for("stopped; to go on: flyball resume ")
    terminal.wait_for("> ")
    terminal.type("half a line")
    terminal.wait_for("half a line")
    terminal.wait_for_rest()
    terminal.type("\x03")
    terminal.wait_for("> ")
    terminal.type("/model scripted:echo\n")
    terminal.wait_for("scripted:echo\n")
    terminal.wait_for("> ")
    terminal.type("hello\n")
    terminal.wait_for("\nhello\n")
    terminal.wait_for("> ")
    terminal.type("\x04")
    assert terminal.end() == 0
    assert "Traceback" not in terminal.text
    assert "A story." in (home / "chat_history").read_text()


def test_a_terminal_is_shown_what_happens(on_terminal: OnTerminal, home: Path) -> None:
    terminal = on_terminal("ask", "Rome?", "-m", "scripted:forecast", "--tools", TOOLBOX + ":weather")
    assert terminal.end() == 0
    assert "Let me look." in terminal.text
    assert '→ weather {"city":"Rome"}' in terminal.text
    assert "It says: rain in Rome." in terminal.text
    assert "\x1b[2m" in terminal.raw, "the last line is dim"


def test_no_color_means_none(on_terminal: OnTerminal, home: Path) -> None:
    terminal = on_terminal("show", NO_COLOR="1")
    terminal.end()
    assert "\x1b[3" not in terminal.raw


def test_what_a_model_says_does_nothing_to_the_terminal(on_terminal: OnTerminal, home: Path) -> None:
    terminal = on_terminal("ask", "x", "-m", "scripted:rude", "-q")
    assert terminal.end() == 0
    assert "\x1b[2J" not in terminal.raw
    assert "\x1b]" not in terminal.raw
    assert "plain words" in terminal.text


@pytest.mark.parametrize(("key", "told"), [("y", "Rome burns"), ("n", "the user said no")])
def test_a_person_approves(on_terminal: OnTerminal, home: Path, key: str, told: str) -> None:
    terminal = on_terminal("ask", "Rome?", "-m", "scripted:forecast", "--tools", TOOLBOX + ":burn")
    terminal.wait_for('? run burn {"city":"Rome"} [y/N] ')
    terminal.type(f"{key}\n")
    terminal.wait_for(told)
    assert terminal.end() == 0


def test_control_c_instead_of_an_approval(on_terminal: OnTerminal, home: Path) -> None:
    terminal = on_terminal("ask", "Rome?", "-m", "scripted:forecast", "--tools", TOOLBOX + ":burn")
    terminal.wait_for("[y/N] ")
    terminal.type("\x03")
    terminal.wait_for("flyball resume ")
    assert terminal.end() == 130


def test_a_question_without_words_on_a_terminal(on_terminal: OnTerminal, home: Path) -> None:
    terminal = on_terminal("ask", "-m", "test")
    assert terminal.end() == 2
    assert "there is no prompt" in terminal.text
