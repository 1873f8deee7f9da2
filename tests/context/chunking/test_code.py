"""Files of code in chunks."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from hypothesis import given

import flyball
from flyball.context.chunking import ChunkSize, chunk_code
from tests.context.chunking.texts import check_chunks, sizes, texts

SOURCES = sorted(Path(flyball.__file__).parent.glob("c*/*.py"))


@given(texts, sizes)
def test_nothing_is_lost_order_is_kept_sizes_are_bounded(text: str, size: ChunkSize) -> None:
    check_chunks(text, chunk_code(text, "a.py", size), size)
    check_chunks(text, chunk_code(text, "a.go", size), size)


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_so_it_is_of_real_files(file: Path) -> None:
    text, size = file.read_text(encoding="utf-8"), ChunkSize(128, 16)
    check_chunks(text, chunk_code(text, file.name, size), size)


MODULE = '''"""A shop."""

import os

LIMIT = 3


# Why it is so.
@decorated
class Basket:
    """Holds things."""

    def add(self): ...


async def pay(): ...


if LIMIT:
    os.remove("x")
'''


def test_python_is_cut_by_its_definitions() -> None:
    found = chunk_code(MODULE, "shop.py")
    assert [chunk.source for chunk in found] == ["shop.py", "shop.py#Basket", "shop.py#pay", "shop.py"]
    assert found[1].content.startswith("# Why it is so.\n@decorated\nclass Basket:")
    assert [chunk.metadata.get("heading") for chunk in found] == [None, "Basket", "pay", None]
    assert {chunk.document for chunk in found} == {"shop.py"}


def test_other_languages_are_cut_at_empty_lines() -> None:
    text = "func a() {\n}\n\nfunc b() {\n}\n"
    assert [chunk.content for chunk in chunk_code(text, "a.go", ChunkSize(4, 0))] == [
        "func a() {\n}",
        "func b() {\n}",
    ]
    assert [chunk.source for chunk in chunk_code("def f(): ...\n", "script", language="Python")] == [
        "script#f"
    ]


@pytest.mark.parametrize("text", ["def f(:\n\nx", "x = 1\0", "(" * 5000, "def f(): '\\d'; 1 is 1"])
def test_python_that_cannot_be_read_is_cut_all_the_same(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "".join([chunk.content for chunk in chunk_code(text, "a.py", ChunkSize(5000, 0))])


def test_a_definition_that_is_too_large_is_cut_at_its_lines() -> None:
    large = "def f():\n" + "\n".join([f"    x{number} = {number}" for number in range(100)])
    found = chunk_code(large, "a.py", ChunkSize(40, 8))
    assert {chunk.source for chunk in found} == {"a.py#f"}
    assert found[1].content.startswith("    x"), "an overlap begins with a line"
