"""Runs that wait for results from outside: seen, answered and gone on with by command."""

from __future__ import annotations

import re

import pytest

from tests.adapters.cli.conftest import TOOLBOX, Flyball

ASK = ("ask", "Rome?", "-m", "scripted:forecast", "--tools", TOOLBOX + ":survey")


@pytest.fixture
def waiting(flyball: Flyball) -> tuple[str, str]:
    """A run that waits, and the call that it waits for."""
    said = flyball(*ASK)
    assert said.code == 8
    assert "ORCHESTRATION_DEFERRED" in said.err
    found = re.search(r"survey \((\S+)\)", said.err)
    assert found is not None
    return flyball("runs", "--json").json[0]["run"], found[1]


def test_a_run_that_waits_says_for_what(flyball: Flyball, waiting: tuple[str, str]) -> None:
    run, call = waiting
    assert flyball("runs", "--json").json[0]["stage"] == "deferred"
    shown = flyball("show", run).out
    assert "deferred" in shown
    assert "waits for its result from outside" in shown
    why = flyball("why", run).out
    assert f"It waits for results from outside: survey ({call})." in why
    assert f"flyball answer {run[:12]} {call}" in why
    assert flyball("resume", run).code == 8, "it waits, still"


@pytest.mark.parametrize(
    ("argv", "told"),
    [(("eternal",), "eternal"), (("--data", '{"hills": 7}'), '{"hills":7}'), (("lost", "--error"), "lost")],
    ids=["text", "json", "error"],
)
def test_it_is_answered_and_gone_on_with(
    flyball: Flyball, waiting: tuple[str, str], argv: tuple[str, ...], told: str
) -> None:
    run, call = waiting
    said = flyball("answer", "last", call, *argv)
    assert (said.code, said.out) == (0, f"{call}: run {run[:12]} is executing\n")
    assert said.err == f"to go on: flyball resume {run[:12]}\n"
    assert flyball("answer", run, call, *argv, "--json").json == {
        "loop": run,
        "call": call,
        "stage": "executing",
        "waiting": [],
    }
    ended = flyball("resume", run, "-q")
    assert (ended.code, told in ended.out) == (0, True)
    assert "waits" not in flyball("show", run).out


def test_what_does_not_fit_is_refused(flyball: Flyball, waiting: tuple[str, str]) -> None:
    run, call = waiting
    refused = flyball("answer", run, "nobody", "x")
    assert refused.code == 8
    assert f"takes no result of call 'nobody': it waits for {call}" in refused.err
    assert flyball("answer", run, call).code == 2
    assert flyball("answer", run, call, "x", "--data", "1").code == 2
    wrong = flyball("answer", run, call, "--data", "{")
    assert (wrong.code, "--data takes JSON" in wrong.err) == (2, True)
    assert flyball("answer", "no-such-run", call, "x").code == 8


def test_what_never_came_is_drawn_as_that(flyball: Flyball, waiting: tuple[str, str]) -> None:
    run, _ = waiting
    assert flyball("signal", run, "cancel").code == 0
    assert flyball("resume", run, "-q").code == 0, "it is tried again"
    shown = flyball("show", run).out
    assert "its result never came" in shown
    assert "cancel" in shown
