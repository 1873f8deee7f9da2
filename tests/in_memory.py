"""Files of tests are kept in memory where there is room for them: most of what they wait for is a disk.

Every append of a journal is synced, and every stream that a server makes and deletes: on a disk that others
use too this takes ten times as long. What is synced is the same; that it outlives the power is what
`tests/power` is for.
"""

from __future__ import annotations

import os
from pathlib import Path

_MEMORY = Path("/dev/shm")
_ROOM = 2 * 2**30


def keep_in_memory() -> None:
    """Have `tmp_path` and its like in memory, unless somebody says by a variable where they are to be."""
    said = os.environ.get("PYTEST_DEBUG_TEMPROOT") or os.environ.get("TMPDIR")
    if not said and _has_room(_MEMORY):
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(_MEMORY)


def _has_room(folder: Path) -> bool:
    """Whether a folder is there, has room, and may hold programs: that of a container often does neither."""
    try:
        status = os.statvfs(folder)
    except OSError:
        return False
    room = status.f_bavail * status.f_frsize
    return room >= _ROOM and not status.f_flag & os.ST_NOEXEC and os.access(folder, os.W_OK)
