"""What a machine or its user may get wrong: each is one line with a code of its own, and nothing is left."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from flyball.inference.permission import VARIABLE
from flyball.models import SMALL
from tests.adapters.cli.conftest import Flyball, Said
from tests.constraint.grammar.tiny_model import write_tiny_model
from tests.models.files import gguf
from tests.models.hub import Hub, serving
from tests.patience import PATIENCE

REFERENCE = "hf:owner/tiny/tiny.gguf"


def told(said: Said, exit_code: int, code: str, *texts: str) -> str:
    """The one line that a command gave, which has all of this."""
    assert (said.code, said.out) == (exit_code, ""), said.err
    (line,) = said.err.splitlines()
    assert line.startswith(f"flyball: {code}: ")
    for text in texts:
        assert text in line
    return line


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Generator[Hub]:
    """Hugging Face on this machine."""
    with serving() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        hub.files["/owner/tiny/resolve/main/tiny.gguf"] = gguf(50_000)
        yield hub


# Files

WHOLE = gguf()
FILES = {
    "text": (b"no model", "it is no GGUF file (it begins with b'no m')"),
    "empty": (b"", "it is no GGUF file"),
    "another version": (b"GGUF\x09\x00\x00\x00" + bytes(100), "its GGUF version is 9"),
    "cut in its header": (WHOLE[:60], "it is cut short"),
    "cut in its tensors": (WHOLE[:-1], f"it is cut short: {len(WHOLE):,} bytes are needed"),
}


@pytest.mark.parametrize("command", ["ask", "pull"])
@pytest.mark.parametrize(("content", "wrong"), FILES.values(), ids=FILES)
def test_a_file_that_is_no_model(flyball: Flyball, command: str, content: bytes, wrong: str) -> None:
    Path("mine.gguf").write_bytes(content)
    argv = ["ask", "hi", "-m", "local:mine.gguf"] if command == "ask" else ["models", "pull", "./mine.gguf"]
    told(flyball(*argv), 3, "CONFIG_MODEL_FILE_INVALID", "mine.gguf cannot be used as a model: ", wrong)


def test_a_file_that_only_the_engine_can_refuse(process: Flyball) -> None:
    Path("mine.gguf").write_bytes(WHOLE)
    said = process("ask", "hi", "-m", "local:mine.gguf", **{VARIABLE: "1"})
    told(said, 3, "CONFIG_MODEL_FILE_INVALID", "mine cannot be loaded", "unknown model architecture: 'tiny'")


def test_a_file_that_is_not_there(flyball: Flyball) -> None:
    told(flyball("ask", "hi", "-m", "local:mine.gguf"), 3, "CONFIG_UNKNOWN_MODEL", "'mine.gguf' is not there")
    told(flyball("models", "pull", "./mine.gguf"), 3, "CONFIG_UNKNOWN_MODEL", "'./mine.gguf' is not there")


# Names


@pytest.mark.parametrize(
    ("model", "near"),
    [
        ("local:smollm2", "did you mean 'smollm2-135m'?"),
        ("local:qwen2.5-coder", "'qwen2.5-coder-1.5b'"),
        ("smollm2-135m", "did you mean 'local:smollm2-135m', which runs on this machine?"),
        ("qwen2.5-coder", "'local:qwen2.5-coder-0.5b'"),
        ("locl", "did you mean 'local'?"),
    ],
)
def test_an_unknown_name_comes_with_the_nearest(flyball: Flyball, model: str, near: str) -> None:
    told(flyball("ask", "hi", "-m", model), 3, "CONFIG_UNKNOWN_MODEL", near)


def test_an_unknown_name_that_is_near_none(flyball: Flyball) -> None:
    line = told(flyball("models", "pull", "zzz"), 3, "CONFIG_UNKNOWN_MODEL", "It has qwen2.5-coder-0.5b")
    assert "did you mean" not in line


# The disk


def limited(bytes_of_a_file: int, *argv: str) -> Said:
    """A command that may write no larger file: to it the disk is full then."""
    program = (
        "import resource, sys\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({bytes_of_a_file}, {bytes_of_a_file}))\n"
        "from flyball.adapters.cli import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    finished = subprocess.run(
        [sys.executable, "-c", program, *argv], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    return Said(finished.returncode, finished.stdout, finished.stderr)


@pytest.mark.integration
@pytest.mark.skipif(sys.platform == "win32", reason="there are no limits to set here")
def test_a_disk_that_fills_up(home: Path, hub: Hub) -> None:
    said = limited(100_000, "models", "pull", REFERENCE)
    *progress, last = said.err.splitlines()
    assert all(line.startswith(f"{REFERENCE}: ") for line in progress)
    line = told(replace(said, err=last), 3, "CONFIG_MODEL_STORAGE")
    assert "the disk is full: make room, or set FLYBALL_HOME to another one" in line
    assert [path.name for path in (home / "models").rglob("*.gguf")] == []
    assert not list((home / "models" / "incoming").iterdir())


def test_a_disk_that_is_too_small(flyball: Flyball, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    usage = shutil.disk_usage("/")._replace(free=21_000_000)

    def small(path: object) -> object:
        return usage

    monkeypatch.setattr(shutil, "disk_usage", small)
    for argv in (["models", "pull"], ["ask", "hi"], ["ask", "hi", "-m", "local:smollm2-135m"]):
        told(flyball(*argv), 3, "CONFIG_MODEL_STORAGE", "21 MB are free there: make room, or set")


@pytest.mark.skipif(sys.platform != "linux", reason="there is no folder here that nobody may write to")
def test_a_folder_that_may_not_be_written(flyball: Flyball, monkeypatch: pytest.MonkeyPatch) -> None:
    # Not even root may: so it is the same whoever runs the tests.
    monkeypatch.setenv("FLYBALL_HOME", "/sys/flyball")
    line = told(flyball("models", "pull", SMALL.name), 3, "CONFIG_MODEL_STORAGE", "or set FLYBALL_HOME to")
    assert "this user may not write there" in line or "its file system is read-only" in line
    told(flyball("ask", "hi", "-m", "test"), 8, "ORCHESTRATION_JOURNAL_FAILED", "folder cannot be made")


# The machine


@pytest.mark.skipif(sys.platform != "linux", reason="only there the engine needs it")
def test_no_libgomp(process: Flyball) -> None:
    Path("mine.gguf").write_bytes(WHOLE)
    Path("libraries").mkdir()
    Path("libraries/libgomp.so.1").touch()
    said = process(
        "ask", "hi", "-m", "local:mine.gguf", LD_LIBRARY_PATH=os.path.abspath("libraries"), **{VARIABLE: "1"}
    )
    told(said, 3, "CONFIG_MISSING_LIBRARY", "libgomp.so.1", "install libgomp1 on Debian and Ubuntu")


# The request


def test_a_schema_that_points_nowhere(flyball: Flyball) -> None:
    Path("schema.json").write_text('{"$ref": "#/$defs/missing"}')
    said = flyball("ask", "hi", "-m", "test", "--schema", "schema.json")
    told(said, 3, "CONFIG_SCHEMA_MALFORMED", "--schema schema.json: the schema cannot be used")


def test_a_schema_that_no_grammar_can_hold_to(process: Flyball) -> None:
    Path("mine.gguf").write_bytes(WHOLE)
    Path("schema.json").write_text('{"type": "object", "not": {"required": ["a"]}}')
    said = process("ask", "hi", "-m", "local:mine.gguf", "--schema", "schema.json", **{VARIABLE: "1"})
    told(said, 6, "CONSTRAINT_GRAMMAR_UNSUPPORTED", "'not' at #/not")


def test_a_prompt_longer_than_the_context(process: Flyball) -> None:
    write_tiny_model(Path("tiny.gguf"))
    said = process("ask", "-m", "local:tiny.gguf", stdin="word " * 1000, **{VARIABLE: "1"})
    told(said, 4, "INFERENCE_CONTEXT_EXCEEDED", "the prompt has ", "takes 4096 for prompt and answer")
