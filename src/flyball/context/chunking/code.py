"""chunk_code: a file of code in chunks: Python by its definitions, all else by its empty lines."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from flyball.context.chunk import Chunk
from flyball.context.chunking.packing import CODE, LINES, Span, overlapping, packed
from flyball.context.chunking.size import DEFAULT, ChunkSize
from flyball.context.chunking.text import chunks_of

_LINE_END = re.compile(r"\r\n|\r|\n")
_PYTHON = (".py", ".pyi")


class _Part(NamedTuple):
    """Something at the top level of a file; without a name it is what stands between definitions."""

    name: str
    span: Span


def chunk_code(text: str, source: str, size: ChunkSize = DEFAULT, *, language: str = "") -> list[Chunk]:
    """A file of code in chunks.

    Of Python, each function and class at the top level is one, with its decorators and the comment right
    above it, and what stands between two of them is another; the source is the file with the name,
    `shop.py#Basket`, and the metadata has it as `heading`. What is too large is cut at empty lines, then at
    lines. Any other language, and Python that cannot be read, is cut at empty lines.

    Args:
        text: the code.
        source: the file's name.
        size: how large chunks are.
        language: `"python"`, or something else; without it the name tells.
    """
    python = language.lower() == "python" if language else source.lower().endswith(_PYTHON)
    chunks: list[Chunk] = []
    for part in _parts(text) if python else [_Part("", Span(0, len(text)))]:
        pieces = packed(text, part.span, CODE, size)
        pieces = overlapping(text, pieces, LINES, size)
        named = f"{source}#{part.name}" if part.name else source
        chunks += chunks_of(text, source, pieces, source=named, heading=part.name)
    return chunks


def _parts(text: str) -> Iterator[_Part]:
    """The parts of a Python file in order; together they are the whole text."""
    start = 0
    for name, span in _definitions(text):
        if span.start > start:
            yield _Part("", Span(start, span.start))
        yield _Part(name, span)
        start = span.end
    if start < len(text):
        yield _Part("", Span(start, len(text)))


def _definitions(text: str) -> Iterator[_Part]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what Python has against the code is not ours to tell
            body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return  # it is cut like any other text
    starts = [0, *[found.end() for found in _LINE_END.finditer(text)], len(text)]
    lines = [text[one:other] for one, other in pairwise(starts)]
    floor = 0
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = min([node.lineno, *[one.lineno for one in node.decorator_list]]) - 1
            while first > floor and lines[first - 1].startswith("#"):
                first -= 1
            last = node.end_lineno or node.lineno
            yield _Part(node.name, Span(starts[first], starts[last]))
        floor = node.end_lineno or floor
