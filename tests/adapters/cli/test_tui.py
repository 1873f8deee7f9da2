"""`flyball tui`, as it is typed: on a terminal of its own, and where it cannot be."""

from __future__ import annotations

import getpass
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from flyball.core.events import SignalReceived
from flyball.core.signals import SignalType
from flyball.runtime.sqlite import SQLiteJournal
from tests.adapters.cli.conftest import Flyball
from tests.adapters.cli.terminal import OnTerminal
from tests.patience import PATIENCE

_NONE_YET = "There are no runs yet"
_HELP = """
import sys
from flyball.adapters.cli import main
main(["--help"])
import flyball
assert not {"textual", "aiohttp"} & set(sys.modules), "they are not needed for that"
"""

_WITHOUT = """
import sys
sys.modules["textual"] = None
from flyball.adapters.cli import main
sys.exit(main(["tui", "-m", "test"]))
"""


def test_it_serves_itself_and_leaves_nothing_behind(on_terminal: OnTerminal, home: Path) -> None:
    terminal = on_terminal("tui", "-m", "test", LINES="30")
    terminal.wait_for(_NONE_YET)
    terminal.type("c")
    terminal.wait_for("Say something")
    terminal.type("\x11")
    assert terminal.end() == 0
    assert terminal.raw.rstrip().endswith("\x1b[?1049l") or "\x1b[?1049l" in terminal.raw, (
        "the screen is given back"
    )
    assert not (home / "tokens.json").exists()


async def test_who_approves_is_named(on_terminal: OnTerminal, home: Path) -> None:
    terminal = on_terminal("tui", "tests.adapters.cli.agents:shop", LINES="30")
    terminal.wait_for(_NONE_YET)
    terminal.type("c")
    terminal.wait_for("Say something")
    terminal.type("pay\r")
    terminal.wait_for("Approve (a)")
    while "Paid." not in terminal.text:
        terminal.type("a")  # nothing is decided while somebody types: who is too fast presses again
        with suppress(AssertionError):
            terminal.wait_for("Paid.", 2)
    terminal.type("\x11")
    assert terminal.end() == 0
    async with SQLiteJournal(home / "runs.db") as journal:
        events = await journal.read((await journal.loops())[0])
    (said,) = [event.signal for event in events if isinstance(event, SignalReceived)]
    assert (said.type, said.by) == (SignalType.APPROVE, getpass.getuser())


def test_what_is_pasted_presses_no_key(on_terminal: OnTerminal) -> None:
    terminal = on_terminal("tui", "-m", "test", LINES="30")
    terminal.wait_for(_NONE_YET)
    terminal.type("c")
    terminal.wait_for("Say something")
    terminal.type("\x1b[200~one\x1b\x1b\x11two\x1b[201~")
    terminal.wait_for("one␛␛␑two")
    terminal.type("\x11")
    assert terminal.end() == 0


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=["int", "term", "hup"],
)
def test_a_signal_ends_it_and_it_leaves_nothing_behind(
    on_terminal: OnTerminal, tmp_path: Path, number: int, code: int
) -> None:
    terminal = on_terminal("tui", "-m", "test", LINES="30", TMPDIR=str(tmp_path))
    terminal.wait_for(_NONE_YET)
    assert list(tmp_path.glob("flyball-tui-*"))
    terminal.child.send_signal(number)
    assert terminal.end() == code
    _, drawn, told = terminal.raw.partition("\x1b[?1049l")
    assert drawn, "the screen is given back"
    assert "flyball: CANCELLED_SIGNAL: " in told
    assert not list(tmp_path.glob("flyball-tui-*"))


def test_a_terminal_that_is_closed_ends_it_and_it_leaves_nothing_behind(
    on_terminal: OnTerminal, tmp_path: Path
) -> None:
    terminal = on_terminal("tui", "-m", "test", LINES="30", TMPDIR=str(tmp_path))
    terminal.wait_for(_NONE_YET)
    terminal.hang_up()
    assert terminal.child.wait(PATIENCE) == 129
    assert not list(tmp_path.glob("flyball-tui-*"))


def test_a_server_that_is_not_there_is_waited_for(on_terminal: OnTerminal) -> None:
    terminal = on_terminal("tui", "--server", "http://127.0.0.1:1", LINES="30")
    terminal.wait_for("reconnecting")
    terminal.type("\x11")
    assert terminal.end() == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("tui", "-m", "test"), "needs a terminal"),
        (("tui", "--server", "127.0.0.1:8000"), "give an address such as http://127.0.0.1:8000"),
        (("tui", "--server", "http://[::1"), "Invalid IPv6 URL; give an address"),
        (("tui", "--server", "http://ann:pw@127.0.0.1"), "leave the user and the password out"),
        (("tui", "--server", "http://127.0.0.1:1", "-m", "test"), "leave AGENTS, -m and --deps out"),
        (("tui", "--token", "x"), "give --server too"),
    ],
)
def test_what_cannot_be_is_told(flyball: Flyball, words: tuple[str, ...], said: str) -> None:
    told = flyball(*words)
    assert told.code in (2, 3)
    assert said in told.err
    assert told.err.startswith("flyball: CONFIG_")


@pytest.mark.integration
def test_without_its_extra_it_says_what_to_install() -> None:
    command = [sys.executable, "-c", _WITHOUT]
    told = subprocess.run(command, check=False, capture_output=True, timeout=60, text=True)
    assert told.returncode == 3
    assert "CONFIG_MISSING_EXTRA" in told.stderr
    assert "pip install 'flyball[tui]'" in told.stderr


@pytest.mark.integration
def test_help_loads_nothing_of_it() -> None:
    subprocess.run([sys.executable, "-c", _HELP], check=True, capture_output=True, timeout=60)
