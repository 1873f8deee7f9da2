"""What may be chosen for one run: laid over what the agent was made with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypedDict

from flyball.core.clock import Clock
from flyball.core.context import DepsT, RunContext
from flyball.core.correlation import Correlation
from flyball.core.deferred import DeferredToolResult
from flyball.core.errors import UserError
from flyball.core.feature import Feature
from flyball.core.limits import Limits, UsageLimits
from flyball.core.messages import Message, ToolResult
from flyball.core.settings import ModelSettings
from flyball.core.snapshot import RunSnapshot
from flyball.core.tools import ToolChoice
from flyball.inference.engine import Engine
from flyball.orchestrate.elsewhere import Driver
from flyball.orchestrate.journal import Journal


class RunOptions(TypedDict, Generic[DepsT], total=False):
    """Options of a single run. All are optional."""

    deps: DepsT
    """What the run's tools, prompt functions and validators get as `ctx.deps`."""
    messages: Sequence[Message]
    """The conversation so far, such as an earlier result's `messages`."""
    snapshot: RunSnapshot
    """A run to go on from: its messages, and what it had used and counted. In the place of `messages`."""
    deferred_results: Sequence[DeferredToolResult | ToolResult]
    """Results of calls that were deferred: of those that `messages` ends with, or of the recorded loop."""
    model: str | Engine
    """Another model than the agent's."""
    settings: ModelSettings
    """Laid over the agent's settings."""
    limits: Limits
    """In the place of the agent's limits."""
    usage_limits: UsageLimits
    """In the place of the soft limits only."""
    timeout: float
    """Seconds for the whole run; then it ends with CANCELLED_TIMEOUT."""
    tool_choice: ToolChoice
    """In the place of the agent's choice."""
    tools: Sequence[str]
    """The names of the tools that this run may use; without it, all of the agent's."""
    features: Sequence[Feature]
    """More features, for this run, after the agent's own."""
    tool_state: dict[str, Any] | None
    """What stateful tools begin with, such as an earlier result's `tool_state`; states of tools that the
    agent does not have are kept as they are. Without it, what a `snapshot` has."""
    metadata: dict[str, Any]
    """Domain context, handed to every tool call. Must be JSON."""
    correlation: Correlation
    """Ids from outside that this run goes on with."""
    journal: Journal
    """Where the run is recorded; without it, in memory."""
    loop_id: str
    """The loop's id. If the journal holds it already, the run goes on where it stopped."""
    parent: RunContext[Any]
    """The run that this one is begun from: the context of the tool (or other function) that begins it."""
    runtime: Driver
    """Who drives the loop, such as a LocalRuntime or a NatsRuntime; without it, the caller's task does."""
    clock: Clock
    """Where time comes from."""


def check_options(options: Mapping[str, Any]) -> None:
    """Check that a run was given no option that there is none of, and no journal that is none.

    Raises:
        UserError: naming it, and the one that was perhaps meant.
    """
    unknown = [name for name in options if name not in RunOptions.__optional_keys__]
    if unknown:
        from difflib import get_close_matches

        near = get_close_matches(unknown[0], RunOptions.__optional_keys__, 1)
        meant = f": did you mean {near[0]!r}?" if near else ""
        known = ", ".join(sorted(RunOptions.__optional_keys__))
        raise UserError(f"a run has no option {unknown[0]!r}{meant or f'; it has {known}'}")
    journal = options.get("journal")
    if journal is not None and not isinstance(journal, Journal):
        raise UserError(f"journal= takes a journal, such as SQLiteJournal('runs.db'), not {journal!r}")
    runtime = options.get("runtime")
    if runtime is not None and not isinstance(runtime, Driver):
        raise UserError(f"runtime= takes a runtime, such as LocalRuntime(journal), not {runtime!r}")
    messages = options.get("messages")
    if messages is not None and (isinstance(messages, str) or not isinstance(messages, Sequence)):
        raise UserError(f"messages= takes a list of messages, such as a result's, not {messages!r:.200}")
    clock = options.get("clock")
    if clock is not None and not callable(getattr(clock, "now", None)):
        raise UserError(f"clock= takes a clock, which has now() and call_at(), not {clock!r}")
    for name, kind in _KINDS.items():
        value = options.get(name)
        if value is not None and not isinstance(value, kind):
            raise UserError(f"{name}= takes {kind.__name__}(...), not {value!r}")


_KINDS: dict[str, type[Any]] = {
    "limits": Limits,
    "usage_limits": UsageLimits,
    "settings": ModelSettings,
    "snapshot": RunSnapshot,
}
"""The options that take an object of one kind."""
