"""Runtime: what carries loops on beyond the call that began them, in this process or on a cluster.

    runtime = LocalRuntime(SQLiteJournal("runs.db"))         # or: await NatsRuntime.open(...)
    loop_id = await runtime.submit(agent, "…")               # recorded when this returns
    async for told in runtime.follow(loop_id): ...           # events, and the pieces of answers
    await runtime.signal(loop_id, "approve", by="ann")
    await runtime.answer(loop_id, [DeferredToolResult("build", call_id, "green")])
    result = await runtime.result(agent, loop_id)

A runtime is a Driver: `run`, `run_stream` and `iter` take it as `runtime=`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Protocol, Self

from typing_extensions import Unpack

from flyball.core.clock import Clock
from flyball.core.context import DepsT
from flyball.core.errors import UserError
from flyball.core.events import Stage
from flyball.core.messages import Content
from flyball.core.signals import Signal, SignalType
from flyball.inference.stream import StreamEvent
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.bindings import Bindings
from flyball.orchestrate.clock import SYSTEM_CLOCK
from flyball.orchestrate.edited import has_edited
from flyball.orchestrate.editing import editor_loop
from flyball.orchestrate.elsewhere import Driver
from flyball.orchestrate.followed import Recorded
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.options import RunOptions
from flyball.orchestrate.result import OutputT, RunResult, deferred
from flyball.orchestrate.state import State


class Runtime(Driver, Protocol):
    """Carries loops on. `flyball.testing.conformance.RuntimeConformance` checks an implementation."""

    @property
    def journal(self) -> Journal:
        """Where its loops are recorded."""
        ...

    async def submit(
        self,
        agent: Agent[DepsT, OutputT],
        prompt: Content | None = None,
        **options: Unpack[RunOptions[DepsT]],
    ) -> str:
        """Begin a loop, or go on with the one that has this `loop_id`; its id, once it is recorded.

        The loop goes on whether or not anybody waits for it. Options are those of `Agent.run`.

        Raises:
            LoopMismatch: the id belongs to a loop with another prompt, history or spec.
            UserError: an option that does not exist, or that this runtime cannot have.
        """
        ...

    def follow(self, loop_id: str, after: int = 0) -> AsyncGenerator[Recorded | StreamEvent]:
        """What happens in a loop that is there or is going to be, from its event number `after` on.

        Events come once each, in order, with their numbers; before an answer's event come its pieces, from
        its beginning (a `Restart` takes them back). Who was away goes on by the last number that it has
        seen. It ends when the loop is over.

        Raises:
            FlyballError: the loop can be driven on no longer.
        """
        ...

    async def result(self, agent: Agent[Any, OutputT], loop_id: str) -> RunResult[OutputT]:
        """Wait until a loop is over; its result.

        Raises:
            LoopNotFound: there is no such loop.
            Deferred: nothing but results from outside can go on with it; once it has them, ask again.
            FlyballError: the loop failed or was cancelled, or can be driven on no longer.
        """
        ...

    async def signal(
        self,
        loop_id: str,
        signal: Signal | SignalType | str,
        text: str = "",
        call_id: str | None = None,
        *,
        by: str = "",
    ) -> Stage:
        """Say something to a loop; recorded when this returns, with the stage in which it was taken.

        Raises:
            LoopNotFound: there is no such loop.
            SignalRefused: it does not fit where the loop stands; it says which do.
            UserError: there is no such signal.
        """
        ...

    async def carry_on(self, bindings: Bindings, loop_id: str, clock: Clock = SYSTEM_CLOCK) -> None:
        """Have a recorded loop driven on, unless somebody does already; one that is over stays as it is.

        The loop goes on whether or not anybody waits for it: one that was interrupted, was opened again by a
        retry, or is a fork. It goes by its recorded policy; `bindings` are the code behind it.

        Raises:
            LoopNotFound: there is no such loop.
            UserError: it is a flow, or counts on what is not bound here.
        """
        ...

    async def drain(self, seconds: float) -> None:
        """Give what this process drives so many seconds to come to its end, or to where it waits.

        What has not by then goes on until `aclose`.
        """
        ...

    async def aclose(self) -> None:
        """Let go of the loops: what is recorded stays, and can be gone on with."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


async def result_once_over(
    agent: Agent[Any, OutputT], journal: Journal, loop_id: str, over: Callable[[str], Awaitable[State]]
) -> RunResult[OutputT]:
    """The result of a loop, once it and the editors that it has handed on to are over; `over` waits for that.

    Raises:
        Deferred: it waits for results from outside.
        FlyballError: the loop failed or was cancelled.
    """
    state = await over(loop_id)
    if state.at != "done":
        raise deferred(state, journal)
    while has_edited(state):
        editor = editor_loop(state.loop_id)
        await journal.wait(editor, 0)
        state = await over(editor)
    return await agent.replay(loop_id, journal)


def check_submitted(options: Mapping[str, Any], journal: Journal) -> None:
    """Check that a loop which is submitted to a runtime is not asked for elsewhere.

    Raises:
        UserError: it is.
    """
    if "runtime" in options:
        raise UserError("a loop is carried on by the runtime that it is submitted to: leave runtime= out")
    check_kept(options.get("journal"), journal)


def check_kept(asked: Journal | None, journal: Journal) -> None:
    """Check that a loop is to be kept where a runtime keeps its loops.

    Raises:
        UserError: elsewhere.
    """
    if asked is not None and asked is not journal:
        raise UserError("a runtime keeps its loops in its own journal: leave journal= out")
