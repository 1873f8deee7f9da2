"""The clock that loops go by: the machine's own, which model calls go by too."""

from flyball.inference.system_clock import SYSTEM_CLOCK, SystemClock

__all__ = ["SYSTEM_CLOCK", "SystemClock"]
