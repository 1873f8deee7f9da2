"""Which tests are `integration`: those that begin a process or a server, or go through a whole program.

`make unit` is what is left without them, and is for before every commit. Whole folders are named here; a test
elsewhere is marked by hand, or by the fixture that begins its process. None is forgotten: a test that is not
marked and begins a process fails.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

_TESTS = Path(__file__).parent
_WHOLE = tuple(
    _TESTS / place
    for place in (
        "adapters/http",
        "adapters/mcp/test_mount.py",
        "adapters/tui",
        "architecture",
        "browser",
        "deploy",
        "docs/test_demo.py",
        "docs/test_examples.py",
        "docs/test_pages.py",
        "engines/llama_cpp",
        "engines/openai/test_real_server.py",
        "models/test_pulling.py",
        "power",
        "runtime/nats",
        "tool/mcp",
    )
)
_BEGIN = {"process", "start", "on_terminal", "nats", "operator"}
"""Fixtures that begin one."""
_MAY_BEGIN = ("integration", "slow")
_UNIT = "not integration"

_begins_none: list[str] = []
"""The test that is run now, if it is to begin no process."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import what is going to be left out: much of the time would be that."""
    expression: str = config.option.markexpr
    return True if expression.startswith(_UNIT) and collection_path in _WHOLE else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them, before others are chosen by their marks."""
    for item in items:
        fixtures: list[str] = getattr(item, "fixturenames", [])
        if not _BEGIN.isdisjoint(fixtures) or any(map(item.path.is_relative_to, _WHOLE)):
            item.add_marker("integration")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Have a test fail that begins a process, unless it is marked."""
    if not any(map(item.get_closest_marker, _MAY_BEGIN)):
        _begins_none.append(item.nodeid)
    try:
        return (yield)
    finally:
        _begins_none.clear()


def refuse_unmarked_processes() -> None:
    """Have whoever is going to begin a process looked at first."""
    begin, fork = subprocess.Popen.__init__, os.fork

    def looked_at(self: subprocess.Popen[Any], *args: Any, **more: Any) -> None:
        _check()
        begin(self, *args, **more)

    def looked_at_fork() -> int:
        _check()
        return fork()

    subprocess.Popen.__init__ = looked_at
    os.fork = looked_at_fork


def _check() -> None:
    if _begins_none:
        raise RuntimeError(f"{_begins_none[0]} begins a process: mark it `integration` (tests/tiers.py)")
