from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.integration
def test_pydantic_is_loaded_with_the_first_tool_and_not_before():
    script = """
import sys
from flyball.tool.decorator import tool
from flyball.tool.execute import execute
from flyball.tool.registry import Registry
from flyball.tool.toolset import Toolset
early = {"pydantic_core", "pydantic.main", "difflib"} & set(sys.modules)
assert not early, early
def f(x: int) -> int: ...
tool(f)
assert "pydantic_core" in sys.modules
print("fine")
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, env=env)
    assert (run.stdout, run.stderr) == ("fine\n", "")
