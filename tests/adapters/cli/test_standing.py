"""A run that nobody drives any more is told from one that is under way."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from flyball.adapters.cli.standing import INTERRUPTED, standing, this_process
from flyball.core.events import Event, Outcome, Resumed, Started
from flyball.core.messages import user
from flyball.core.spec import LoopSpec
from flyball.orchestrate.machine import fold
from flyball.orchestrate.state import State
from tests.adapters.cli.conftest import Flyball

NEVER = 4_000_000_000.0
"""A time that these tests do not see."""


@pytest.fixture
def gone() -> str:
    """A process that has ended."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return f"{platform.node()}/{child.pid}"


def begun() -> tuple[list[Event], State]:
    events: list[Event] = [Started(NEVER, 1, "loop", LoopSpec(agent="agent", model="test"), user("hi"))]
    return events, fold(events)


def test_a_run_whose_process_runs_is_under_way(gone: str) -> None:
    events, state = begun()
    assert standing(events, state, this_process()) == "executing"
    assert standing(events, state, gone) == INTERRUPTED


def test_a_process_that_nobody_has_asked_how_it_ended_has_ended() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.read() == b""
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert standing(*begun(), f"{platform.node()}/{child.pid}") == INTERRUPTED
    child.communicate()


@pytest.mark.parametrize("process", ["", "another machine/1", "1", f"{platform.node()}/x"])
def test_what_cannot_be_told_has_its_stage(process: str) -> None:
    assert standing(*begun(), process) == "executing"
    assert standing(*begun(), f"{platform.node()}/{'9' * 30}") == "executing"
    assert standing(*begun(), f"{platform.node()}/1") == "executing", "it may belong to somebody else"


def test_who_took_over_is_not_known(gone: str) -> None:
    events, _ = begun()
    events.append(Resumed(NEVER, 1, 1))
    assert standing(events, fold(events), gone) == "executing"


def test_a_run_whose_time_is_up_is_not_under_way() -> None:
    events, state = begun()
    assert standing(events, replace(state, deadline=1.0), this_process()) == INTERRUPTED


def test_what_waits_or_is_over_is_not_interrupted(gone: str) -> None:
    events, state = begun()
    assert standing(events, replace(state, paused=True), gone) == "paused"
    assert standing(events, replace(state, at="done", outcome=Outcome.SUCCESS), gone) == "complete"


def test_a_killed_run_is_listed_as_interrupted(
    start: Callable[..., subprocess.Popen[str]], flyball: Flyball
) -> None:
    child = start("ask", "A story.", "-m", "scripted:hangs")
    assert child.stdout is not None
    assert child.stdout.read(12) == "Once upon a "
    assert flyball("runs", "--json").json[0]["stage"] == "executing"
    child.kill()
    child.communicate()
    assert flyball("runs", "--json").json[0]["stage"] == INTERRUPTED
    assert INTERRUPTED in flyball("runs").out
    assert INTERRUPTED in flyball("show").out
    assert INTERRUPTED in flyball("why").out
