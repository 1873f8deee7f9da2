"""What README says to paste into `python -m asyncio` can be pasted: an empty line ends a block there."""

from __future__ import annotations

import ast
from code import InteractiveConsole
from pathlib import Path
from types import CodeType

import pytest

from tests.docs.pages import Block, blocks_of

README = Path(__file__).resolve().parents[2] / "README.md"
BLOCKS = [block for block in blocks_of(README.read_text(), "README.md") if not block.skipped]


class Console(InteractiveConsole):
    """The console of `python -m asyncio`, which is told lines and runs nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.compile.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT

    def runcode(self, code: CodeType) -> None:
        """Leave it at that it could be compiled."""

    def showsyntaxerror(self, filename: str | None = None, **_: object) -> None:
        """Let the test fail."""
        raise  # noqa: PLE0704 - it is called while the error is handled


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: str(block.line))
def test_a_block_can_be_pasted(block: Block) -> None:
    console = Console()
    awaited = [console.push(line) for line in (*block.source.splitlines(), "")]
    assert not awaited[-1]
