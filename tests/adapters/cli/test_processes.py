"""What only real processes show: signals, pipes, kills, and what they leave behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from flyball.runtime.sqlite import SQLiteJournal
from tests.adapters.cli.conftest import COMMAND, TOOLBOX, Flyball
from tests.patience import PATIENCE

Start = Callable[..., "subprocess.Popen[str]"]
HANGS = ("ask", "A story.", "-m", "scripted:hangs")


def begun(child: subprocess.Popen[str]) -> None:
    """Wait until the model has said its first words."""
    assert child.stdout is not None
    assert child.stdout.read(12) == "Once upon a "


def sound(home: Path) -> bool:
    async def look() -> list[str]:
        async with SQLiteJournal(home / "runs.db") as journal:
            return await journal.integrity()

    return asyncio.run(look()) == []


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=["int", "term", "hup"],
)
def test_a_signal_leaves_a_run_that_resume_goes_on_with(
    start: Start, process: Flyball, home: Path, number: int, code: int
) -> None:
    child = start(*HANGS)
    begun(child)
    child.send_signal(number)
    out, err = child.communicate(timeout=PATIENCE)
    assert child.returncode == code
    assert out == "\n"
    line = err.splitlines()[-1]
    assert line.startswith("flyball: CANCELLED_SIGNAL: ")
    assert "Traceback" not in err
    assert sound(home)
    run = line.split("flyball resume ")[1]
    said = process("resume", run, "-q", GO="1")
    assert (said.code, said.out, said.err) == (0, "Once upon a time.\n", "")
    assert process("runs", "--json").json[0]["stage"] == "complete"


def test_who_is_not_to_hear_of_a_closed_terminal_does_not(start: Start) -> None:
    """As `nohup` has it."""
    child = start(*HANGS, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    begun(child)
    child.send_signal(signal.SIGHUP)
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=PATIENCE)
    assert child.returncode == 143


def test_with_json_an_interruption_is_a_document(start: Start, flyball: Flyball) -> None:
    child = start(*HANGS, "--json")
    while not (found := flyball("runs", "--json").json):
        assert child.poll() is None
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=PATIENCE)
    assert (child.returncode, err) == (130, "")
    document = json.loads(out)
    assert document["error"]["code"] == "CANCELLED_SIGNAL"
    assert document["loop_id"] == found[0]["run"]


def test_a_tool_that_sleeps_holds_nothing_up(start: Start, process: Flyball, home: Path) -> None:
    child = start("ask", "Rome?", "-m", "scripted:forecast", "--tools", TOOLBOX + ":sleepy", "-q")
    assert child.stdout is not None
    assert child.stdout.readline() == "asleep\n"
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=PATIENCE)  # less than it sleeps
    assert child.returncode == 130
    assert "is recorded as far as it came; to go on: flyball resume " in err
    assert sound(home)
    said = process("resume", "last", "-q", WAKE="1")
    assert (said.code, said.out) == (0, "asleep\nIt says: Rome. Take an umbrella.\n")


def test_a_deadline_is_one_for_a_tool_that_sleeps_too(start: Start, process: Flyball) -> None:
    """And what is registered for the end is done all the same."""
    tool = TOOLBOX + ":sleepy"
    # So long that the tool has begun by then, also on a machine that is busy.
    child = start("ask", "Rome?", "-m", "scripted:forecast", "--tools", tool, "--deadline", "3")
    out, err = child.communicate(timeout=PATIENCE)
    assert child.returncode == 124
    assert err.startswith("flyball: CANCELLED_TIMEOUT: ")
    assert out == "asleep\ngood night\n"
    assert process("runs", "--json").json[0]["stage"] == "cancelled"


def test_a_second_signal_kills_what_cannot_be_stopped(start: Start) -> None:
    child = start("ask", "Rome?", "-m", "scripted:forecast", "--tools", TOOLBOX + ":deaf")
    assert child.stdout is not None
    assert child.stdout.readline() == "asleep\n"
    child.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(0.5)
    child.send_signal(signal.SIGINT)
    assert child.wait(PATIENCE) == -signal.SIGINT
    child.communicate()


def test_what_cannot_be_stopped_is_ended_after_a_while(start: Start, process: Flyball, home: Path) -> None:
    child = start("ask", "Rome?", "-m", "scripted:forecast", "--tools", TOOLBOX + ":deaf")
    assert child.stdout is not None
    assert child.stdout.readline() == "asleep\n"
    child.send_signal(signal.SIGTERM)
    _, err = child.communicate(timeout=PATIENCE)
    assert child.returncode == 143
    assert err == (
        "flyball: CANCELLED_SIGNAL: stopped by SIGTERM: what runs does not stop; it is recorded as far as it "
        "came: flyball resume last\n"
    )
    assert sound(home)
    assert process("runs", "--json").json[0]["stage"] == "interrupted"


def test_a_killed_run_is_gone_on_with(start: Start, flyball: Flyball, process: Flyball, home: Path) -> None:
    child = start("ask", "Rome?", "-m", "scripted:forecast-hangs", "--tools", TOOLBOX + ":weather", "--json")
    while (runs := flyball("runs", "--json").json)[:1] == [] or runs[0]["turns"] < 2:
        assert child.poll() is None
    child.kill()
    child.communicate()
    assert sound(home)
    said = process("resume", "last", "--json", GO="1")
    assert said.json["content"] == "It says: rain in Rome. Take an umbrella."
    assert [call["name"] for call in said.json["tool_calls_made"]] == ["weather"]
    assert said.json["loop_id"] == runs[0]["run"]


@pytest.mark.integration
def test_an_interruption_before_anything_is_recorded(home: Path) -> None:
    """Ctrl-C while stdin is being read."""
    child = subprocess.Popen(
        [*COMMAND, "ask", "-", "-m", "test"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wchan = Path(f"/proc/{child.pid}/wchan")
    if not wchan.exists():
        child.kill()
        pytest.skip("only Linux tells what a process waits for")
    while "pipe_read" not in wchan.read_text() and "pipe_wait" not in wchan.read_text():
        assert child.poll() is None
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=PATIENCE)
    assert (child.returncode, out, err) == (130, "", "flyball: CANCELLED_SIGNAL: interrupted\n")


@pytest.mark.integration
@pytest.mark.parametrize("argv", [("ask", "x", "-m", "scripted:lines"), ("why",)], ids=["ask", "why"])
def test_a_reader_that_leaves_is_no_error(home: Path, flyball: Flyball, argv: tuple[str, ...]) -> None:
    if argv == ("why",):
        flyball("ask", "x", "-m", "scripted:lines", "-q")
    pipeline = subprocess.Popen(
        [*COMMAND, *argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert pipeline.stdout is not None
    assert pipeline.stderr is not None
    if argv != ("why",):  # which writes it all at once, and may be done before one has read a line
        assert pipeline.stdout.readline()
    pipeline.stdout.close()
    assert pipeline.stderr.read() == ""
    pipeline.stderr.close()
    assert pipeline.wait(PATIENCE) == 141


def test_closed_streams(process: Flyball, home: Path) -> None:
    line = " ".join([f"'{word}'" for word in (*COMMAND, "ask", "hi", "-m", "test:yes", "-q")])
    finished = subprocess.run(["sh", "-c", f"{line} <&-"], capture_output=True, text=True, check=False)
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "yes\n", "")


@pytest.mark.integration
@pytest.mark.parametrize(
    "argv",
    [("ask", "hi", "-m", "test"), ("ask", "hi", "-m", "test", "--json"), ("runs",), ("--help",)],
    ids=["ask", "json", "runs", "help"],
)
@pytest.mark.parametrize(
    ("where", "why"),
    [(">&-", "Bad file descriptor"), (">/dev/full", "No space left on device")],
    ids=["closed", "full"],
)
def test_a_stdout_that_cannot_be_written_is_a_line(
    flyball: Flyball, argv: tuple[str, ...], where: str, why: str
) -> None:
    if where == ">/dev/full" and not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    flyball("ask", "hi", "-m", "test", "-q")
    line = " ".join([f"'{word}'" for word in (*COMMAND, *argv)])
    finished = subprocess.run(
        ["sh", "-c", f"{line} {where}"],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert finished.returncode == 8
    assert finished.stderr == f"flyball: ORCHESTRATION_FAILED: stdout cannot be written: {why}\n"


def test_where_nobody_can_be_told_the_exit_code_tells(process: Flyball, home: Path) -> None:
    line = " ".join([f"'{word}'" for word in (*COMMAND, "ask", "hi", "-m", "nope")])
    for where in ("2>&-", "<&- >&- 2>&-"):
        finished = subprocess.run(
            ["sh", "-c", f"{line} {where}"], capture_output=True, text=True, check=False
        )
        assert (finished.returncode, finished.stdout, finished.stderr) == (3, "", "")


@pytest.mark.integration
def test_a_missing_extra_is_one_line(home: Path) -> None:
    code = (
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name in ('cyclopts', 'rich'): raise ModuleNotFoundError(name=name)\n"
        "import importlib.util as util\n"
        "real = util.find_spec\n"
        "util.find_spec = lambda name, *more: None if name in ('cyclopts', 'rich') else real(name, *more)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "from flyball.adapters.cli import main\n"
        "sys.exit(main(['ask', 'hi']))\n"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert finished.returncode == 3
    assert finished.stderr == (
        "flyball: CONFIG_MISSING_EXTRA: the command line needs cyclopts, rich, which is not installed: "
        "pip install 'flyball[cli]'\n"
    )


@pytest.mark.integration
def test_help_loads_no_command(home: Path) -> None:
    code = (
        "import sys\nfrom flyball.adapters.cli import main\nmain(['--help'])\n"
        "print(sorted(set(sys.modules) & set(sys.argv[1:])), file=sys.stderr)"
    )
    heavy = ["sqlite3", "pydantic.main", "jsonschema_rs", "flyball.adapters.cli.ask", "flyball.runtime"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    finished = subprocess.run(
        [sys.executable, "-c", code, *heavy], capture_output=True, text=True, check=False, env=environment
    )
    assert finished.stderr == "[]\n"
    assert "resume" in finished.stdout


def test_no_colour_where_it_is_not_wanted(
    process: Flyball, flyball: Flyball, monkeypatch: pytest.MonkeyPatch
) -> None:
    flyball("ask", "hi", "-m", "test", "-q")
    assert "\x1b" not in process("why").out, "it is no terminal"
    for command in ("runs", "show", "why", "doctor"):
        assert "\x1b" not in flyball(command).out
        with monkeypatch.context() as environment:
            environment.setenv("NO_COLOR", "1")
            said = flyball(command)
        assert "\x1b" not in said.out + said.err


def test_another_encoding_than_utf_8(process: Flyball) -> None:
    said = process("ask", "hi", "-m", "test:grüße", "-q", PYTHONIOENCODING="ascii")
    assert (said.code, said.out) == (0, "gr??e\n")
