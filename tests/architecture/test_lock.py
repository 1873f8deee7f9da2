"""requirements/dev.txt: what pyproject.toml asks for, pinned by hash, with no word on where to fetch it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
LOCK = (ROOT / "requirements" / "dev.txt").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

ENTRY = re.compile(
    r"^(?P<name>[a-z0-9.-]+)==(?P<version>\S+)(?: ; [^\\\n]+)?(?: \\\n    --hash=sha256:[0-9a-f]{64})+\n",
    re.MULTILINE,
)


def locked() -> dict[str, str]:
    return {entry["name"]: entry["version"] for entry in ENTRY.finditer(LOCK)}


def test_every_line_is_a_pin_with_hashes_or_a_comment() -> None:
    rest = ENTRY.sub("", LOCK)
    assert [line for line in rest.splitlines() if not line.startswith("#")] == []


def test_nothing_names_a_place() -> None:
    assert "/" not in LOCK


def test_what_the_project_asks_for_is_locked() -> None:
    versions = locked()
    asked = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]
    for requirement in map(Requirement, asked):
        version = versions.get(canonicalize_name(requirement.name))
        assert version is not None, f"{requirement} is not locked: run `make lock`"
        assert requirement.specifier.contains(version), (
            f"{requirement}, but {version} is locked: run `make lock`"
        )
