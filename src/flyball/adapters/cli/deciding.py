"""Calls that wait for approval in the journal, and are decided about by whoever is at this terminal.

Where a loop has no judge of its own, it waits: the prompt is told, as on any channel, and what the person
presses is said to the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager

from flyball.adapters.cli.answering import Answer
from flyball.adapters.cli.approving import pressed, somebody_is_here
from flyball.adapters.cli.naming import short
from flyball.adapters.cli.person import person
from flyball.adapters.cli.screen import err, plain
from flyball.core.errors import Deferred, SignalRefused
from flyball.core.forms.semstreams import ResponseType, UserResponse, UserSignal
from flyball.core.ids import new_id
from flyball.orchestrate.channels import Address, signal_of
from flyball.orchestrate.channels.following import told_of
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.local import LocalRuntime
from flyball.orchestrate.recorded import calls_waiting
from flyball.orchestrate.service import Service

CHANNEL = "cli"
"""The type of the channel that a terminal is."""
ROLES = ("admin",)
"""What who sits at the terminal is: the file with the runs is theirs."""


async def decided(
    prompt: UserResponse,
    say: Callable[[UserSignal], Awaitable[object]],
    answer: Answer | None,
    *,
    yes: bool,
    may_wait: bool,
) -> bool:
    """Have a prompt decided about, and say so to its loop; False where the person leaves it open (Ctrl-D).

    `answer` is what is shown meanwhile. `may_wait`: whether it may be left open; else that is a no. Whoever
    decides elsewhere meanwhile has decided.
    """
    if answer is not None:
        answer.pause()
    chosen = await pressed(prompt, yes=yes, may_wait=may_wait)
    if chosen is None:
        return False
    action, reason = chosen
    try:
        await say(signal_of(action, prompt, new_id(), prompt.user_id, reason))
    except SignalRefused as refused:
        err().print(plain(refused.message), style="yellow", soft_wrap=True)
    if answer is not None:
        answer.begin()
    return True


async def still_waits(journal: Journal, prompt: UserResponse, loop_id: str) -> bool:
    """Whether a call that was asked about, of a loop or of one under it, still waits."""
    about = prompt.actions[0].id.partition("/")[2]
    waiting = await calls_waiting(journal, loop_id)
    return any((one.loop_id, one.call.id) == (prompt.in_reply_to, about) for one in waiting)


@asynccontextmanager
async def asking(journal: Journal, loop_id: str, answer: Answer | None, *, yes: bool) -> AsyncGenerator[None]:
    """A block in which a loop is driven whose calls or answers wait for approval: that is given here.

    Calls may not be left open: the model reads that they are refused. An answer may; then the block is left,
    and so it is where nobody is here to be asked: refused, the model would give another, again and again.

    Raises:
        Deferred: an answer waits; it says how to decide about it.
        JournalFailure: the loop cannot be followed.
    """
    driving = asyncio.current_task()
    assert driving is not None, "a block is somebody's"
    deciding = asyncio.create_task(_decide(journal, loop_id, answer, yes=yes))
    left = False

    def over(task: asyncio.Task[None]) -> None:
        nonlocal left
        if not task.cancelled() and task.exception() is not None:
            left = driving.cancel()

    deciding.add_done_callback(over)
    try:
        yield
    except asyncio.CancelledError:
        if not left or driving.uncancel():
            raise  # it was somebody else
    finally:
        deciding.cancel()
        await asyncio.wait([deciding])
    if not deciding.cancelled():
        deciding.result()


async def _decide(journal: Journal, loop_id: str, answer: Answer | None, *, yes: bool) -> None:
    # It drives nothing: it follows, and says what was pressed.
    service = Service([], LocalRuntime(journal))

    async def say(signal: UserSignal) -> None:
        await service.signal(signal.loop_id, signal.signal)

    address = Address(CHANNEL, loop_id, person())
    async with aclosing(told_of(service, address, loop_id, roles_of=lambda _: ROLES)) as told:
        async for response in told:
            if response.type == ResponseType.PROMPT and await still_waits(journal, response, loop_id):
                is_answer = response.response_id.endswith("/answer")
                somebody = yes or somebody_is_here()
                if is_answer and not somebody:
                    raise _waits(loop_id)
                if not await decided(response, say, answer, yes=yes, may_wait=is_answer):
                    raise _waits(loop_id)


def _waits(loop_id: str) -> Deferred:
    name = short(loop_id)
    return Deferred(
        f"an answer of run {name} waits for approval: to let it count, flyball resume {name} --approve; to "
        f'have another, flyball resume {name} --reject "why"',
        loop_id=loop_id,
    )
