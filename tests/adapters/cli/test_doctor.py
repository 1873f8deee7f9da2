"""Whether everything is there, and what to do where it is not."""

from __future__ import annotations

import ctypes
import os
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from flyball.core.errors import MissingExtra
from flyball.models import DEFAULT, Record, models_folder
from tests.adapters.cli.conftest import Flyball


def checks(document: Any) -> dict[str, Any]:
    return {check["name"]: check for check in document["checks"]}


def test_all_is_well(flyball: Flyball, home: Path) -> None:
    flyball("ask", "hi", "-m", "test")
    said = flyball("doctor")
    assert said.code == 0
    assert "all that is needed is there" in said.out
    found = checks(flyball("doctor", "--json").json)
    assert found["Python"]["ok"]
    assert found["journal"]["found"] == f"{home / 'runs.db'}: 1 run, all readable"
    assert not found["models"]["ok"]
    assert not found["models"]["needed"]


@pytest.mark.parametrize(
    ("model", "ok", "told"),
    [
        ("", True, "local"),
        ("test", True, "test, by FLYBALL_MODEL"),
        ("qwen", False, "qwen, by FLYBALL_MODEL: the model 'qwen' names no known provider"),
        ("local:qwen", False, "local:qwen, by FLYBALL_MODEL: there is no model 'qwen'"),
    ],
    ids=["unset", "test", "no provider", "no model"],
)
def test_the_model_that_is_asked(
    flyball: Flyball, monkeypatch: pytest.MonkeyPatch, model: str, ok: bool, told: str
) -> None:
    monkeypatch.setenv("FLYBALL_MODEL", model)
    said = flyball("doctor", "--json")
    found = checks(said.json)["model"]
    assert (said.code, found["ok"]) == (0 if ok else 1, ok)
    assert found["found"].startswith(told)


def test_no_journal_yet(flyball: Flyball, home: Path) -> None:
    assert checks(flyball("doctor", "--json").json)["journal"]["found"].endswith("none yet")


def test_models_that_are_there(flyball: Flyball, home: Path) -> None:
    folder = models_folder()
    for name in ("blobs", "names"):
        (folder / name).mkdir(parents=True)
    (folder / "blobs" / "00.gguf").write_bytes(b"x")
    (folder / "names" / "a.json").write_text(
        f'{{"name":"{DEFAULT.name}","sha256":"00","size":1,"source":"here"}}'
    )
    assert Record("a", "00", 1, "here")
    assert checks(flyball("doctor", "--json").json)["models"]["found"] == DEFAULT.name


def test_keys_are_never_shown(flyball: Flyball, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    said = flyball("doctor", "--json")
    assert "sk-secret" not in said.out
    assert checks(said.json)["OPENAI_API_KEY"]["found"] == "set"


def test_a_folder_that_cannot_be_written(flyball: Flyball, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("file").write_text("")
    monkeypatch.setenv("FLYBALL_HOME", str(Path("file").absolute() / "home"))
    said = flyball("doctor")
    assert said.code == 1
    assert "✗" in said.out
    assert "things to put right" in said.out
    assert "set FLYBALL_HOME to another" in said.out


def test_a_journal_that_is_damaged(flyball: Flyball, home: Path) -> None:
    home.mkdir()
    (home / "runs.db").write_text("this is no journal, though it is long enough to be taken for one" * 20)
    found = checks(flyball("doctor", "--json").json)
    assert not found["journal"]["ok"]
    assert flyball("doctor").code == 1


def test_a_run_that_is_damaged(flyball: Flyball, home: Path) -> None:
    import sqlite3

    flyball("ask", "hi", "-m", "test")
    with sqlite3.connect(home / "runs.db") as connection:
        connection.execute("UPDATE event SET body = x'00' WHERE n = 1")
    connection.close()
    found = checks(flyball("doctor", "--json").json)["journal"]
    assert not found["ok"]
    assert "keep a copy" in found["remedy"]


def test_no_libgomp(flyball: Flyball, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    monkeypatch.setattr(sys, "platform", "linux")
    found = checks(flyball("doctor", "--json").json)["libgomp"]
    assert not found["ok"]
    assert "apt install libgomp1" in found["remedy"]
    monkeypatch.setattr(sys, "platform", "darwin")
    assert checks(flyball("doctor", "--json").json)["libgomp"]["ok"]


def test_what_some_commands_need(flyball: Flyball, monkeypatch: pytest.MonkeyPatch) -> None:
    found = checks(flyball("doctor", "--json").json)
    assert all(
        found[name]["ok"] for name in ("nats-server", "cryptography", "litestar", "uvicorn", "aiohttp")
    )

    def nowhere() -> Path:
        raise MissingExtra("pip install it")

    monkeypatch.setattr("flyball.runtime.nats.server.binary.find_binary", nowhere)
    said = flyball("doctor", "--json")
    found = checks(said.json)["nats-server"]
    assert (said.code, found["ok"], found["remedy"]) == (0, False, "pip install it")


def test_an_extra_that_is_missing(flyball: Flyball, monkeypatch: pytest.MonkeyPatch) -> None:
    real = metadata.version

    def version(name: str) -> str:
        if name in ("xllamacpp", "msgspec"):
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(metadata, "version", version)
    said = flyball("doctor", "--json")
    found = checks(said.json)
    assert found["xllamacpp"]["remedy"] == "pip install 'flyball[local]'"
    assert not found["xllamacpp"]["needed"]
    assert said.code == 1, "msgspec is needed"
    assert os.environ["FLYBALL_HOME"]
