"""Code and schemas that are named on the command line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from flyball.adapters.cli.loading import deps_of, output_of, tools_of
from flyball.core.errors import UserError
from tests.adapters.cli.conftest import TOOLBOX
from tests.adapters.cli.toolbox import City, weather


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in ("here", "broken", "wanting", "empty"):
        sys.modules.pop(name, None)


def names(reference: str) -> list[str]:
    found = [getattr(item, "tools", (item,)) for item in tools_of(reference)]
    return [tool.spec.definition.name for tools in found for tool in tools]


def test_a_module_gives_all_its_tools() -> None:
    assert names(TOOLBOX) == [
        "weather",
        "burn",
        "sleepy",
        "deaf",
        "leaves",
        "leaves_thread",
        "weather",
        "survey",
    ]


@pytest.mark.parametrize("name", ["weather", "several", "forecasts"])
def test_one_of_a_module(name: str) -> None:
    assert tools_of(f"{TOOLBOX}:{name}") == [weather]


def test_a_type() -> None:
    assert output_of(f"{TOOLBOX}:City") is City


def test_the_current_folder_can_be_imported_from() -> None:
    Path("here.py").write_text(
        "from flyball import tool\n\n\n@tool\ndef look() -> str:\n    'Look.'\n    return ''\n"
    )
    assert names("here") == ["look"]


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("nowhere", "there is no module 'nowhere', neither in"),
        ("tests.nowhere", "there is no module 'tests.nowhere'"),
        ("here.py", "name the module, not its file: here"),
        ("../here", "is no module's name"),
        ("", "is no module's name"),
        (f"{TOOLBOX}:nothing", "has no 'nothing'; it has"),
        ("broken", "importing it failed: ZeroDivisionError"),
        ("leaving", "importing it failed: SystemExit: 7"),
        ("wanting", "importing it failed: No module named 'nowhere'"),
        ("empty", "the module has no tools"),
    ],
)
def test_tools_that_are_not_there(reference: str, told: str) -> None:
    Path("broken.py").write_text("1 / 0\n")
    Path("leaving.py").write_text("raise SystemExit(7)\n")
    Path("wanting.py").write_text("import nowhere\n")
    Path("empty.py").write_text("_hidden = 1\n")
    with pytest.raises(UserError) as caught:
        tools_of(reference)
    assert told in caught.value.message


def test_a_type_without_a_name() -> None:
    with pytest.raises(UserError, match="name the type too"):
        output_of(TOOLBOX)


def test_dependencies_are_a_value_or_made_by_a_function() -> None:
    here = "tests.adapters.cli.agents"
    assert deps_of(None) is None
    assert deps_of(f"{here}:made") == "made by hand"
    assert deps_of(f"{here}:make") == "made by a function"
    with pytest.raises(UserError, match="it failed: ValueError: no database"):
        deps_of(f"{here}:cannot")
    with pytest.raises(UserError, match="name the value or the function too"):
        deps_of(here)
