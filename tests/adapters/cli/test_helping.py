"""What `--help` says."""

from __future__ import annotations

import pytest

from flyball.runtime.nats.accounts.quota import FEWEST_STREAMS
from tests.adapters.cli.conftest import Flyball


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("worker",), "for a cluster that has no loops yet. Without it $FLYBALL_NATS_REPLICAS, or one."),
        (("worker",), "workers do not start where a server acknowledges what is not on its disk. Without it"),
        (("tui",), "may be said several times. Without AGENTS, FLYBALL_MODEL or local."),
        (("tokens", "add"), "Then it is a person's, who may do what their roles allow"),
        (("tenants", "add"), f"Flyball has {FEWEST_STREAMS}, with four partitions."),
    ],
)
def test_texts_are_broken_by_the_terminal_alone(
    flyball: Flyball, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], told: str
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    said = flyball(*command, "--help")
    assert said.code == 0
    assert told in said.out
