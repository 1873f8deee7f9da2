"""docs/cli.md lists all that there is."""

from __future__ import annotations

import re
from dataclasses import fields
from inspect import signature
from typing import Any, cast

from flyball.adapters.cli import exits
from flyball.adapters.cli.app import app, identity, mcp, models, tenants, tokens
from flyball.adapters.cli.ask import ask
from flyball.adapters.cli.driven import Driven
from flyball.adapters.cli.shared import Shared
from flyball.adapters.cli.slash import terminal_commands
from flyball.orchestrate.channels.commands import BUILT_IN
from tests.docs.tables import column


def words(cells: list[str]) -> set[str]:
    return {word for cell in cells for word in re.findall(r"(?<![\w-])-{0,2}[a-z][a-z-]+", cell)}


def test_commands() -> None:
    named = {name for name in (*app, *identity, *models, *mcp, *tenants, *tokens) if not name.startswith("-")}
    assert {word for word in words(column("cli.md", "command")) if not word.startswith("-")} == named


def test_options_of_ask() -> None:
    own = [name for name in signature(ask).parameters if name not in ("words", "driven", "shared")]
    given = [*own, *[field.name for field in (*fields(Driven), *fields(Shared))]]
    listed = {word for word in words(column("cli.md", "option")) if word.startswith("--")}
    assert listed == {f"--{name.replace('_', '-')}" for name in given}


def test_exit_codes() -> None:
    codes = {int(code) for cell in column("cli.md", "exit code") for code in cell.split(", ")}
    own = {exits.OK, exits.UNEXPECTED, exits.USAGE, exits.TIMEOUT, exits.BROKEN_PIPE, 129, 130, 143}
    assert codes == own | set(exits.BY_CATEGORY.values())


def test_lines_of_a_conversation() -> None:
    commands = {**BUILT_IN, **terminal_commands(cast("Any", None))}
    usages = list(dict.fromkeys([command.usage for command in commands.values()]))
    assert [cell.strip("`") for cell in column("cli.md", "line")] == usages
