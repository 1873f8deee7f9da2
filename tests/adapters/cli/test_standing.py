"""A run that nobody drives any more is listed as such."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

from flyball.orchestrate.standing import INTERRUPTED
from tests.adapters.cli.conftest import Flyball


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
