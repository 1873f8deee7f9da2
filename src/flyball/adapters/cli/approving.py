"""Tools that need approval: a person at the terminal says yes or no.

Loops that wait in the journal are told what the person presses (`pressed`). Runs of earlier versions asked
while they ran, and go on so (`approval`).

Nobody answers a question before it is asked: what was typed until then is thrown away.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from typing import Any

from flyball.adapters.cli.screen import err, one_line
from flyball.core.context import RunContext
from flyball.core.forms.semstreams import ResponseAction, UserResponse
from flyball.core.messages import ToolCall
from flyball.core.signals import SignalType
from flyball.orchestrate.bindings import Approval

_NOBODY = "nobody is here to approve it (--yes approves all calls)"
_NO = "the user said no"
_YES = ("y", "yes")


def approval(*, yes: bool) -> Approval:
    """Who decides about calls: everybody is let through with `yes`; else the terminal is asked."""

    async def decide(context: RunContext[Any], call: ToolCall) -> bool | str:
        if yes:
            return True
        if not somebody_is_here():
            return _NOBODY
        answer = await _answer_to(f"? run {call.name} {one_line(call.args_json, 500)} [y/N] ")
        return True if answer.strip().lower() in _YES else _NO

    return decide


def somebody_is_here() -> bool:
    """Whether there is a terminal at which a person can be asked."""
    return sys.stdin.isatty() and err().is_terminal


async def pressed(prompt: UserResponse, *, yes: bool, may_wait: bool) -> tuple[ResponseAction, str] | None:
    """The action of a prompt that is chosen, with the reason; None where the person leaves it open (Ctrl-D).

    With `yes` it is approved. Where nobody is at a terminal, it is rejected; so is what is left open, unless
    it may wait.
    """
    actions = {action.signal: action for action in prompt.actions}
    approve, reject = actions[SignalType.APPROVE], actions[SignalType.REJECT]
    if yes:
        return approve, ""
    if not somebody_is_here():
        return reject, _NOBODY
    about = " ".join([one_line(block.content, 500) for block in prompt.blocks])
    answer = await _answer_to(f"? {one_line(prompt.content)} {about} [y/N, or why not] ")
    if not answer:
        err().print()
        return None if may_wait else (reject, _NO)
    said = answer.strip()
    if said.lower() in _YES:
        return approve, ""
    return reject, _NO if said.lower() in ("", "n", "no") else said


async def _answer_to(question: str) -> str:
    """What the person types once a question is asked; nothing is the end of what they say (Ctrl-D)."""
    _forget_what_was_typed()
    err().print(question, style="yellow", end="", soft_wrap=True)
    return await _line()


def _forget_what_was_typed() -> None:
    """Throw away what was typed before, also half a line: it was not said about what is asked next."""
    with suppress(ImportError):  # Windows has none
        import termios

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


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
