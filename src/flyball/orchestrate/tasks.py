"""Which task runs now, asked for on paths where a tenth of a microsecond counts."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

current_task: Callable[[asyncio.AbstractEventLoop], asyncio.Task[Any] | None]
"""The task that runs in an event loop now."""

if sys.version_info >= (3, 12):
    current_task = asyncio.current_task
else:
    # Before 3.12 asyncio.current_task is written in Python, and costs four times the look-up that it makes.
    from asyncio.tasks import _current_tasks  # pyright: ignore[reportPrivateUsage, reportUnknownVariableType, reportAttributeAccessIssue]

    current_task = _current_tasks.get  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
