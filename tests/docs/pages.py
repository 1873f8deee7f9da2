"""Runs the Python of a Markdown page, so that what the documentation shows is what happens.

- The ```` ```python ```` blocks of a page run in order, in one module; `await` works at the top level.
- A ```` ```text ```` block that comes next after a Python block is what it prints, to the letter.
- A ```` ```python skip <reason> ```` block is not run, but must be Python.
- All other blocks are for the reader alone.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import sys
from collections.abc import Generator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

from markdown_it import MarkdownIt
from markdown_it.token import Token

MISSPELT = {"py", "python3", "Python", "pycon"}


class PageError(AssertionError):
    """A page says what is not so. The message names the page and the line."""


@dataclass(frozen=True)
class Block:
    """A Python block of a page: where it stands, whether it is run, and what it should print."""

    page: str
    line: int
    source: str
    skipped: bool
    prints: str | None

    def compile(self) -> CodeType:
        """Compiled such that a traceback shows the line of the page.

        Raises:
            PageError: it is not Python.
        """
        text = "\n" * (self.line - 1) + self.source
        try:
            return compile(text, self.page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        except SyntaxError as error:
            raise PageError(f"{self.page}:{error.lineno}: this block is not Python: {error.msg}") from error


def blocks_of(markdown: str, page: str) -> list[Block]:
    """The Python blocks of a page, in order.

    Raises:
        PageError: a block is marked in a way that this harness does not know.
    """
    fences = [token for token in MarkdownIt().parse(markdown) if token.type == "fence"]
    return [
        block
        for fence, following in pairwise([*fences, None])
        if fence is not None and (block := _block(fence, following, page)) is not None
    ]


def _block(fence: Token, following: Token | None, page: str) -> Block | None:
    language, _, marks = fence.info.strip().partition(" ")
    line = (fence.map or [0])[0] + 2
    if language in MISSPELT:
        raise PageError(f"{page}:{line - 1}: a block marked {language!r} would not be run: write 'python'")
    if language != "python":
        return None
    mark, _, reason = marks.strip().partition(" ")
    if mark not in {"", "skip"}:
        raise PageError(f"{page}:{line - 1}: unknown mark {mark!r}: write 'python' or 'python skip <reason>'")
    if mark and not reason.strip():
        raise PageError(f"{page}:{line - 1}: a skipped block says why: write 'python skip <reason>'")
    prints = following.content if following is not None and following.info.strip() == "text" else None
    return Block(page, line, fence.content, skipped=bool(mark), prints=prints)


def run_page(path: Path) -> int:
    """Run a page's blocks; returns how many there are, the skipped ones included.

    A block that awaits runs in the page's event loop, any other outside it: so `run_sync` works too.

    Raises:
        PageError: a block is no Python, or prints something else than the page says.
        Exception: whatever a block raises.
    """
    blocks = blocks_of(path.read_text(encoding="utf-8"), path.name)
    compiled = [(block, block.compile()) for block in blocks]
    with _module(f"page_{path.stem.lower().replace('-', '_')}") as module, asyncio.Runner() as runner:
        for block, code in compiled:
            if not block.skipped:
                _run(block, code, module, runner)
    return len(blocks)


def _run(block: Block, code: CodeType, module: ModuleType, runner: asyncio.Runner) -> None:
    out = io.StringIO()
    function = FunctionType(code, vars(module))
    with contextlib.redirect_stdout(out):
        if code.co_flags & inspect.CO_COROUTINE:
            runner.run(function())
        else:
            function()
    if block.prints is not None and _lines(out.getvalue()) != _lines(block.prints):
        raise PageError(
            f"{block.page}:{block.line}: the page says that this block prints\n\n{block.prints}\n"
            f"but it prints\n\n{out.getvalue()}"
        )


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().splitlines()]


@contextlib.contextmanager
def _module(name: str) -> Generator[ModuleType]:
    """A module that can be found by name, as whoever resolves annotations of its classes will look for it."""
    module = ModuleType(name)
    sys.modules[name] = module
    try:
        yield module
    finally:
        del sys.modules[name]
