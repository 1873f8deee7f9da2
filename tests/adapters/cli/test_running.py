"""The event loop of a command: what the first signal does, and what the second."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from flyball.adapters.cli.exits import exit_code
from flyball.adapters.cli.running import Session, run
from flyball.core.errors import CancelledSignal
from tests.adapters.cli.conftest import TOOLBOX, Flyball


async def signalled(number: int) -> None:
    os.kill(os.getpid(), number)
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["int", "term"]
)
def test_the_first_signal_cancels(number: int, code: int) -> None:
    before = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    session = Session()
    with pytest.raises(CancelledSignal) as caught:
        session.run(signalled(number))
    assert exit_code(caught.value) == code
    session.rest()
    assert [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)] == before
    assert session.run(asyncio.sleep(0, "still here")) == "still here"
    session.rest()
    with session:
        pass


def test_the_second_signal_kills(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[tuple[int, object]] = []
    real = os.kill

    def kill(_: int, number: int) -> None:
        killed.append((number, signal.getsignal(number)))

    async def stubborn() -> None:
        try:
            await signalled(signal.SIGINT)
        finally:
            monkeypatch.setattr(os, "kill", kill)
            real(os.getpid(), signal.SIGINT)

    session = Session()
    with pytest.raises(CancelledSignal):
        session.run(stubborn())
    session.rest()
    session.__exit__(None, None, None)
    assert killed == [(signal.SIGINT, signal.SIG_DFL)]


def test_a_terminal_that_is_closed_may_say_so_twice() -> None:
    """The shell tells what it started, and the system does when the shell has ended."""

    async def cleaned_up() -> None:
        try:
            await signalled(signal.SIGHUP)
        finally:
            os.kill(os.getpid(), signal.SIGHUP)

    with pytest.raises(CancelledSignal) as caught:
        run(cleaned_up())
    assert exit_code(caught.value) == 129


def test_a_signal_before_anything_runs() -> None:
    """Such as while a module is being imported: what was to run does not begin."""
    session = Session()
    begun: list[int] = []

    async def work() -> None:
        begun.append(1)

    async def prepared() -> None:
        await asyncio.sleep(0)

    session.run(prepared())
    os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(CancelledSignal):
        session.run(work())
    assert not begun
    session.rest()
    session.__exit__(None, None, None)


def test_what_is_no_signal_passes_through() -> None:
    async def cancelled() -> None:
        raise CancelledSignal("somebody cancelled")

    with pytest.raises(CancelledSignal, match="somebody cancelled") as caught:
        run(cancelled())
    assert exit_code(caught.value) == 9


def test_an_interrupted_run_is_named(flyball: Flyball, monkeypatch: pytest.MonkeyPatch) -> None:
    handler = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    monkeypatch.setenv("SIGNAL", str(int(signal.SIGINT)))
    try:
        said = flyball("ask", "A story.", "-m", "scripted:hangs")
        assert said.code == 130
        assert "is recorded as far as it came; to go on: flyball resume " in said.err
        as_json = flyball("ask", "A story.", "-m", "scripted:hangs", "--json")
        assert as_json.json["loop_id"] == flyball("runs", "--json").json[0]["run"]
    finally:
        for one, before in zip((signal.SIGINT, signal.SIGTERM), handler, strict=True):
            signal.signal(one, before)


def test_a_tool_that_exits_the_program_is_a_line(flyball: Flyball) -> None:
    said = flyball("ask", "Rome?", "-m", "scripted:forecast", "--tools", TOOLBOX + ":leaves", "-q")
    assert said.code == 5
    assert (
        "flyball: TOOL_EXECUTION_FAILED: a tool exits the program (SystemExit: bye), and may not" in said.err
    )
    assert flyball("runs", "--json").json[0]["turns"] == 1


def test_in_a_thread_an_exit_is_a_failure_like_any_other(flyball: Flyball) -> None:
    said = flyball("ask", "Rome?", "-m", "scripted:forecast", "--tools", TOOLBOX + ":leaves_thread", "-q")
    assert (said.code, said.out) == (0, "It says: RuntimeError: SystemExit: bye. Take an umbrella.\n")


def test_an_interruption_of_what_is_imported_is_a_line(
    flyball: Flyball, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("importlib.util.find_spec", interrupted)
    said = flyball("runs")
    assert (said.code, said.out, said.err) == (130, "", "flyball: CANCELLED_SIGNAL: interrupted\n")
