"""Claims on the loops of a file: locks on a file beside it, a byte for each loop.

The kernel knows who has them, and lets go of them with the process, also when that is killed: nothing has to
be renewed, and nothing expires too early. A journal lies on one machine, and so do they.

Linux has locks that belong to an open file. Elsewhere they belong to the process; and where there are none,
only what is claimed through this very journal is known.
"""

from __future__ import annotations

import os
import struct
from functools import partial
from hashlib import blake2b
from weakref import WeakSet

from flyball.orchestrate.journal import Claim

try:
    import fcntl
except ImportError:
    fcntl = None

_FLOCK = "hhqqi0q"
"""Linux's `struct flock`: type, whence, start, length, pid."""
_open: WeakSet[FileClaims] = WeakSet()


class FileClaims:
    """The claims of one journal. Safe in several threads. A forked child has none of its parent's."""

    __slots__ = ("__weakref__", "_descriptor", "_held", "_identity", "_path")

    def __init__(self, path: str) -> None:
        self._path = f"{path}.driven"
        self._descriptor: int | None = None
        self._identity: tuple[int, int] | None = None
        self._held: dict[str, object] = {}

    def claim(self, loop_id: str) -> Claim | None:
        """See `Claimable.claim`."""
        mark = object()
        if self._held.setdefault(loop_id, mark) is not mark:
            return None
        if self._opened() is not None and not self._set(loop_id, locked=True):
            self._held.pop(loop_id, None)
            return None
        return Claim(partial(self._release, loop_id, mark))

    def is_claimed(self, loop_id: str) -> bool:
        """See `Claimable.is_claimed`. Asking locks nothing."""
        if loop_id in self._held:
            return True
        descriptor = self._opened()
        if descriptor is None or fcntl is None:
            return False
        if not hasattr(fcntl, "F_OFD_GETLK"):
            free = self._set(loop_id, locked=True)
            if free:
                self._set(loop_id, locked=False)
            return not free
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, _place(loop_id), 1, 0)
        try:
            kind: int = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, asked))[0]
        except OSError:
            return False  # what cannot be locked is nobody's but ours
        return kind != fcntl.F_UNLCK

    def close(self) -> None:
        """Let go of all."""
        descriptor, self._descriptor = self._descriptor, None
        self._held = {}
        if descriptor is not None:
            os.close(descriptor)

    def _release(self, loop_id: str, mark: object) -> None:
        if self._held.get(loop_id) is mark:
            if self._descriptor is not None:
                self._set(loop_id, locked=False)
            self._held.pop(loop_id, None)

    def _opened(self) -> int | None:
        """The file with the locks; None where it cannot be had. One that was removed is made anew.

        What is claimed here is locked in the new one, too.
        """
        if fcntl is None:
            return None
        if self._descriptor is not None and _identity(self._path) == self._identity:
            return self._descriptor
        try:
            descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError:
            return self._descriptor
        before, self._descriptor, self._identity = self._descriptor, descriptor, _identity(descriptor)
        _open.add(self)
        for loop_id in list(self._held):
            self._set(loop_id, locked=True)
        if before is not None:
            os.close(before)
        return descriptor

    def _set(self, loop_id: str, *, locked: bool) -> bool:
        """Lock a loop's byte, or unlock it; False if another has it. What cannot be locked counts as ours."""
        assert fcntl is not None
        assert self._descriptor is not None
        try:
            if hasattr(fcntl, "F_OFD_SETLK"):
                kind = fcntl.F_WRLCK if locked else fcntl.F_UNLCK
                flock = struct.pack(_FLOCK, kind, os.SEEK_SET, _place(loop_id), 1, 0)
                fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLK, flock)
            else:
                command = fcntl.LOCK_EX | fcntl.LOCK_NB if locked else fcntl.LOCK_UN
                fcntl.lockf(self._descriptor, command, 1, _place(loop_id))
        except (BlockingIOError, PermissionError):
            return False
        except OSError:
            return True
        return True


def _place(loop_id: str) -> int:
    """The byte that stands for a loop. The file has none of them: they can be locked all the same."""
    return int.from_bytes(blake2b(loop_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()) >> 2


def _identity(file: str | int) -> tuple[int, int] | None:
    """Which file it is; None if there is none."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _part_from_parent() -> None:
    """In a forked child: close what it shares with its parent, whose locks would last as long as it does."""
    for claims in list(_open):
        claims.close()
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_part_from_parent)
