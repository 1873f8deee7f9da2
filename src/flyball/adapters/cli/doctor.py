"""`flyball doctor`: whether everything that flyball needs is there, and what to do where it is not.

Keys are looked for, never shown: only whether a variable is set.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct, to_builtins

from flyball.adapters.cli.places import data_folder
from flyball.adapters.cli.running import run
from flyball.adapters.cli.shared import SHARED, Shared
from flyball.core.errors import FlyballError

_EXTRAS = {
    "cyclopts": "cli",
    "rich": "cli",
    "platformdirs": "cli",
    "xllamacpp": "local",
    "nats-py": "nats",
    "litestar": "http",
    "uvicorn": "http",
    "aiohttp": "openai",
    "textual": "tui",
    "mcp": "mcp",
    "cryptography": "identity",
}
_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY")
_PACKAGES = ("msgspec", "pydantic", "jsonschema-rs", "json-repair")


class Check(Struct, frozen=True):
    """One thing that was looked at. Where it is not well: whether it is needed, and what to do."""

    name: str
    ok: bool
    found: str
    needed: bool = True
    remedy: str = ""


def doctor(*, shared: Shared = SHARED) -> int:
    """Look whether everything that flyball needs is there; exit 1 if something that is needed is broken.

    Args:
        shared: Options of all commands.
    """
    from flyball.adapters.cli.screen import write_json

    checks = list(_checks(shared))
    broken = [check for check in checks if check.needed and not check.ok]
    if shared.json:
        write_json({"ok": not broken, "checks": to_builtins(checks)})
    else:
        _print(checks)
    return 1 if broken else 0


def _checks(shared: Shared) -> Iterator[Check]:
    found = sys.version_info >= (3, 11)
    yield Check("Python", found, platform.python_version(), remedy="install Python 3.11 or newer")
    yield from _versions()
    yield _openmp()
    yield _nats_server()
    yield _writable("data folder", data_folder())
    yield from _guarded("model folder", _model_folder)
    yield from _guarded("models", _models)
    yield from _guarded("model", _model)
    yield from _guarded("journal", lambda: run(_journal(shared)))
    for name in _KEYS:
        there = bool(os.environ.get(name, "").strip())
        told = "set" if there else "not set"
        yield Check(name, there, told, needed=False, remedy="only for that provider's models")


def _versions() -> Iterator[Check]:
    from importlib.metadata import PackageNotFoundError, version

    yield Check("flyball", True, version("flyball"))  # noqa: FBT003 - it is there, or this would not run
    for name in (*_PACKAGES, *_EXTRAS):
        extra = _EXTRAS.get(name)
        what = f"flyball[{extra}]" if extra else "flyball"
        try:
            yield Check(name, True, version(name))  # noqa: FBT003 - it was found
        except PackageNotFoundError:
            needed = extra in (None, "cli")
            yield Check(name, False, "not installed", needed, f"pip install '{what}'")  # noqa: FBT003


def _openmp() -> Check:
    """Whether the system's OpenMP is there: the embedded engine is linked against it on Linux."""
    import ctypes

    if sys.platform != "linux":
        return Check("libgomp", True, "not needed on this system")  # noqa: FBT003
    try:
        ctypes.CDLL("libgomp.so.1")
    except OSError:
        remedy = "apt install libgomp1, dnf install libgomp, or apk add libgomp"
        return Check("libgomp", False, "libgomp.so.1 is not there: no embedded model", False, remedy)  # noqa: FBT003
    return Check("libgomp", True, "libgomp.so.1")  # noqa: FBT003


def _nats_server() -> Check:
    """Whether there is a server that `flyball up` can run."""
    from flyball.runtime.nats.server.binary import find_binary

    try:
        return Check("nats-server", ok=True, found=str(find_binary()))
    except FlyballError as error:
        told = "not found: no `flyball up` on this machine"
        return Check("nats-server", ok=False, found=told, needed=False, remedy=error.message)


def _writable(name: str, folder: Path) -> Check:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        wrong = f"{folder}: {error.strerror or error}"
        return Check(
            name, ok=False, found=wrong, remedy="change its permissions, or set FLYBALL_HOME to another"
        )
    return Check(name, ok=True, found=str(folder))


def _model_folder() -> Check:
    from flyball.models import models_folder

    return _writable("model folder", models_folder())


def _models() -> Check:
    from flyball.models import DEFAULT, installed

    names = [record.name for record in installed()]
    return Check(
        "models",
        bool(names),
        ", ".join(names) or "none",
        needed=False,
        remedy=f"flyball models pull {DEFAULT.name}",
    )


def _model() -> Check:
    """The model that answers where none is named."""
    from flyball.adapters.cli.driven import MODEL, default_model
    from flyball.adapters.cli.fetching import read_model
    from flyball.inference.registry import resolve_engine

    name, named = default_model(), bool(os.environ.get(MODEL))
    told = f"{name}, by {MODEL}" if named else name
    try:
        read_model(name)
        resolve_engine(name)
    except FlyballError as error:
        remedy = f"set {MODEL} to another, or unset it" if named else "flyball models pull"
        return Check("model", ok=False, found=f"{told}: {error.message}", needed=named, remedy=remedy)
    return Check("model", ok=True, found=told)


async def _journal(shared: Shared) -> Check:
    if not shared.file.exists():
        return Check("journal", ok=True, found=f"{shared.file}: none yet")
    async with shared.recorded() as journal:
        wrong, runs = await journal.integrity(), len(await journal.loops())
    if wrong:
        remedy = "keep a copy of the file, and set another with --journal"
        return Check("journal", ok=False, found=f"{shared.file}: {wrong[0]}", remedy=remedy)
    return Check(
        "journal", ok=True, found=f"{shared.file}: {runs} run{'s' if runs != 1 else ''}, all readable"
    )


def _guarded(name: str, look: Callable[[], Check]) -> Iterator[Check]:
    """A check whose own failure is what it found."""
    try:
        yield look()
    except FlyballError as error:
        yield Check(name, ok=False, found=f"{error.code}: {error.message}")


def _print(checks: list[Check]) -> None:
    from rich.text import Text

    from flyball.adapters.cli.screen import out

    width = max([len(check.name) for check in checks])
    for check in checks:
        style = "green" if check.ok else "red" if check.needed else "yellow"
        line = Text("✓" if check.ok else "✗" if check.needed else "-", style=style)
        line.append(f"  {check.name:{width}}", style="not dim bold default")
        line.append(f"  {check.found}", style="default")
        if check.remedy and not check.ok:
            line.append(f"  → {check.remedy}")
        out().print(line, soft_wrap=True)
    broken = len([check for check in checks if check.needed and not check.ok])
    things = f"{broken} thing{'s' if broken != 1 else ''}"
    told = f"{things} to put right" if broken else "all that is needed is there"
    out().print(f"\n{told}", style="red" if broken else "green")
