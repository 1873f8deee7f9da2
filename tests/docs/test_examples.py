"""Each example runs to its end, by itself, without a model, and prints what its docstring says it prints.

That is the indented lines after "It prints".
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SAID = re.compile(r"^It prints.*?:\n\n((?:(?: {4}.*)?\n)+)", re.MULTILINE)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_example(example: Path) -> None:
    docstring = ast.get_docstring(ast.parse(example.read_text(encoding="utf-8"))) or ""
    said = SAID.search(f"{docstring}\n")
    assert said is not None, f"{example.name}: say in the docstring what it prints, after 'It prints:'"
    finished = subprocess.run(
        [sys.executable, "-W", "error", str(example)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=PATIENCE,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.rstrip() == textwrap.dedent(said[1]).rstrip()
