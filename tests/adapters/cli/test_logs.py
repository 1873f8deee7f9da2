"""What is logged is on stderr while a command serves, and nothing of it is left in the process."""

from __future__ import annotations

import logging
import re

import pytest

from flyball.adapters.cli.logs import logging_to_stderr
from flyball.core.errors import UserError
from flyball.runtime.nats import NatsJournal, NatsOptions
from tests.adapters.cli.conftest import Flyball
from tests.adapters.cli.test_cluster import AGENTS


@pytest.fixture(autouse=True)
def nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])


def test_warnings_are_on_stderr_with_their_time(capsys: pytest.CaptureFixture[str]) -> None:
    with logging_to_stderr():
        logging.getLogger("flyball.some").info("in passing")
        logging.getLogger("flyball.some").warning("look at this")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d [\d:,]+ look at this\n", capsys.readouterr().err)
    assert logging.getLogger().handlers == []


def test_whoever_listens_already_is_left_alone() -> None:
    mine = logging.NullHandler()
    logging.getLogger().addHandler(mine)
    with logging_to_stderr():
        assert logging.getLogger().handlers == [mine]
    assert logging.getLogger().handlers == [mine]


def test_a_worker_leaves_no_handler_behind(flyball: Flyball, monkeypatch: pytest.MonkeyPatch) -> None:
    while_it_serves: list[int] = []

    async def unreachable(options: NatsOptions) -> NatsJournal:
        while_it_serves.append(len(logging.getLogger().handlers))
        raise UserError(f"nobody is at {options.servers[0]}")

    monkeypatch.setattr(NatsJournal, "open", unreachable)
    said = flyball("worker", AGENTS, "--nats", "nats://127.0.0.1:1")
    assert "nobody is at nats://127.0.0.1:1" in said.err
    assert while_it_serves == [1]
    assert logging.getLogger().handlers == []


def test_a_server_over_stdio_leaves_no_handler_behind(flyball: Flyball) -> None:
    assert flyball("mcp", "serve", "nowhere").code == 2
    assert logging.getLogger().handlers == []
