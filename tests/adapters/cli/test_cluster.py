"""Workers, their server and signals, by command, in real processes."""

from __future__ import annotations

import asyncio
import signal
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flyball.adapters.cli.cluster import Cluster
from flyball.adapters.cli.loading import agents_of
from flyball.core.errors import UserError
from flyball.runtime.nats import NatsJournal, NatsOptions, NatsRuntime
from flyball.runtime.nats.dead import dead_letters
from flyball.runtime.nats.server.running import server_folder
from tests.adapters.cli import agents
from tests.adapters.cli.conftest import Flyball, Said
from tests.patience import PATIENCE

Start = Callable[..., "subprocess.Popen[str]"]
AGENTS = "tests.adapters.cli.agents"


def ready(child: subprocess.Popen[str]) -> list[str]:
    """What a command says until it is ready."""
    assert child.stderr is not None
    lines: list[str] = []
    while not lines or not lines[-1].startswith("ready: "):
        line = child.stderr.readline()
        assert line, f"it ended before it was ready: {lines}"
        lines.append(line.strip())
    return lines


def stopped(child: subprocess.Popen[str]) -> tuple[int, str]:
    child.send_signal(signal.SIGTERM)
    _, err = child.communicate(timeout=PATIENCE)
    return child.returncode, err


@pytest.fixture
def up(start: Start) -> Iterator[list[str]]:
    child = start("up", AGENTS)
    try:
        yield ready(child)
        code, told = stopped(child)
        assert (code, told.splitlines()[-1]) == (0, "stopped: what was under way is done by others, or later")
    finally:
        child.kill()
        child.communicate()


@pytest.fixture
async def bill(up: list[str]) -> NatsOptions:
    """A loop that waits for approval."""
    options = Cluster().options()
    async with await NatsRuntime.open(options) as runtime:
        waiting = asyncio.create_task(agents.shop.run("pay", runtime=runtime, loop_id="bill"))
        assert await runtime.journal.wait("bill", 1, PATIENCE)
        waiting.cancel()  # who asked goes away: the loop stays
        await asyncio.gather(waiting, return_exceptions=True)
    return options


async def test_up_serves_agents_and_signals_reach_their_loops(bill: NatsOptions, process: Flyball) -> None:
    def say(*argv: str) -> tuple[int, str]:
        said = process("signal", "bill", *argv)
        return said.code, said.out or said.err

    assert await asyncio.to_thread(say, "resume") == (
        8,
        "flyball: ORCHESTRATION_SIGNAL_REFUSED: loop 'bill' is awaiting_approval and takes no resume: "
        "what fits now is cancel, pause, approve, reject, feedback\n",
    )
    refused = await asyncio.to_thread(process, "answer", "bill", "nobody", "x")
    assert (refused.code, "takes no result of call 'nobody': it waits for no results" in refused.err) == (
        8,
        True,
    )
    code, out = await asyncio.to_thread(say, "approve", "fine", "--by", "eve", "--json")
    assert code == 0
    assert '"signal": "approve"' in out
    async with await NatsRuntime.open(bill) as runtime:
        result = await asyncio.wait_for(agents.shop.run("pay", runtime=runtime, loop_id="bill"), PATIENCE)
    assert result.output == "Paid."
    code, out = await asyncio.to_thread(say, "dance")
    assert (code, "there is no signal 'dance'" in out) == (2, True)


async def test_loops_there_are_read_by_the_commands_that_read(bill: NatsOptions, process: Flyball) -> None:
    def read(*argv: str) -> Said:
        return process(*argv)

    there = ("--nats", ",".join(bill.servers))
    for command in ("why", "show"):
        for argv in (("bill",), ("bi", *there), ("last", *there)):
            said = await asyncio.to_thread(read, command, *argv, "--json")
            assert (said.code, '"bill"' in said.out) == (0, True), (argv, said)
    said = await asyncio.to_thread(read, "replay", "bill")
    assert "loop 'bill' is not over" in said.err
    said = await asyncio.to_thread(read, "runs", *there, "--json")
    assert [one["run"] for one in said.json] == ["bill"]
    for argv in (("runs",), ("why",), ("show", "bo"), ("replay", "last")):
        said = await asyncio.to_thread(read, *argv)
        assert f"a NATS server runs here: --nats {there[1]} asks that" in said.err


def test_up_keeps_its_secret_and_a_second_one_is_refused(up: list[str], process: Flyball) -> None:
    assert up[0].startswith("NATS at nats://127.0.0.1:")
    assert up[-1] == "ready: loop, model, tools, dispatch for shop, greeter"
    for file in ("running.json", "server.conf"):
        assert stat.S_IMODE((server_folder() / file).stat().st_mode) == 0o600
    again = process("up", AGENTS)
    assert again.code == 2
    assert "another server uses" in again.err


@pytest.mark.parametrize(
    ("told", "served"), [("model,loop,model", "model, loop"), ("all", "loop, model, tools, dispatch")]
)
async def test_a_worker_serves_what_it_is_told_to(
    up: list[str], start: Start, told: str, served: str
) -> None:
    child = await asyncio.to_thread(start, "worker", f"{AGENTS}:some", "--serve", told)
    try:
        lines = await asyncio.to_thread(ready, child)
        assert lines[-1] == f"ready: {served} for greeter"
        code, _ = await asyncio.to_thread(stopped, child)
        assert code == 0
    finally:
        child.kill()
        await asyncio.to_thread(child.communicate)


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["worker", AGENTS], "no NATS server is named, and none runs here"),
        (["worker", AGENTS, "--serve", "cook"], "--serve cook: there are loop, model, tools"),
        (["worker", f"{AGENTS}:number"], "that is no agent"),
        (["up", "tests.adapters.cli.engines"], "the module has no agents"),
        (["up"], "AGENTS is missing"),
    ],
)
def test_what_cannot_be_is_one_line(flyball: Flyball, argv: list[str], line: str) -> None:
    said = flyball(*argv)
    assert said.code == 2
    assert line in said.err
    assert said.err.count("\n") == 1


def test_servers_are_named_by_option_or_variable(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYBALL_NATS", "nats://a, nats://b")
    assert Cluster().options().servers == ("nats://a", "nats://b")
    named = Cluster(nats="tls://c", creds=Path("~/x.creds")).options()
    assert named.servers == ("tls://c",)
    assert named.credentials == str(Path("~/x.creds").expanduser())


def test_agents_are_found_once_each() -> None:
    assert agents_of(AGENTS) == [agents.shop, agents.greeter]
    assert agents_of(f"{AGENTS}:same") == [agents.shop]
    with pytest.raises(UserError, match="has no 'nobody'"):
        agents_of(f"{AGENTS}:nobody")


async def test_a_journal_of_up_can_be_read_beside_it(up: list[str]) -> None:
    async with await NatsJournal.open(Cluster().options()) as journal:
        assert await journal.loops() == []


async def test_a_loop_is_followed_and_drawn(bill: NatsOptions, start: Start, process: Flyball) -> None:
    child = await asyncio.to_thread(start, "follow", "bill")
    try:
        assert child.stderr is not None
        line = await asyncio.to_thread(child.stderr.readline)
        assert "model call 1" in line
        assert (await asyncio.to_thread(process, "signal", "bill", "approve")).code == 0
        out, err = await asyncio.to_thread(child.communicate, timeout=PATIENCE)
    finally:
        child.kill()
        await asyncio.to_thread(child.communicate)
    assert (child.returncode, out.strip()) == (0, "Paid.")
    assert "approve" in err
    assert "complete" in err
    late = await asyncio.to_thread(process, "follow", "bill", "--from", "4")
    assert "model call 1" not in late.err
    assert "complete" in late.err
    drawn = await asyncio.to_thread(process, "trajectory", "bill")
    assert "model call 2" in drawn.out
    told = (await asyncio.to_thread(process, "trajectory", "bill", "--json")).json
    assert [step["step_type"] for step in told["steps"]] == ["model_call", "tool_call", "model_call"]
    assert told["outcome"] == "success"
    nobody = await asyncio.to_thread(process, "trajectory", "nobody")
    assert "there is no run 'nobody'" in nobody.err
    assert "the NATS server that runs here does not have it" in nobody.err


async def test_what_was_put_aside_is_listed_and_given_out_again(up: list[str], process: Flyball) -> None:
    async def dead(*argv: str) -> tuple[int, str]:
        said = await asyncio.to_thread(process, "dead", *argv)
        return said.code, said.out or said.err

    assert await dead() == (0, "nothing was put aside\n")
    async with await NatsRuntime.open(Cluster().options()) as runtime:
        await runtime.bus.publish("agent.request.x", b"not json", "x")
        async with asyncio.timeout(PATIENCE):
            while not await dead_letters(runtime.bus):
                await runtime.connection.flush()
        _, out = await dead()
        assert "agent.request.x  CONFIG_INVALID_MESSAGE: it is not JSON" in out
        assert (await dead("7"))[1].endswith("nothing with the number 7 was put aside\n")
        assert "Give their numbers, or --all" in (await dead("--requeue"))[1]
        code, out = await dead("--requeue", "1")
        assert (code, "requeued" in out) == (0, True)
        async with asyncio.timeout(PATIENCE):
            while [number for number, _ in await dead_letters(runtime.bus)] != [2]:
                await runtime.connection.flush()
        assert '"number": 2' in (await dead("--json"))[1]
        await runtime.connection.request("fly.dead._.tool.execute.x", b"?", {"Flyball-Dead": "garbage"})
        assert "tool.execute.x  UNREADABLE: no worker has written this" in (await dead())[1]
        assert "Give their numbers, or --all" in (await dead("--drop"))[1]
        assert "not both" in (await dead("--drop", "--requeue", "--all"))[1]
        assert "cannot be given out again" in (await dead("--requeue", "3"))[1]
        _, out = await dead("--drop", "--all")
        assert out.count("  dropped  ") == 2
        assert await dead() == (0, "nothing was put aside\n")
