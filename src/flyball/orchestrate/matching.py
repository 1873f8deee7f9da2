"""Whether what is here is what a recorded loop counts on: the same question, and the same code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from flyball.core.errors import LoopMismatch, UserError
from flyball.core.events import Event, Forked, Started
from flyball.core.spec import LoopSpec
from flyball.orchestrate.bindings import Bindings


def check_same(events: Sequence[Event], wanted: Started) -> None:
    """Check that a recorded loop is the one that is wanted.

    Raises:
        LoopMismatch: it is a flow, or has another prompt, history, spec, metadata or tool state.
    """
    first = events[0]
    if not isinstance(first, Started):
        raise LoopMismatch(
            f"loop {wanted.loop_id!r} is a flow, and no agent's: choose another loop_id, or go on with the "
            "flow by its own run(..., loop_id=...)",
            loop_id=wanted.loop_id,
            differs=["kind"],
        )
    begun = begun_as(events)
    recorded = {
        "prompt": begun.prompt,
        "history": first.history,
        "spec": begun.spec,
        "metadata": begun.metadata,
        "carried": first.carried,
        "tool_state": first.tool_state,
    }
    differs = [name for name, value in recorded.items() if value != getattr(wanted, name)]
    if differs:
        raise LoopMismatch(
            f"loop {wanted.loop_id!r} exists with another {' and '.join(differs)}: "
            "choose another loop_id, or go on with the recorded one by resume()",
            loop_id=wanted.loop_id,
            differs=differs,
        )


def begun_as(events: Sequence[Event]) -> Started:
    """How an agent's loop began, with the prompt, spec and metadata that it has now: a fork has others."""
    first = events[0]
    assert isinstance(first, Started), "an agent's loop begins so"
    for event in events:
        if isinstance(event, Forked):
            first = replace(
                first,
                prompt=event.prompt or first.prompt,
                spec=event.spec,
                loop_id=event.loop_id,
                metadata=first.metadata if event.metadata is None else event.metadata,
            )
    return first


def check_bound(spec: LoopSpec, bindings: Bindings) -> None:
    """Check that what a recorded spec counts on is bound here; a missing tool is told to the model instead.

    Raises:
        UserError: naming what is missing.
    """
    missing = [repr(name) for name in Counter(spec.checks) - Counter(bindings.spec.checks)]
    wanted = {
        "prompt functions": (spec.admits and not missing, bindings.spec.admits),
        "output validators": (spec.output.validated, bindings.ruled),
        "deliveries": (spec.delivers, bindings.spec.delivers),
        "tool filters": (spec.filters, bindings.filters),
        "an approval callback": (spec.judges, bindings.approval),
        "an editor": (spec.editor, bindings.editor),
    }
    missing += [what for what, (needed, bound) in wanted.items() if needed and not bound]
    if missing:
        raise UserError(
            f"the loop was begun by an agent with {' and '.join(missing)}; this one has none: "
            "resume it with an agent that does"
        )
