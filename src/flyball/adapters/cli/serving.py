"""The System facade with a journal behind it, for the time of one command."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from flyball.adapters.cli.exits import RUN
from flyball.adapters.cli.naming import short
from flyball.adapters.cli.origin import Origin
from flyball.core.errors import CancelledSignal
from flyball.core.events import Started
from flyball.core.spec import LoopSpec
from flyball.inference.stream import StreamEvent
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.bindings import Approval
from flyball.orchestrate.contracts import SystemResponse
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.machines import AnyState
from flyball.orchestrate.patterns.redundant import Redundancy
from flyball.orchestrate.recorded import load_any
from flyball.orchestrate.serving.flows import recorded_request
from flyball.orchestrate.serving.trying import last_of
from flyball.orchestrate.state import State
from flyball.orchestrate.system import System
from flyball.runtime.sqlite import SQLiteJournal

if TYPE_CHECKING:
    from flyball.adapters.cli.answering import Answer


@asynccontextmanager
async def serving(
    journal: SQLiteJournal,
    origin: Origin,
    options: Mapping[str, Any],
    *,
    judge: Approval | None = None,
) -> AsyncGenerator[System]:
    """A system whose runs are recorded; at the end its engine, its journal and its MCP servers are closed.

    `judge` decides about calls that need approval, and is not named in the journal. Without one they wait
    there for a signal.

    Raises:
        ConfigurationFailure: the model cannot be had.
        ToolFailure: an MCP server cannot be used.
    """
    async with journal, outfitted(origin, options) as agent:
        if judge is not None:
            agent = agent.clone(approval=judge)  # noqa: PLW2901 - the same, with a judge
        system = System(agent, journal=journal, redundancy=Redundancy(n=origin.votes))
        try:
            yield system
        finally:
            await system.aclose()


@asynccontextmanager
async def outfitted(origin: Origin, options: Mapping[str, Any]) -> AsyncGenerator[Agent[Any, Any]]:
    """An agent with its model's file on this disk, and with the tools of its MCP servers while they are open.

    Raises:
        ConfigurationFailure: the model cannot be had.
        ToolFailure: an MCP server cannot be used.
    """
    from flyball.adapters.cli.fetching import fetched
    from flyball.adapters.cli.servers import opened

    async with opened(origin.mcp) as toolsets:
        whole: dict[str, Any] = {**options, "tools": [*options.get("tools", ()), *toolsets]}
        yield Agent(await fetched(origin.model), **whole)


@asynccontextmanager
async def leaving(journal: Journal, loop_id: str) -> AsyncGenerator[None]:
    """A block in which a run is driven: who cancels it learns how to go on with the run.

    Raises:
        CancelledSignal: it was cancelled, and the run is recorded as far as it came.
    """
    try:
        yield
    except asyncio.CancelledError:
        events = await journal.read(loop_id)
        if not events:
            raise
        name = short(loop_id)
        error = CancelledSignal(f"run {name} is recorded as far as it came; to go on: flyball resume {name}")
        error.details[RUN] = loop_id
        raise error from None


async def only_response(
    pieces: AsyncGenerator[StreamEvent | SystemResponse],
) -> AsyncGenerator[StreamEvent | SystemResponse]:
    """A stream without its pieces: those of a plan's steps are on the way to the answer, not part of it.

    Nor are those of an answer that is to be approved.
    """
    try:
        async for piece in pieces:
            if isinstance(piece, SystemResponse):
                yield piece
    finally:
        await pieces.aclose()


def is_typed(spec: LoopSpec) -> bool:
    """Whether the answer is JSON, and not text."""
    return spec.output.schema is not None or bool(spec.output.tools)


def _is_plan(state: AnyState) -> bool:
    return not isinstance(state, State) and recorded_request(state).mode == "plan"


def _is_held(state: AnyState) -> bool:
    """Whether an answer is no answer before it is approved: who approves it is shown it then."""
    return isinstance(state, State) and state.spec.output.approval


def gives_json(state: AnyState) -> bool:
    """Whether a recorded run's answer is JSON, and not text."""
    if isinstance(state, State):
        return is_typed(state.spec)
    output = recorded_request(state).output
    return output is not None and output.schema is not None


async def judge_of(journal: Journal, state: AnyState, *, yes: bool) -> Approval | None:
    """Who decides about the calls of a recorded run while it is driven: who is at the terminal, or nobody.

    Runs that earlier versions began had such a judge, and go on by what is recorded.
    """
    from flyball.adapters.cli.approving import approval

    begun = [await journal.read(one) for one in (state.loop_id, *state.children)]
    is_judged = any(isinstance(event, Started) and event.spec.judges for events in begun for event in events)
    return approval(yes=yes) if is_judged else None


async def go_on(
    system: System, journal: Journal, loop_id: str, *, as_json: bool, quiet: bool, yes: bool
) -> int:
    """Drive a recorded run to its end and show it; one that ended badly is tried again. The exit code.

    Where its calls wait for approval, whoever is here is asked; with `yes` they are approved.
    """
    from flyball.adapters.cli.answering import Answer

    _, state = await load_any(journal, loop_id)
    pieces = system.resume_stream(loop_id, retry=True)
    pieces = only_response(pieces) if _is_plan(state) or _is_held(state) else pieces
    tools = bool(state.spec.tools) if isinstance(state, State) else bool(system.agent.config.tools)
    answer = None if as_json else Answer(typed=gives_json(state), tools=tools, quiet=quiet)
    return await shown(pieces, answer, journal, loop_id, asks=_asks(state), yes=yes)


async def shown(
    pieces: AsyncGenerator[StreamEvent | SystemResponse],
    answer: Answer | None,
    journal: Journal,
    loop_id: str,
    *,
    asks: bool,
    yes: bool,
) -> int:
    """Drive a run to its end and show it, as JSON where there is no `answer`; gives the exit code.

    `asks`: whoever is here is asked about calls and answers that wait; with `yes` they are approved.
    """
    from flyball.adapters.cli.answering import print_response
    from flyball.adapters.cli.deciding import asking

    deciding = asking(journal, loop_id, answer, yes=yes) if asks else nullcontext()
    async with leaving(journal, loop_id), deciding:
        response = await (last_of(pieces) if answer is None else answer.shown(pieces))
    return print_response(response) if answer is None else answer.close(response)


def _asks(state: AnyState) -> bool:
    """Whether something of a run may wait for somebody; where it has a judge, its calls do not."""
    if not isinstance(state, State):
        return True
    spec = state.spec
    return spec.output.approval or (not spec.judges and any(tool.approval for tool in spec.tools.values()))
