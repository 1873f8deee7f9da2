"""`flyball serve` and `flyball tokens`, as they are typed."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from flyball.core.events import VERSION, Resumed
from flyball.runtime.sqlite import SQLiteJournal
from tests.adapters.cli.conftest import Flyball
from tests.patience import PATIENCE

Start = Callable[..., "subprocess.Popen[str]"]
HANGS = "scripted:hangs"


def test_a_token_is_made_listed_and_revoked(flyball: Flyball, home: Path) -> None:
    assert flyball("tokens", "list").err == "there are no tokens: flyball tokens add NAME makes one\n"
    made = flyball(
        "tokens", "add", "ann", "--scope", "read", "--scope", "run", "--tenant", "acme", "--days", "2"
    )
    assert made.code == 0
    assert made.out.startswith("fly_")
    (token,) = flyball("tokens", "list", "--json").json
    assert (token["name"], token["scopes"], token["tenant"]) == ("ann", ["read", "run"], "acme")
    assert token["id"] in made.out
    shown = flyball("tokens", "list").out
    assert "ann" in shown
    assert made.out.strip().rpartition("_")[2] not in shown + (home / "tokens.json").read_text()
    assert flyball("tokens", "revoke", token["id"]).err == f"revoked: {token['id']} of ann\n"
    again = flyball("tokens", "revoke", token["id"])
    assert (again.code, again.out) == (2, "")
    assert "there is no token" in again.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("tokens", "add", "ann", "--scope", "all"), "--scope all: there are read, run, signal, admin"),
        (("tokens", "add", "ann", "--days", "-1"), "--days -1: give a number from 0"),
        (("tokens", "add", "ann", "--tenant", "../x"), "a tenant's name has 1 to 63"),
        (("tokens", "add", ""), "a token's name has 1 to 100"),
        (("serve", "no_such_module"), "no_such_module"),
        (("serve", "-m", "nonsense"), "nonsense"),
        (("serve", "-m", "test", "--port", "-1"), "--port -1"),
        (("serve", "-m", "test", "--grace", "-1"), "--grace"),
        (("serve", "-m", "test", "--host", "0.0.0.0"), "there are no tokens"),
        (("serve", "-m", "test", "--nats", "nats://127.0.0.1:1", "--journal", "x.db"), "name two places"),
    ],
)
def test_what_cannot_be_is_told(flyball: Flyball, words: tuple[str, ...], said: str) -> None:
    told = flyball(*words)
    assert told.code in (2, 3)
    assert said in told.err
    assert told.err.startswith("flyball: CONFIG_")


@contextmanager
def serving(start: Start, home: Path, **environment: str) -> Generator[httpx.Client]:
    """A server in a process of its own, which is killed in the end, as if the power were cut."""
    said = home.with_name("said.txt")
    with said.open("w+") as err:
        server = start(
            "serve", "-m", HANGS, "--port", "0", "--quiet", stderr=err, env={**os.environ, **environment}
        )
        try:
            until = time.monotonic() + PATIENCE
            while (found := re.search(r"http://127.0.0.1:\d+", said.read_text())) is None:
                assert server.poll() is None, said.read_text()
                assert time.monotonic() < until, said.read_text()
                time.sleep(0.02)
            with httpx.Client(base_url=found[0], timeout=PATIENCE, trust_env=False) as client:
                yield client
        finally:
            server.kill()
            server.communicate(timeout=PATIENCE)


def stages(client: httpx.Client) -> dict[str, str]:
    """How the loops that can be read stand, by what was asked."""
    found: list[dict[str, Any]] = client.get("/api/loops").json()["loops"]
    return {one["prompt"]: one["stage"] for one in found if one["stage"]}


async def written_by_a_newer_one(file: Path, loop_id: str) -> None:
    """Have a loop gone on with by the next release, in words that this one does not know."""
    async with SQLiteJournal(file) as journal:
        events = await journal.read(loop_id)
        await journal.append(loop_id, [Resumed(events[-1].at, VERSION + 1, 1)], len(events))


def test_what_a_killed_server_left_in_the_middle_of_a_call_the_next_one_goes_on_with(
    start: Start, home: Path
) -> None:
    """By whichever door it came; and a loop that cannot be read keeps no other from it."""

    def request(words: str) -> dict[str, Any]:
        return {"messages": [{"role": "user", "content": words}]}

    with ThreadPoolExecutor(1) as waiting, serving(start, home) as client:
        newer, _ = [
            client.post(f"/api/agents/{HANGS}/loops", json=request(words)).json()["loop_id"]
            for words in ("newer", "begun")
        ]
        said = {"message_id": "1", "user_id": "ann", "content": "said"}
        assert client.post("/api/channels/slack/shop/messages", json=said).status_code == 200
        asked = {"model": HANGS, **request("asked")}
        waiting.submit(lambda: client.post("/v1/chat/completions", json=asked))
        until = time.monotonic() + PATIENCE
        while len(left := stages(client)) < 4:
            assert time.monotonic() < until, left
            time.sleep(0.02)
        assert set(left.values()) == {"executing"}
    asyncio.run(written_by_a_newer_one(home / "runs.db", newer))
    with serving(start, home, GO="1") as client:
        until = time.monotonic() + PATIENCE
        while (now := stages(client)) != dict.fromkeys(("begun", "said", "asked"), "complete"):
            assert time.monotonic() < until, now
            time.sleep(0.02)
