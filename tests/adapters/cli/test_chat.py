"""A conversation: on a terminal, and line by line where there is none."""

from __future__ import annotations

import asyncio
import getpass
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from flyball.adapters.cli.shared import Shared
from flyball.core.events import SignalReceived, Started
from flyball.core.messages import Image
from flyball.core.signals import SignalType
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.local import LocalRuntime
from flyball.orchestrate.machines import fold
from flyball.runtime.sqlite import SQLiteJournal
from tests.adapters.cli.conftest import TOOLBOX, Flyball
from tests.adapters.cli.engines import Scripted
from tests.adapters.cli.terminal import OnTerminal
from tests.patience import PATIENCE

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


# As a channel


async def recorded(home: Path, run: str = "") -> tuple[Any, list[Any]]:
    """The state and the events of a run: the newest, or the one that is named."""
    async with SQLiteJournal(home / "runs.db") as journal:
        events = await journal.read(run or (await journal.loops())[0])
    return fold(events), list(events)


def started(home: Path, run: str) -> Started:
    first = asyncio.run(recorded(home, run))[1][0]
    assert isinstance(first, Started)
    return first


def runs(flyball: Flyball) -> list[str]:
    """The ids of all runs, the oldest first."""
    return [run["run"] for run in reversed(flyball("runs", "--json").json)]


def test_what_is_said_has_a_channel_and_a_person(flyball: Flyball, home: Path) -> None:
    flyball(*ECHO, "-q", stdin="one\ntwo\n")
    first, second = runs(flyball)
    assert re.fullmatch(r"talk-[0-9a-f]{24}-1", first)
    assert second == f"{first.removesuffix('-1')}-2"
    metadata = started(home, second).metadata
    assert metadata is not None
    assert (metadata["channel_type"], metadata["user_id"]) == ("cli", getpass.getuser())
    assert metadata["channel_id"]
    assert "served" not in metadata["flyball"], "no server goes on with it"
    assert metadata["flyball"]["model"] == "scripted:echo"


def test_the_dispatchers_commands_are_there(flyball: Flyball) -> None:
    said = flyball(*ECHO, "-q", stdin="/status\n/help\none\n/status\n/loops\n//help\n")
    assert said.out == "one\none | /help\n"
    assert "CONFIG_USAGE: there is no loop in this conversation yet" in said.err
    assert all(
        name in said.err for name in ("/cancel [LOOP]", "/approve [LOOP] [CALL]", "/attach FILE", "/why")
    )
    assert said.err.count("/quit") == 1, "one line, whatever names it has"
    assert f"{runs(flyball)[0]} is complete" in said.err
    assert "you have no loops that are not over" in said.err


def test_paths_are_said_to_the_model(flyball: Flyball) -> None:
    assert flyball(*ECHO, "-q", stdin="/usr/bin is missing\n").out == "/usr/bin is missing\n"


def test_beginning_anew_with_words_and_without(flyball: Flyball) -> None:
    said = flyball(*ECHO, "-q", stdin="one\n/new two\nthree\n/new\nfour\n")
    assert said.out == "one\ntwo\ntwo | three\nfour\n"
    first, *_, last = runs(flyball)
    assert first[:-2] != last[:-2], "that is another conversation"


def test_a_conversation_that_is_gone_on_with_is_the_same_one(flyball: Flyball) -> None:
    flyball(*ECHO, "-q", stdin="one\ntwo\n")
    said = flyball("chat", "--resume", "last", "-q", stdin="three\n")
    assert said.out == "one | two | three\n"
    assert [run[-2:] for run in runs(flyball)] == ["-1", "-2", "-3"]
    said = flyball("chat", "--resume", runs(flyball)[0], "-q", stdin="other\nmore\n")
    assert said.out == "one | other\none | other | more\n", "from where it was gone on with"
    assert len({run[:-2] for run in runs(flyball)}) == 1


def test_runs_that_were_no_conversations_are_gone_on_with_too(flyball: Flyball) -> None:
    flyball("ask", "one", "-m", "scripted:echo", "-q")
    said = flyball("chat", "--resume", "last", "-q", stdin="/status\ntwo\nthree\n")
    assert said.out == "one | two\none | two | three\n"
    assert f"{runs(flyball)[0]} is complete" in said.err, "which is the one that is meant"
    assert [run[:5] for run in runs(flyball)[1:]] == ["talk-"] * 2


def test_an_interrupted_run_is_told_of_and_what_is_said_reaches_it(process: Flyball) -> None:
    process("ask", "A story.", "-m", "scripted:hangs", "-q", SIGNAL="2")
    said = process("chat", "--resume", "last", "-q", stdin="More.\n", GO="1")
    assert "is not over: /resume goes on with it" in said.err
    assert (said.code, said.out.splitlines()[-1]) == (0, "Once upon a time.")
    (run,) = process("runs", "--json").json
    assert run["stage"] == "complete"


async def interrupted(agent: Agent[Any, Any], loop_id: str) -> None:
    """Begin a run of a program's, and leave it before anything was answered."""
    async with Shared().open() as journal, LocalRuntime(journal) as runtime:
        await runtime.submit(agent, "A story.", loop_id=loop_id)


async def test_a_run_of_an_agent_with_a_name_is_gone_on_with(process: Flyball, home: Path) -> None:
    await interrupted(Agent(Scripted("hangs"), name="clerk"), "order-17")
    said = process("chat", "--resume", "order-17", "-q", "-m", "scripted:echo", stdin="More.\nAnd?\n")
    assert said.err.count("run order-17 is not over") == 1
    assert said.code == 0
    assert said.out.splitlines()[-2:] == ["A story. | More.", "A story. | More. | And?"]
    assert [run["agent"] for run in process("runs", "--json").json] == ["agent", "clerk"]


async def test_a_run_of_an_agent_with_a_name_is_resumed_by_a_command(process: Flyball, home: Path) -> None:
    await interrupted(Agent(Scripted("hangs"), name="clerk"), "order-17")
    said = process("chat", "--resume", "order-17", "-q", "-m", "scripted:echo", stdin="/resume\n")
    assert (said.code, said.out) == (0, "A story.\n")


async def test_what_nobody_here_would_hear_is_not_said(process: Flyball, home: Path) -> None:
    def agreeable(_: object, output: str) -> str:
        return output

    await interrupted(Agent(Scripted("hangs"), name="clerk", validators=[agreeable]), "order-17")
    said = process(
        "chat", "--resume", "order-17", "-q", "-m", "scripted:echo", stdin="More.\n/resume\n/new other\n"
    )
    assert said.err.count("run order-17 is not over") == 1
    assert said.err.count("begun by an agent with output validators") == 2
    assert said.out == "other\n"
    _, events = await recorded(home, "order-17")
    assert not [event for event in events if isinstance(event, SignalReceived)]


def test_who_has_no_name_talks_too(flyball: Flyball, monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found: 1000")

    monkeypatch.setattr(getpass, "getuser", nameless)
    assert flyball(*ECHO, "-q", stdin="one\n").out == "one\n"


def test_names_of_runs_are_short(flyball: Flyball) -> None:
    said = flyball(*ECHO, stdin="one\n")
    found = re.search(r"run (talk-[0-9a-f]{6}-1)\n", said.err)
    assert found is not None
    assert flyball("replay", found[1], "-q").out == "one\n"
    assert found[1] in flyball("runs").out
    assert flyball("replay", "talk-000000-1").code == 8
    assert flyball("replay", f"{found[1][:-1]}7").code == 8


def test_nobody_is_there_to_approve(flyball: Flyball) -> None:
    talk = ("chat", "-m", "scripted:forecast", "--tools", TOOLBOX + ":burn", "-q")
    said = flyball(*talk, stdin="Rome?\n")
    assert "nobody is here to approve it" in said.out
    said = flyball(*talk, "--yes", stdin="Rome?\n")
    assert (said.out, said.err) == ("It says: Rome burns. Take an umbrella.\n", "")


async def test_who_approved_stands_in_the_journal(process: Flyball, home: Path) -> None:
    process("chat", "-m", "scripted:forecast", "--tools", TOOLBOX + ":burn", "--yes", stdin="Rome?\n")
    _, events = await recorded(home)
    signals = [event.signal for event in events if isinstance(event, SignalReceived)]
    assert [(one.type, one.by) for one in signals] == [(SignalType.APPROVE, getpass.getuser())]


def test_what_is_said_reaches_a_loop_that_waits(flyball: Flyball) -> None:
    talk = ("chat", "-m", "scripted:forecast", "--tools", TOOLBOX + ":survey", "-q")
    said = flyball(*talk, stdin="Rome?\nHurry.\n/loops\n/cancel\nAgain?\n")
    assert said.err.count("ORCHESTRATION_DEFERRED") == 3, "twice of the first, then of the second"
    assert "deferred  Rome?" in said.err
    assert "CANCELLED_SIGNAL: cancelled by " in said.err
    assert [run["stage"] for run in flyball("runs", "--json").json] == ["deferred", "cancelled"]


def test_files_go_along(flyball: Flyball, home: Path) -> None:
    Path("notes.txt").write_text("the code is 7")
    Path("dot.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    lines = "/attach notes.txt\n/attach dot.png\n/attach none.txt\n/attach\nLook.\nAnd?\n"
    said = flyball(*ECHO, "-q", stdin=lines)
    assert "notes.txt (13 bytes) goes along" in said.err
    assert "none.txt cannot be read" in said.err
    assert "/attach FILE: name the file" in said.err
    assert said.out.count("the code is 7") == 2, "once in each answer: it goes along once"
    state, _ = asyncio.run(recorded(home, runs(flyball)[0]))
    (image,) = [part for part in state.history[0].parts if isinstance(part, Image)]
    assert image.url.startswith("data:image/png;base64,")


def test_files_are_written_down(flyball: Flyball) -> None:
    Path("a.py").write_text("x = 1")
    Path("dot.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    said = flyball(*ECHO, "-q", stdin="/attach a.py\n/attach dot.png\nwhat is this\n/save talk.md\n")
    assert said.code == 0
    asked = "**user**\n\nwhat is this\n\na.py\n```\nx = 1\n```\n\n[image image/png]\n\n"
    assert Path("talk.md").read_text().startswith(asked)
    (run,) = flyball("runs", "--json").json
    assert run["prompt"].startswith("what is this\n\na.py\n")


def test_a_tool_that_exits_ends_its_answer_alone(flyball: Flyball) -> None:
    talk = ("chat", "-m", "scripted:forecast", "--tools", TOOLBOX + ":leaves", "-q")
    said = flyball(*talk, stdin="Rome?\n/model scripted:echo\nhello\n")
    assert said.err.count("a tool exits the program (SystemExit: bye)") == 1
    assert (said.code, said.out) == (0, "hello\n")


def test_who_ends_the_process_does_not_mean_the_answer_alone(process: Flyball) -> None:
    said = process("chat", "-m", "scripted:hangs", stdin="one\ntwo\n", SIGNAL=str(int(signal.SIGTERM)))
    assert said.code == 143
    (run,) = process("runs", "--json").json
    assert (run["prompt"], run["stage"]) == ("one", "interrupted")


# On a terminal


def wait_till_asked() -> None:
    """Until the model `forecast-waits` is asked."""
    end = time.monotonic() + PATIENCE
    while not Path("asked").exists():
        assert time.monotonic() < end, "the model is not asked"
        time.sleep(0.01)


def test_a_person_is_asked_in_a_conversation(on_terminal: OnTerminal, home: Path) -> None:
    terminal = on_terminal("chat", "-m", "scripted:forecast", "--tools", TOOLBOX + ":burn")
    terminal.wait_for("> ")
    terminal.type("Rome?\n")
    terminal.wait_for("Let me look.")
    terminal.wait_for('→ burn {"city":"Rome"}')
    terminal.wait_for("agent wants to run burn")
    terminal.wait_for("[y/N, or why not] ")
    terminal.type("y\n")
    terminal.wait_for("Rome burns")
    terminal.wait_for("\n> ")
    terminal.type("Again?\n")
    terminal.wait_for("[y/N, or why not] ")
    terminal.type("too hot\n")
    terminal.wait_for("The call was not allowed: too hot")
    terminal.wait_for("\n> ")
    terminal.type("And again?\n")
    terminal.wait_for("[y/N, or why not] ")
    terminal.type("\n")
    terminal.wait_for("the user said no")
    terminal.wait_for("\n> ")
    terminal.type("\x04")
    assert terminal.end() == 0
    assert "Traceback" not in terminal.text


@pytest.mark.parametrize("early", ["y\n", "y"], ids=["a line", "half a line"])
@pytest.mark.parametrize("asked", [("chat",), ("ask", "Rome?")], ids=["chat", "ask"])
def test_nobody_approves_before_they_are_asked(
    on_terminal: OnTerminal, home: Path, asked: tuple[str, ...], early: str
) -> None:
    terminal = on_terminal(*asked, "-m", "scripted:forecast-waits", "--tools", TOOLBOX + ":burn")
    if asked == ("chat",):
        terminal.wait_for("> ")
        terminal.type("Rome?\n")
    wait_till_asked()
    terminal.type(early)
    terminal.wait_for("y")
    Path("go").touch()
    terminal.wait_for("[y/N, or why not] ")
    terminal.type("no fire\n")
    terminal.wait_for("It says: The call was not allowed: no fire")
    if asked == ("chat",):
        terminal.wait_for("\n> ")
        terminal.type("\x04")
    assert terminal.end() == 0


@pytest.mark.parametrize("asked", [("chat",), ("ask", "Rome?")], ids=["chat", "ask"])
@pytest.mark.parametrize(("given", "seconds"), [((), None), (("--deadline", "600"), 600.0)])
async def test_who_is_asked_has_time(
    on_terminal: OnTerminal,
    home: Path,
    asked: tuple[str, ...],
    given: tuple[str, ...],
    seconds: float | None,
) -> None:
    terminal = on_terminal(*asked, "-m", "scripted:forecast", "--tools", TOOLBOX + ":burn", *given)
    if asked == ("chat",):
        terminal.wait_for("> ")
        terminal.type("Rome?\n")
    terminal.wait_for("[y/N, or why not] ")
    terminal.hang_up()
    terminal.child.wait()
    state, _ = await recorded(home)
    assert state.spec.limits.timeout == seconds


@pytest.mark.parametrize("asked", [("chat",), ("ask", "Rome?")], ids=["chat", "ask"])
def test_nobody_is_waited_for_without_end(flyball: Flyball, home: Path, asked: tuple[str, ...]) -> None:
    flyball(*asked, "-m", "scripted:forecast", "--tools", TOOLBOX + ":burn", stdin="Rome?\n")
    state, _ = asyncio.run(recorded(home))
    assert state.spec.limits.timeout == 120


def test_words_are_typed_ahead_where_nothing_is_asked(on_terminal: OnTerminal, home: Path) -> None:
    terminal = on_terminal("chat", "-m", "scripted:forecast-waits", "--tools", TOOLBOX + ":weather")
    terminal.wait_for("> ")
    terminal.type("Rome?\n")
    wait_till_asked()
    terminal.type("/model scripted:echo\n")
    terminal.wait_for("/model scripted:echo")
    Path("go").touch()
    terminal.wait_for("It says: rain in Rome")
    terminal.wait_for("\nscripted:echo\n")
    terminal.wait_for("> ")
    terminal.type("\x04")
    assert terminal.end() == 0


def test_what_is_left_open_is_decided_later(on_terminal: OnTerminal, home: Path) -> None:
    terminal = on_terminal("chat", "-m", "scripted:forecast", "--tools", TOOLBOX + ":burn")
    terminal.wait_for("> ")
    terminal.type("Rome?\n")
    terminal.wait_for("[y/N, or why not] ")
    terminal.type("\x04")
    terminal.wait_for("waits: /approve or /reject REASON decides")
    terminal.wait_for("\n> ")
    terminal.type("Be careful.\n")
    terminal.wait_for("[y/N, or why not] ")
    terminal.type("\x03")
    terminal.wait_for("stopped; to go on: flyball resume ")
    terminal.wait_for("/approve or /reject REASON")
    terminal.wait_for("> ")
    terminal.type("\x04")
    assert terminal.end() == 0
    terminal = on_terminal("chat", "--resume", "last")
    terminal.wait_for("[y/N, or why not] ")
    terminal.type("\x04")
    terminal.wait_for("\n> ")
    terminal.type("/status\n")
    terminal.wait_for("waits to be approved")
    terminal.wait_for("\n> ")
    terminal.type("/approve\n")
    terminal.wait_for("[y/N, or why not] ")  # the model has read the other words, and asks again
    terminal.type("y\n")
    terminal.wait_for("It says: Rome burns")
    terminal.wait_for("\n> ")
    terminal.type("/quit\n")
    assert terminal.end() == 0
    assert "Traceback" not in terminal.text


@pytest.mark.parametrize(
    ("keys", "told"), [("y\n", "Rome burns"), ("no fire\n", "no fire"), ("\x04", "said no")]
)
def test_who_goes_on_with_a_run_that_waits_is_asked(
    on_terminal: OnTerminal, home: Path, keys: str, told: str
) -> None:
    terminal = on_terminal("chat", "-m", "scripted:forecast", "--tools", TOOLBOX + ":burn")
    terminal.wait_for("> ")
    terminal.type("Rome?\n")
    terminal.wait_for("[y/N, or why not] ")
    terminal.hang_up()
    terminal.child.wait()
    terminal = on_terminal("resume", "last")
    terminal.wait_for("[y/N, or why not] ")
    terminal.type(keys)
    terminal.wait_for(told)
    assert terminal.end() == 0


async def test_an_answer_of_an_agent_with_a_name_is_approved(on_terminal: OnTerminal, home: Path) -> None:
    clerk = Agent(Scripted("echo"), name="clerk", output_approval=True)
    async with Shared().open() as journal, LocalRuntime(journal) as runtime:
        await runtime.submit(clerk, "A story.", loop_id="order-17")
        await journal.wait("order-17", 1)  # Started, ModelAnswered: now it waits
    terminal = on_terminal("chat", "--resume", "order-17", "-m", "scripted:echo")
    terminal.wait_for("[y/N, or why not] ")
    terminal.type("y\n")
    terminal.wait_for("A story.")
    terminal.wait_for("\n> ")
    terminal.type("\x04")
    assert terminal.end() == 0
    state, _ = await recorded(home, "order-17")
    assert state.outcome == "success"


def test_a_stopped_answer_is_gone_on_with_or_cancelled(on_terminal: OnTerminal, home: Path) -> None:
    terminal = on_terminal("chat", "-m", "scripted:hangs")
    terminal.wait_for("> ")
    terminal.type("A story.\n")
    for _ in range(2):
        terminal.wait_for("Once upon a ")
        terminal.type("\x03")
        terminal.wait_for("here: /resume")
        terminal.wait_for("> ")
        terminal.type("/resume\n")
    terminal.wait_for("Once upon a ")
    terminal.type("\x03")
    terminal.wait_for("here: /resume")
    terminal.wait_for("> ")
    terminal.type("/cancel\n")
    terminal.wait_for("CANCELLED_SIGNAL: cancelled by ")
    terminal.wait_for("> ")
    terminal.type("/loops\n")
    terminal.wait_for("you have no loops that are not over")
    terminal.wait_for("> ")
    terminal.type("\x04")
    assert terminal.end() == 0
    assert "Traceback" not in terminal.text


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
    terminal.wait_for('{"city":"Rome"} [y/N, or why not] ')
    terminal.type(f"{key}\n")
    terminal.wait_for(told)
    assert terminal.end() == 0


def test_control_c_instead_of_an_approval(on_terminal: OnTerminal, home: Path) -> None:
    terminal = on_terminal("ask", "Rome?", "-m", "scripted:forecast", "--tools", TOOLBOX + ":burn")
    terminal.wait_for("[y/N, or why not] ")
    terminal.type("\x03")
    terminal.wait_for("flyball resume ")
    assert terminal.end() == 130


def test_a_question_without_words_on_a_terminal(on_terminal: OnTerminal, home: Path) -> None:
    terminal = on_terminal("ask", "-m", "test")
    assert terminal.end() == 2
    assert "there is no prompt" in terminal.text
