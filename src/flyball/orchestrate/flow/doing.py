"""Doing: what a step of a flow is run with, and how it begins loops that are recorded and counted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, TypeAlias, TypeVar, cast

from flyball.core.context import DepsT, RunContext, RunFacts
from flyball.core.events import Started
from flyball.core.messages import Content, Message
from flyball.inference.stream import Finish, Restart, StreamEvent
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.bindings import nobody_can_approve
from flyball.orchestrate.flow_loops import helper_loop
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.ledger import Ledger
from flyball.orchestrate.recorded import load
from flyball.orchestrate.result import RunResult

OutputT = TypeVar("OutputT")
Asked: TypeAlias = tuple[Content | None, Sequence[Message]]
"""What an agent is asked: a prompt, and the conversation before it."""
Hear: TypeAlias = Callable[[str, StreamEvent], None]
"""Is told the pieces of the answers of agents, as they come, each with the id of its loop."""


class StepContext(RunContext[DepsT], Generic[DepsT]):
    """The flow as seen from a step's function: its dependencies, its facts, and a way to run agents under it.

    `loop_id` is the flow's, `idempotency_key` names this step for ever.
    """

    __slots__ = ("_hear", "_helpers", "_options", "_step", "flow_input")

    def __init__(  # noqa: PLR0917 - made in one place
        self,
        deps: DepsT,
        facts: RunFacts,
        home: Any,
        step: str,
        options: Mapping[str, Any],
        hear: Hear | None = None,
        flow_input: Any = None,
    ) -> None:
        super().__init__(deps, facts, home)
        self._step = step
        self._options = options
        self._hear = hear
        self._helpers = 0
        self.flow_input = flow_input
        """What the flow was given, as plain JSON."""

    async def run(
        self, agent: Agent[Any, OutputT], prompt: Content | None = None, **options: Any
    ) -> RunResult[OutputT]:
        """Run an agent for this step, in a loop under the flow: what it used is counted as the step's.

        Where the step is run again after a crash, the runs that it had made are gone on with, in their order.
        Options are those of `Agent.run`.

        Raises:
            FlyballError: the run's own failure.
        """
        return await run_heard(agent, prompt, {**self._under(), **options}, self._hear)

    def under(self) -> dict[str, Any]:
        """The options by which a flow, or a pattern, is run for this step, as `run` does it with an agent."""
        return self._under() | ({} if self._hear is None else {"hear": self._hear})

    def _under(self) -> dict[str, Any]:
        self._helpers += 1
        return {**self._options, "parent": self, "loop_id": helper_loop(self._step, self._helpers)}


class Doing:
    """One step that is being run."""

    __slots__ = ("_hear", "_history", "_options", "context", "journal", "loop_id")

    def __init__(  # noqa: PLR0917 - made in one place
        self,
        context: StepContext[Any],
        journal: Journal,
        loop_id: str,
        history: str,
        options: Mapping[str, Any],
        hear: Hear | None = None,
    ) -> None:
        self.context = context
        self.journal = journal
        self.loop_id = loop_id
        self._history = history
        self._options = options
        self._hear = hear

    async def conversation(self) -> tuple[Message, ...]:
        """What was said in the loop that led here; nothing if there was none."""
        if not self._history:
            return ()
        _, state = await load(self.journal, self._history)
        return tuple(state.history)

    async def run(
        self, agent: Agent[Any, OutputT], asked: Callable[[], Awaitable[Asked]], **options: Any
    ) -> RunResult[OutputT]:
        """Run an agent as this step's own loop.

        `asked` says what it is asked, and is not called where the loop was begun before: what was asked then
        is recorded with it.
        """
        begun = await self.journal.read(self.loop_id)
        if begun and isinstance(first := begun[0], Started):
            prompt: Content | None = None if first.prompt is None else first.prompt.parts
            messages: Sequence[Message] = first.history
        else:
            prompt, messages = await asked()
        given: Any = {**self._options, **options, "parent": self.context, "loop_id": self.loop_id}
        if messages:
            given["messages"] = messages
        return await run_heard(agent, prompt, given, self._hear)


def check_reachable(agent: Agent[Any, Any]) -> None:
    """Check that an agent under a flow that nobody can reach comes to wait for nobody.

    Raises:
        UserError: it may.
    """
    bindings = agent.bindings()
    if bindings.waits_for_people:
        raise nobody_can_approve(bindings)


def _is_reachable(options: Any) -> bool:
    """Whether anybody can say something to a run with such options, or to one above it."""
    if options.get("journal") is not None or options.get("runtime") is not None:
        return True
    home = options["parent"].home if "parent" in options else None
    return cast("Ledger[Any]", home).reachable if isinstance(home, Ledger) else home is not None


async def run_heard(
    agent: Agent[Any, OutputT], prompt: Content | None, options: Any, hear: Hear | None
) -> RunResult[OutputT]:
    """Run an agent; while its answers are streamed, if somebody wants to hear them.

    Raises:
        UserError: it may come to wait for approval, and nobody could give it.
        FlyballError: the run's own failure.
    """
    if hear is None:
        return await agent.run(prompt, **options)
    if not _is_reachable(options):
        check_reachable(agent)  # who hears it cannot say anything to it
    async with agent.run_stream(prompt, **options) as streamed:
        whole = True
        try:
            async for piece in streamed.events():
                whole = type(piece) is Finish
                hear(streamed.loop_id, piece)
        except BaseException:
            if not whole:
                hear(streamed.loop_id, Restart())  # what was heard of the answer is void: no more comes of it
            raise
    return streamed.result
