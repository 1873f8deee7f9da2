"""The import contracts of pyproject.toml hold, and each of them can fail.

A wrong import is planted in a copy of the source and the contracts are checked there. So a contract that has
gone blind (a package renamed, a pattern that matches nothing) is found as surely as a wrong import is.
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from importlinter.application import use_cases
from importlinter.configuration import configure

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "pyproject.toml"
CONTRACTS: dict[str, str] = {
    contract["id"]: contract["name"]
    for contract in tomllib.loads(CONFIG.read_text())["tool"]["importlinter"]["contracts"]
}


class Checkout:
    """A copy of src/flyball that wrong imports can be planted in."""

    def __init__(self, package: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.package = package
        self._capsys = capsys
        self._before: dict[Path, tuple[bytes, int] | None] = {}

    def plant(self, module: str, line: str) -> None:
        """Write a line at the end of a module; make the module, and its packages, where they do not exist."""
        *packages, name = module.split(".")
        folder = self.package
        for package in packages:
            folder /= package
            if not folder.exists():
                self._before[folder] = None
                folder.mkdir()
                (folder / "__init__.py").touch()
        file = folder / name / "__init__.py" if (folder / name).is_dir() else folder / f"{name}.py"
        there = file.exists()
        self._before.setdefault(file, (file.read_bytes(), file.stat().st_mtime_ns) if there else None)
        with file.open("a") as out:
            out.write(f"\n{line}\n")

    def restore(self) -> None:
        """Take away all that was planted."""
        for path, before in self._before.items():
            if before is not None:
                text, changed = before
                path.write_bytes(text)
                os.utime(path, ns=(changed, changed))
            elif path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def broken(self) -> set[str]:
        """The ids of the contracts that import-linter now calls broken; the others it must call kept."""
        # What has not changed since the last time, going by when it was written, is not read again.
        kept = str(self.package.parent / "cache")
        passed = use_cases.lint_imports(str(CONFIG), cache_dir=kept, is_debug_mode=True, no_logo=True)
        lines = self._capsys.readouterr().out.splitlines()

        def said(verdict: str) -> set[str]:
            return {
                key
                for key, name in CONTRACTS.items()
                if any(line.startswith(f"{name} {verdict}") for line in lines)
            }

        broken = said("BROKEN")
        assert broken | said("KEPT") == CONTRACTS.keys()
        assert passed is not bool(broken)
        return broken


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("checkout") / "flyball"
    shutil.copytree(ROOT / "src" / "flyball", copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


@pytest.fixture
def checkout(
    copied: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Checkout]:
    configure()
    # Whoever looks for the package now finds the copy first.
    monkeypatch.setattr(sys, "path", [str(copied.parent), *sys.path])
    monkeypatch.delitem(sys.modules, "flyball", raising=False)
    importlib.invalidate_caches()
    checkout = Checkout(copied, capsys)
    yield checkout
    checkout.restore()


def test_the_tree_keeps_every_contract(checkout: Checkout) -> None:
    assert checkout.broken() == set()


PLANTS = [
    ("layers", "core.planted", "import flyball.orchestrate.journal"),
    ("layers", "core.planted", "from flyball.inference import engine"),
    ("layers", "core.planted", "from flyball import Agent"),
    ("layers", "inference.planted", "from flyball.tool.protocol import Tool"),
    ("layers", "tool.planted", "import flyball.constraint"),
    ("layers", "memory.planted", "import flyball.tool.protocol"),
    ("layers", "rerank.planted", "import flyball.context.chunk"),
    ("layers", "context.planted", "import flyball.rerank.candidate"),
    ("layers", "identity.planted", "import flyball.tool.protocol"),
    ("layers", "orchestrate.planted", "import flyball.runtime.sqlite"),
    ("layers", "orchestrate.planted", "def late():\n    import flyball.runtime.sqlite"),
    ("layers", "runtime.planted", "import flyball.testing"),
    ("layers", "a_package_without_a_place.planted", "import json"),
    ("layers", "a_module_without_a_place", "import json"),
    ("core-no-io", "core.planted", "import asyncio"),
    ("core-no-io", "core.planted", "from urllib.request import urlopen"),
    ("core-no-io", "core.planted", "import time"),
    ("core-no-io", "core.clock", "import os"),
    ("machine-pure", "orchestrate.machine", "import asyncio"),
    ("machine-pure", "orchestrate.machine", "from time import monotonic"),
    ("machine-pure", "orchestrate.state", "import random"),
    ("machine-pure", "orchestrate.state", "from os import environ"),
    ("machine-pure", "orchestrate.machine", "from flyball.core.ids import new_id"),
    ("machine-pure", "orchestrate.machine", "from flyball.orchestrate.journal import Journal"),
]


@pytest.mark.parametrize(("contract", "module", "line"), PLANTS)
def test_a_planted_import_breaks_its_contract(
    checkout: Checkout, contract: str, module: str, line: str
) -> None:
    checkout.plant(module, line)
    assert contract in checkout.broken()


def test_the_machine_may_not_know_its_driver(checkout: Checkout) -> None:
    checkout.plant("orchestrate.driver", "import json")
    checkout.plant("orchestrate.machine", "import flyball.orchestrate.driver")
    assert "machine-pure" in checkout.broken()


def test_the_machine_may_not_reach_a_clock_by_a_detour(checkout: Checkout) -> None:
    checkout.plant("orchestrate.detour", "import flyball.orchestrate.clock")
    checkout.plant("orchestrate.machine", "import flyball.orchestrate.detour")
    assert "machine-pure" in checkout.broken()


def test_adapters_may_not_import_each_other(checkout: Checkout) -> None:
    checkout.plant("adapters.planted_one", "import flyball.adapters.planted_two")
    checkout.plant("adapters.planted_two", "import json")
    assert checkout.broken() == {"adapters-apart"}


def test_adapters_may_not_import_engines(checkout: Checkout) -> None:
    checkout.plant("engines.planted", "import json")
    checkout.plant("adapters.planted", "import flyball.engines.planted")
    assert checkout.broken() == {"adapters-no-engines"}


def test_siblings_may_not_import_in_a_circle(checkout: Checkout) -> None:
    checkout.plant("core.planted_one", "import flyball.core.planted_two")
    checkout.plant("core.planted_two", "def late():\n    import flyball.core.planted_one")
    assert checkout.broken() == {"acyclic"}


def test_what_is_planted_is_taken_away(checkout: Checkout) -> None:
    def all_of_it() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in checkout.package.rglob("*.py")}

    before = all_of_it()
    checkout.plant("new.planted", "import json")
    checkout.plant("orchestrate.machine", "import asyncio")
    assert checkout.broken() == {"layers", "machine-pure"}
    checkout.restore()
    assert all_of_it() == before
    assert checkout.broken() == set()


def test_every_contract_has_been_broken_here() -> None:
    planted = {contract for contract, _, _ in PLANTS} | {"adapters-apart", "adapters-no-engines", "acyclic"}
    assert planted == CONTRACTS.keys()
