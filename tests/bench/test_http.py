"""The bench over HTTP measures the work that it says: the floor and flyball both do all of it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from bench.http import server
from bench.http.command import HERE, main, served


def test_the_server_asks_for_ten_calls_and_then_answers() -> None:
    asked = [b'{"messages": [' + b'{"role": "tool"}, ' * turn + b"]}" for turn in range(server.TURNS + 1)]
    answers = [json.loads(server.answer(body).partition(b"\r\n\r\n")[2]) for body in asked]
    reasons = [answer["choices"][0]["finish_reason"] for answer in answers]
    assert reasons == ["tool_calls"] * server.TURNS + ["stop"]
    assert server.answer(b'{"stream":true}').count(b"word ") == server.CHUNKS


@pytest.mark.integration
@pytest.mark.parametrize("case", ["turns", "together", "stream"])
@pytest.mark.parametrize("client", ["floor", "flyball"])
def test_clients_do_the_work(client: str, case: str) -> None:
    with served() as url:
        command = [sys.executable, str(HERE / "worker.py"), client, url, case, "2"]
        # The suite forbids model calls; this server is no model.
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env={"FLYBALL_ALLOW_MODEL_REQUESTS": "1"}
        )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["cpu"] > 0


@pytest.mark.integration
def test_the_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYBALL_ALLOW_MODEL_REQUESTS", "1")
    status = main(["--rounds", "1", "--only", "stream", "--no-peers"])
    printed = capsys.readouterr().out
    assert "a stream of 1,000 chunks" in printed
    assert status == ("✗" in printed)
