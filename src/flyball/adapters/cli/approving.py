"""Tools that need approval: a person at the terminal says yes or no."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from flyball.adapters.cli.screen import err, one_line
from flyball.core.context import RunContext
from flyball.core.messages import ToolCall
from flyball.orchestrate.bindings import Approval

_NOBODY = "nobody is here to approve it (--yes approves all calls)"


def approval(*, yes: bool) -> Approval:
    """Who decides about calls: everybody is let through with `yes`; else the terminal is asked."""

    async def decide(context: RunContext[Any], call: ToolCall) -> bool | str:
        if yes:
            return True
        if not (sys.stdin.isatty() and err().is_terminal):
            return _NOBODY
        err().print(f"? run {call.name} {one_line(call.args_json, 500)} [y/N] ", style="yellow", end="")
        answer = await _line()
        return True if answer.strip().lower() in ("y", "yes") else "the user said no"

    return decide


async def _line() -> str:
    """A line from the terminal; who waits for it can be cancelled."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[str] = loop.create_future()

    def read() -> None:
        if not ready.done():
            ready.set_result(sys.stdin.readline())

    try:
        loop.add_reader(sys.stdin.fileno(), read)
    except NotImplementedError:  # the event loop of Windows has no readers
        return await asyncio.to_thread(sys.stdin.readline)
    try:
        return await ready
    finally:
        loop.remove_reader(sys.stdin.fileno())
