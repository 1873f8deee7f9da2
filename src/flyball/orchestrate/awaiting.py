"""Waiting for a user's function: sync or async, and a cancellation of its own told from one of ours."""

from __future__ import annotations

from asyncio import CancelledError, current_task
from collections.abc import Awaitable
from inspect import isawaitable
from typing import TypeVar, cast

T = TypeVar("T")


async def awaited(value: T | Awaitable[T]) -> T:
    """What a function gave, or what comes of waiting for it.

    Raises:
        RuntimeError: what it waited for was cancelled, and not this task.
    """
    if not isawaitable(value):
        return cast("T", value)
    try:
        return await value
    except CancelledError as error:
        if is_cancelled():
            raise
        raise RuntimeError("something that it waited for was cancelled") from error


def is_cancelled() -> bool:
    """Whether this task is being cancelled, and not just something that it waited for."""
    task = current_task()
    return task is None or task.cancelling() > 0
