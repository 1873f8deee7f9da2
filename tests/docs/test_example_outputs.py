"""Each example prints what its docstring says: the indented lines after "It prints"."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import runpy
import textwrap
from pathlib import Path

import pytest

from tests.docs.test_examples import EXAMPLES

SAID = re.compile(r"^It prints.*?:\n\n((?:(?: {4}.*)?\n)+)", re.MULTILINE)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_it_prints_what_it_says(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docstring = ast.get_docstring(ast.parse(example.read_text(encoding="utf-8"))) or ""
    said = SAID.search(f"{docstring}\n")
    assert said is not None, f"{example.name}: say in the docstring what it prints, after 'It prints:'"
    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.setattr("sys.argv", [str(example)])
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        runpy.run_path(str(example), run_name="__main__")
    assert printed.getvalue().rstrip() == textwrap.dedent(said[1]).rstrip()
