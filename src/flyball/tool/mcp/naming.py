"""Names that providers take, of names that servers have given."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from flyball.core.errors import UserError

_LONGEST = 64
_UNFIT = re.compile(r"[^a-zA-Z0-9_-]")


def fitting(name: str, prefix: str = "") -> str:
    """The name with its prefix, in signs that providers take, and not longer than they take.

    The same name gives the same one in any process. One that is cut ends with a hash of the whole.
    """
    whole = f"{prefix}__{name}" if prefix else name
    fit = _UNFIT.sub("_", whole) or "_"
    if len(fit) <= _LONGEST:
        return fit
    digest = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{fit[: _LONGEST - 9]}_{digest}"


def fitting_names(server: str, names: Iterable[str], prefix: str = "") -> dict[str, str]:
    """For each of a server's names the one that its tool has here.

    Raises:
        UserError: two would be called the same; the message says which.
    """
    theirs: dict[str, str] = {}
    for name in names:
        fit = fitting(name, prefix)
        if fit in theirs:
            raise UserError(
                f"the tools {theirs[fit]!r} and {name!r} of MCP server {server!r} would both be called "
                f"{fit!r}: leave one of them out with deny=[{name!r}]",
                server=server,
            )
        theirs[fit] = name
    return {name: fit for fit, name in theirs.items()}
