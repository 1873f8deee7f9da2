"""What processes and the machine used, as Linux counts it: CPU seconds and resident memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """The CPU time that a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def resident_bytes(pid: int) -> int:
    """The memory that a process has just now."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Machine(NamedTuple):
    """Seconds of all cores since the start: busy, idle, and idle while a disk is waited for."""

    busy: float
    idle: float
    disk: float


def machine() -> Machine:
    """What the machine did so far."""
    line = Path("/proc/stat").read_text().partition("\n")[0]
    user, nice, system, idle, disk, *rest = [int(field) / _TICKS for field in line.split()[1:9]]
    return Machine(user + nice + system + sum(rest), idle, disk)


class Cores(NamedTuple):
    """How many cores were busy on average: with the clients or workers, the server, and anything else."""

    clients: float
    server: float
    others: float
    idle: float
    disk: float


class Meter:
    """Measures from when it is made."""

    def __init__(self, clients: Sequence[int], server: int) -> None:
        self._clients, self._server = clients, server
        self._before = self._seconds()
        self._machine = machine()

    def cores(self, seconds: float) -> Cores:
        """The cores that were used since, over so many seconds."""
        clients, server = [
            (now - then) / seconds for now, then in zip(self._seconds(), self._before, strict=True)
        ]
        busy, idle, disk = [
            (now - then) / seconds for now, then in zip(machine(), self._machine, strict=True)
        ]
        return Cores(clients, server, max(busy - clients - server, 0.0), idle, disk)

    def _seconds(self) -> tuple[float, float]:
        return sum(map(cpu_seconds, self._clients)), cpu_seconds(self._server)
