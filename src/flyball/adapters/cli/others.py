"""The other adapters, which the command line starts and does not import: they are found by name."""

from __future__ import annotations

from typing import Any

from flyball.core.errors import MissingExtra, UserError

GROUP = "flyball.adapters"
"""The entry points' group."""
_EXTRAS = {"tokens": "http", "http-serving": "http", "mcp-mount": "mcp"}


def adapter(name: str) -> Any:
    """What starts an adapter.

    Raises:
        MissingExtra: what it needs is not installed.
        UserError: there is none of that name.
    """
    from importlib.metadata import entry_points

    found = entry_points(group=GROUP, name=name)
    if not found:
        raise UserError(f"no adapter {name!r} is installed")
    try:
        return next(iter(found)).load()
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] == "flyball":
            raise
        extra = _EXTRAS.get(name, name)
        raise MissingExtra(
            f"{error.name} is not installed, which this needs: pip install 'flyball[{extra}]'", extra=extra
        ) from error
