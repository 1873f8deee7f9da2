"""Disks that lose their power: a file system of its own for each node, in a file, that can be cut off.

What was written and not synced is gone then, as it is when a machine goes dark; `kill -9` never shows that,
since the system keeps what a dead process wrote. It needs Linux, root, loop devices and ext4.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

_SHUT_DOWN = 0x8004587D
"""The file system's ioctl: nothing more reaches the disk, what is not there yet included."""
_WITHOUT_THE_LOG = struct.pack("I", 2)
_SIZE = 128 * 2**20
_TOOLS = ("mkfs.ext4", "mount", "umount")


class Disk:
    """One of them; what is in `folder` is on it while it is mounted."""

    def __init__(self, image: Path, folder: Path) -> None:
        self.folder = folder
        self._image = image

    def make(self) -> None:
        """Have a file system, empty and not mounted."""
        with self._image.open("wb") as file:
            file.truncate(_SIZE)
        _run("mkfs.ext4", "-q", "-F", str(self._image))
        self.folder.mkdir()

    def mount(self) -> None:
        """Have what is on it in the folder."""
        _run("mount", "-o", "loop", str(self._image), str(self.folder))

    def cut(self) -> None:
        """Take its power away. Whoever uses it meets errors from now on."""
        handle = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.ioctl(handle, _SHUT_DOWN, _WITHOUT_THE_LOG)
        finally:
            os.close(handle)

    def unmount(self) -> None:
        """Let go of it, and of its loop device, if it is mounted; nobody may use it any more."""
        if self.folder.is_mount():
            _run("umount", str(self.folder))


@contextmanager
def disks(number: int) -> Generator[Sequence[Disk]]:
    """Disks that are mounted, inside the block; whatever happens there, none is left at its end."""
    folder = Path(tempfile.mkdtemp(prefix="flyball-power-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        made = [Disk(folder / f"{n}.img", folder / str(n)) for n in range(number)]
        for disk in made:
            disk.make()
            stack.callback(disk.unmount)
            disk.mount()
        yield made


def why_not() -> str:
    """Why power cannot be lost here; nothing if it can."""
    if os.geteuid():
        return "only root mounts file systems: run it as root"
    if missing := [tool for tool in _TOOLS if shutil.which(tool) is None]:
        return f"{', '.join(missing)} is not installed"
    try:
        with disks(1) as (disk,):
            (disk.folder / "written").write_text("and not synced")
            disk.cut()
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", "") or error
        return f"a file system in a file cannot be mounted and cut off here: {said}"
    return ""


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


async def lose_power(disks: Sequence[Disk]) -> None:
    """Cut disks off all at once."""
    await asyncio.gather(*[asyncio.to_thread(disk.cut) for disk in disks])
