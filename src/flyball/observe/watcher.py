"""Watcher: a feature that is told what happens in an agent's runs, and decides nothing about them."""

from __future__ import annotations

import logging
from asyncio import CancelledError, current_task
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any, TypeAlias

from flyball.core.context import RunContext
from flyball.core.feature import Feature
from flyball.observe.events import RuntimeEvent

_log = logging.getLogger("flyball.observe")

Contexts: TypeAlias = Callable[[], RunContext[Any]]
"""Gives the run as it stood when the event happened; made when it is first asked for."""


class Watcher(Feature):
    """What is told of runs. Subclass it for a sink of your own; `Hook` and `EventBus` are two that are there.

    It is told in line, in the order in which things happen: the run waits until it returns. What it raises is
    logged, and changes nothing: neither the run nor what the others are told.
    """

    def tell(self, event: RuntimeEvent, context: Contexts) -> Awaitable[None] | None:
        """Take an event in. May be async, or give something to wait for."""
        raise NotImplementedError


async def unharmed(who: object, event: str, called: Callable[..., Any], *given: Any) -> None:
    """Call somebody who watches; what goes wrong there is logged, and goes no further.

    Raises:
        CancelledError: this task is being cancelled.
    """
    try:
        answer = called(*given)
        if answer is not None and isawaitable(answer):
            await answer
    except Exception:
        _log.exception("%s failed when it was told %s; the run goes on", who, event)
    except CancelledError:
        task = current_task()
        if task is None or task.cancelling():
            raise
        _log.exception("%s cancelled itself when it was told %s; the run goes on", who, event)
