"""Who sits at the terminal."""

from __future__ import annotations

import getpass

_SOMEBODY = "somebody"


def person() -> str:
    """The user of this machine; somebody, where the machine has no name for them, as in some containers."""
    try:
        return getpass.getuser() or _SOMEBODY
    except (OSError, KeyError, ImportError):
        return _SOMEBODY
