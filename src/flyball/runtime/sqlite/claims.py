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

from flyball.orchestrate.journal import Claim

try:
    import fcntl
except ImportError:
    fcntl = None

_FLOCK = "hhqqi0q"
"""Linux's `struct flock`: type, whence, start, length, pid."""


class FileClaims:
    """The claims of one journal. Safe in several threads, and after a fork."""

    __slots__ = ("_descriptor", "_held", "_path", "_pid")

    def __init__(self, path: str) -> None:
        self._path = f"{path}.driven"
        self._start_anew()

    def _start_anew(self) -> None:
        self._pid = os.getpid()
        self._descriptor: int | None = None
        self._held: dict[str, object] = {}

    def claim(self, loop_id: str) -> Claim | None:
        """See `Claimable.claim`."""
        if self._pid != os.getpid():
            self._start_anew()  # a fork: its parent's claims are its parent's
        mark = object()
        if self._held.setdefault(loop_id, mark) is not mark:
            return None
        if not self._locked(loop_id):
            del self._held[loop_id]
            return None
        return Claim(partial(self._release, loop_id, self._pid))

    def is_claimed(self, loop_id: str) -> bool:
        """See `Claimable.is_claimed`."""
        found = self.claim(loop_id)
        if found is None:
            return True
        found.release()
        return False

    def close(self) -> None:
        """Let go of all."""
        descriptor, self._descriptor = self._descriptor, None
        self._held = {}
        if descriptor is not None and self._pid == os.getpid():
            os.close(descriptor)

    def _release(self, loop_id: str, pid: int) -> None:
        if pid == os.getpid() and self._held.pop(loop_id, None) is not None:
            self._set(loop_id, locked=False)

    def _locked(self, loop_id: str) -> bool:
        """Lock a loop's byte; False if another has it. What cannot be locked at all is as good as ours."""
        if self._descriptor is None and fcntl is not None:
            try:
                self._descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            except OSError:
                return True
        return self._set(loop_id, locked=True)

    def _set(self, loop_id: str, *, locked: bool) -> bool:
        if fcntl is None or self._descriptor is None:
            return True
        kind = fcntl.F_WRLCK if locked else fcntl.F_UNLCK
        try:
            if hasattr(fcntl, "F_OFD_SETLK"):
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
