"""What may be chosen for one run of a flow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from flyball.core.clock import Clock
from flyball.core.context import RunContext
from flyball.core.correlation import Correlation
from flyball.core.feature import Feature
from flyball.orchestrate.flow.doing import Hear
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.runtime import Runtime


class FlowOptions(TypedDict, total=False):
    """Options of a run of a flow. All are optional, and mean what those of `Agent.run` mean."""

    deps: Any
    """What the functions and the agents of the flow get as `ctx.deps`."""
    journal: Journal
    """Where the flow and the loops under it are recorded; without it, in memory."""
    loop_id: str
    """The flow's id. If the journal holds it already, the flow goes on where it stood."""
    runtime: Runtime
    """Who drives the agents' loops. The flow itself is driven by the caller's task, in that journal."""
    timeout: float
    """Seconds for the whole flow; then it ends with CANCELLED_TIMEOUT, and so does what runs under it."""
    metadata: dict[str, Any]
    """Domain context, handed to every loop under the flow. Must be JSON."""
    correlation: Correlation
    """Ids from outside that this flow goes on with."""
    parent: RunContext[Any]
    """The run that this flow is begun from: the context of the tool (or other function) that begins it."""
    hear: Hear
    """Is told the pieces of the agents' answers as they come, with the ids of their loops. What it raises
    fails the step."""
    clock: Clock
    """Where time comes from."""
    features: Sequence[Feature]
    """Who watches the flow: `Observer`, `EventBus`, any `Watcher`. They hear of the flow and its steps; of
    what its agents do hear the features of those. And `ActsAs`: who hands on to its agents; without it, that
    is the run which this flow is begun from."""
