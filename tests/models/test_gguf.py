"""Headers are read as they are, and a file that is no whole model is told by what is wrong with it."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.errors import ModelFileInvalid
from flyball.models.gguf import read_header, silent_tokens
from tests.models.files import gguf


def written(folder: Path, data: bytes) -> Path:
    path = folder / "a.gguf"
    path.write_bytes(data)
    return path


def test_a_header_tells_what_the_model_is(tmp_path: Path) -> None:
    facts = {
        "general.name": "Tiny",
        "tiny.embedding_length": 64,
        "tokenizer.chat_template": "{{ messages }}",
        "tokenizer.tokens": ["a", "bc", ""],
        "tokenizer.types": [1, 2, 3],
        "odd.nested": [["a"], ["b", "c"]],
    }
    data = gguf(facts=facts)
    header = read_header(written(tmp_path, data))
    assert (header.architecture, header.name, header.context_length) == ("tiny", "Tiny", 512)
    assert (header.embedding_length, header.chat_template, header.version) == (64, True, 3)
    assert header.needed == len(data)


def test_tokens_that_are_written_as_nothing_and_end_nothing(tmp_path: Path) -> None:
    facts = {
        "tokenizer.ggml.tokens": ["<unk>", "<s>", "<stop>", "a", "<|im_start|>", "<|im_end|>", "<tool_call>"],
        "tokenizer.ggml.token_type": [2, 3, 3, 1, 3, 3, 4],
        "tokenizer.ggml.eos_token_id": 2,
    }
    assert silent_tokens(written(tmp_path, gguf(facts=facts))) == (0, 1, 4)


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"tokenizer.ggml.token_type": [3]},
        {"tokenizer.ggml.tokens": ["<s>"], "tokenizer.ggml.token_type": ["3"]},
        {"tokenizer.ggml.tokens": [1, 2], "tokenizer.ggml.token_type": [3, 3]},
        {"tokenizer.ggml.tokens": "<s>", "tokenizer.ggml.token_type": 3},
    ],
)
def test_a_file_that_tells_no_tokens_has_none(tmp_path: Path, facts: dict[str, Any]) -> None:
    assert silent_tokens(written(tmp_path, gguf(facts=facts))) == ()


def test_what_a_header_does_not_say_is_empty(tmp_path: Path) -> None:
    header = read_header(written(tmp_path, gguf(facts={"general.architecture": 7})))
    assert (header.architecture, header.name, header.context_length) == ("", "", 0)
    assert not header.chat_template


def test_tensors_stand_where_the_alignment_says(tmp_path: Path) -> None:
    data = gguf(facts={"general.alignment": 256})
    assert read_header(written(tmp_path, data)).needed == len(data)


def test_quantised_tensors_are_counted_in_blocks_and_new_kinds_hardly(tmp_path: Path) -> None:
    whole = read_header(written(tmp_path, gguf(1024))).needed
    assert read_header(written(tmp_path, gguf(1024, kind=12))).needed == whole - 4096 + 4 * 144
    assert read_header(written(tmp_path, gguf(1024, kind=4242))).needed == whole - 4096 + 1


@given(data=st.data())
def test_every_cut_is_noticed(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    whole = gguf(100, {"tokenizer.tokens": ["one", "two"], "n": [1, 2]})
    cut = data.draw(st.integers(4, len(whole) - 1))
    with pytest.raises(ModelFileInvalid, match="cut short"):
        read_header(written(tmp_path_factory.mktemp("cut"), whole[:cut]))


@given(st.binary(max_size=200), st.integers(0, 150))
def test_no_bytes_do_worse_than_be_refused(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, at: int
) -> None:
    whole = gguf(10, {"tokens": ["one", "two"]})
    path = written(tmp_path_factory.mktemp("noise"), whole[:at] + noise + whole[at + len(noise) :])
    try:
        needed = read_header(path).needed
    except ModelFileInvalid as refusal:
        needed = 0
        said = refusal.message
    else:
        said = str(path)
    assert needed <= path.stat().st_size
    assert str(path) in said


@pytest.mark.parametrize("data", [b"", b"GG", b"PK\3\4 a zip", b"<!doctype html>"])
def test_other_files_are_no_gguf(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(ModelFileInvalid, match="no GGUF file") as caught:
        read_header(written(tmp_path, data))
    assert caught.value.details == {"path": str(tmp_path / "a.gguf")}


@pytest.mark.parametrize(
    ("data", "wrong"),
    [
        (gguf(version=9), "version is 9"),
        (
            b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1) + b"k" + struct.pack("<I", 99),
            "type 99",
        ),
        (
            b"GGUF"
            + struct.pack("<IQQ", 3, 0, 1)
            + struct.pack("<Q", 1)
            + b"k"
            + struct.pack("<IIQ", 9, 99, 1),
            "array of the type 99",
        ),
        (b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<QI", 0, 99), "99 dimensions"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<QIQIQ", 0, 1, 1 << 60, 0, 0), "cut short"),
    ],
    ids=["version", "value", "array", "dimensions", "size"],
)
def test_a_header_that_cannot_be_is_refused(tmp_path: Path, data: bytes, wrong: str) -> None:
    with pytest.raises(ModelFileInvalid, match=wrong):
        read_header(written(tmp_path, data))


def test_a_file_without_tensors_is_as_long_as_its_header(tmp_path: Path) -> None:
    assert read_header(written(tmp_path, b"GGUF" + struct.pack("<IQQ", 3, 0, 0))).needed == 24


def test_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(ModelFileInvalid, match="cannot be read"):
        read_header(tmp_path / "missing.gguf")
