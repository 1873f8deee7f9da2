"""Speaking to runs that other processes drive, and watching them: found where they are."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from flyball.adapters.cli import finding
from flyball.adapters.cli.cluster import Cluster
from flyball.runtime.nats import NatsOptions
from flyball.runtime.nats.server.running import server_folder
from tests.adapters.cli.conftest import Flyball
from tests.adapters.cli.test_recorded import waiting
from tests.patience import PATIENCE

Start = Callable[..., "subprocess.Popen[str]"]
HANGS = ("ask", "A story.", "-m", "scripted:hangs", "-q")


def begun(start: Start, process: Flyball) -> tuple[subprocess.Popen[str], str]:
    """A run that another process drives, and its id."""
    child = start(*HANGS)
    assert child.stdout is not None
    assert child.stdout.read(12) == "Once upon a "
    return child, process("runs", "--json").json[0]["run"]


def test_a_run_that_another_process_drives_is_cancelled(start: Start, process: Flyball) -> None:
    child, run = begun(start, process)
    try:
        refused = process("signal", run[:10], "resume")
        assert refused.code == 8
        assert refused.err == (
            f"flyball: ORCHESTRATION_SIGNAL_REFUSED: loop '{run}' is executing and takes no resume: "
            "what fits now is cancel, pause, feedback\n"
        )
        said = process("signal", "last", "cancel", "enough", "--by", "eve")
        assert (said.code, said.out, said.err) == (0, f"cancel: run {run[:12]} is cancelled\n", "")
        _, err = child.communicate(timeout=PATIENCE)
    finally:
        child.kill()
        child.communicate()
    assert child.returncode == 9
    assert "CANCELLED_SIGNAL: cancelled by eve: enough" in err


def test_a_run_is_told_something_and_tried_again(start: Start, process: Flyball) -> None:
    child, run = begun(start, process)
    try:
        told = process("signal", run, "feedback", "make it short", "--json").json
        assert told == {"loop": run, "signal": "feedback", "stage": "executing"}
        assert process("signal", run, "cancel").code == 0
        child.communicate(timeout=PATIENCE)
    finally:
        child.kill()
        child.communicate()
    again = process("signal", run, "retry")
    assert (again.code, again.err) == (0, f"to go on: flyball resume {run[:12]}\n")
    said = process("resume", run, "-q", GO="1")
    assert (said.code, said.out) == (0, "Once upon a time.\n")


def test_a_run_is_followed_while_another_process_drives_it(
    start: Start, process: Flyball, home: Path
) -> None:
    waiting(home)
    child = start("follow", "nero")
    try:
        assert child.stderr is not None
        assert "model call 1" in child.stderr.readline()
        assert process("signal", "nero-1", "reject", "too cruel").code == 0
        assert "reject" in child.stderr.readline()
        assert process("signal", "nero-1", "cancel").code == 0
    finally:
        child.kill()
        child.communicate()


def test_a_run_is_followed_to_its_end_and_drawn(flyball: Flyball) -> None:
    flyball("ask", "one", "-m", "scripted:echo", "-q")
    followed = flyball("follow", "last")
    assert (followed.code, followed.out) == (0, "one\n")
    assert "model call 1" in followed.err
    assert "complete" in followed.err
    late = flyball("follow", "last", "--from", "2")
    assert (late.code, late.out, late.err) == (0, "", ""), "all was told by its second event"
    assert "model call 1" in flyball("trajectory", "last").out
    steps = flyball("trajectory", "last", "--json", "--detail", "full").json["steps"]
    assert [step["step_type"] for step in steps] == ["model_call"]


@pytest.mark.parametrize("command", [("signal", "x", "cancel"), ("follow", "x"), ("trajectory", "x")])
def test_nothing_is_anywhere(flyball: Flyball, command: tuple[str, ...]) -> None:
    said = flyball(*command)
    assert said.code == 8
    assert "there is no run 'x'" in said.err
    assert "no NATS server is named, and none runs here" in said.err
    flyball("ask", "one", "-m", "scripted:echo", "-q")
    said = flyball(*command)
    assert (said.code, "there is no run 'x': the newest is" in said.err) == (8, True)


def test_two_places_at_once_are_refused(flyball: Flyball) -> None:
    said = flyball("signal", "x", "cancel", "--nats", "nats://127.0.0.1:1", "--journal", "runs.db")
    assert said.code == 2
    assert "--nats and --journal name two places" in said.err


def test_a_server_that_was_killed_does_not_hide_what_is_here(
    flyball: Flyball, monkeypatch: pytest.MonkeyPatch
) -> None:
    flyball("ask", "one", "-m", "scripted:echo", "-q")
    monkeypatch.setattr(finding, "_PROBE", 0.2)
    server_folder().mkdir(parents=True)
    gone = NatsOptions(("nats://127.0.0.1:1",))
    (server_folder() / "running.json").write_bytes(msgspec.json.encode(gone))
    assert Cluster().running() == gone
    assert flyball("follow", "last").out == "one\n"
    refused = flyball("signal", "last", "cancel")
    assert (refused.code, "nothing fits any more" in refused.err) == (8, True)


async def test_what_is_on_no_server_is_looked_for_here(home: Path, start: Start, process: Flyball) -> None:
    child = await asyncio.to_thread(start, "up", "tests.adapters.cli.agents")
    try:
        assert child.stderr is not None
        while not (await asyncio.to_thread(child.stderr.readline)).startswith("ready: "):
            assert child.poll() is None
        await asyncio.to_thread(process, "ask", "one", "-m", "scripted:echo", "-q")
        followed = await asyncio.to_thread(process, "follow", "last")
        assert (followed.code, followed.out) == (0, "one\n")
        nobody = await asyncio.to_thread(process, "trajectory", "nobody")
        assert (nobody.code, "there is no run 'nobody': the newest is" in nobody.err) == (8, True)
    finally:
        child.kill()
        await asyncio.to_thread(child.communicate)
