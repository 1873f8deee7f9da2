"""By how much this process grows, at the peak: as Python counts it, and as the operating system does."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


def traced_peak() -> Callable[[], int]:
    """Begin to count as Python's allocators do; what it gives tells the growth, and ends the counting."""
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()

    def peak() -> int:
        _, highest = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return highest - before

    return peak


def resident_peak() -> Callable[[], int]:
    """Begin to count as the operating system does: in whole pages, with what the allocators waste."""
    try:
        _CLEAR.write_text("5")  # the peak begins anew
    except OSError:
        pass  # it then counts from the process's own peak, which importing has hardly passed
    before = _resident("VmRSS") if _STATUS.exists() else _peak_so_far()
    return lambda: (_resident("VmHWM") if _STATUS.exists() else _peak_so_far()) - before


def _resident(field: str) -> int:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(f"{_STATUS} has no {field}")


def _peak_so_far() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
