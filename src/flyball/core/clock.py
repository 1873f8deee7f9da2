"""Where time comes from. Everything that needs the time takes a clock, so that tests can hold it still."""

from __future__ import annotations

from collections.abc import Callable
from time import time
from typing import TypeAlias

Clock: TypeAlias = Callable[[], float]
"""Returns the seconds since the epoch."""

system_clock: Clock = time
