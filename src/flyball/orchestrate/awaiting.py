"""Asking a user's function: sync or async, and a cancellation of its own told from one of ours."""

from __future__ import annotations

from asyncio import CancelledError, current_task
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import TypeVar, cast

T = TypeVar("T")


async def answer_of(function: Callable[..., T | Awaitable[T]], *about: object) -> T:
    """What a function gives, or what comes of waiting for it.

    Raises:
        RuntimeError: what it waited for, or looked at, was cancelled, and not this task.
    """
    try:
        value = function(*about)
        return await value if isawaitable(value) else cast("T", value)
    except CancelledError as error:
        if is_cancelled():
            raise
        raise RuntimeError("something that it waited for was cancelled") from error


def is_cancelled() -> bool:
    """Whether this task is being cancelled, and not just something that it waited for."""
    task = current_task()
    return task is None or task.cancelling() > 0
