"""Importing flyball costs little: what is heavy is loaded where it is used, and not before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE

SOURCE = Path(__file__).resolve().parents[2] / "src"

HEAVY = {
    "aiohttp",
    "cryptography",
    "genai_prices",
    "hypothesis",
    "http.client",
    "httpx2",
    "importlib.metadata",
    "jinja2",
    "json_repair",
    "jsonschema_rs",
    "mcp",
    "mcp_types",
    "multiprocessing",
    "nats",
    "opentelemetry.sdk",
    "pydantic.main",
    "pydantic.type_adapter",
    "pytest",
    "rfc8785",
    "rich",
    "sqlite3",
    "unittest",
}

EVERY_MODULE = """
import importlib, pkgutil
for package in ("core", "inference", "context", "tool", "prompt", "observe", "identity", "orchestrate"):
    parent = importlib.import_module(f"flyball.{package}")
    for module in pkgutil.walk_packages(parent.__path__, f"flyball.{package}."):
        if not module.name.startswith(("flyball.prompt.jinja.", "flyball.tool.mcp.wire.")):
            importlib.import_module(module.name)
"""
"""All but what only a `JinjaTemplate` imports, when it is made, and a connection to an MCP server, when it is
opened: that is Jinja's, and the SDK's, through and through."""


def modules_after(code: str) -> set[str]:
    """The modules that a fresh Python has loaded when it has run some code."""
    # Coverage loads half the standard library into every process that it measures: not into this one.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    environment["PYTHONPATH"] = str(SOURCE)
    finished = subprocess.run(
        [sys.executable, "-c", f"import json, sys\n{code}\nprint(json.dumps(list(sys.modules)))"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return set(json.loads(finished.stdout))


@pytest.mark.parametrize(
    "code", ["import flyball", EVERY_MODULE], ids=["flyball", "every module of the loop"]
)
def test_an_import_loads_nothing_heavy(code: str) -> None:
    loaded = modules_after(code)
    assert "flyball" in loaded
    assert not loaded & HEAVY


def test_a_fresh_python_has_loaded_nothing_heavy() -> None:
    assert not modules_after("") & HEAVY


def test_heavy_modules_are_seen() -> None:
    assert "pydantic.type_adapter" in modules_after("from pydantic import TypeAdapter")
