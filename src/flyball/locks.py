"""A lock between processes: a file that one holder at a time has locked.

The system gives it up when its holder ends, however that happens, so no lock is ever left behind. The file
itself stays: removing it would let two holders lock two files of one name.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

_POLL = 0.1


def _try_lock(descriptor: int) -> bool:
    if sys.platform == "win32":
        import msvcrt

        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def try_locked(path: Path) -> Generator[bool]:
    """Hold the lock inside the block where it is free; the block learns whether it was."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        yield _try_lock(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(path: Path, waiting: Callable[[], None] = lambda: None) -> Generator[None]:
    """Hold the lock inside the block; `waiting` is called now and then while somebody else has it.

    It waits as long as the other holds it: who has it works, or has ended and gives it up.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        while not _try_lock(descriptor):
            waiting()
            time.sleep(_POLL)
        yield
    finally:
        os.close(descriptor)
