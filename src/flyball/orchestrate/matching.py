"""Whether what is here is what a recorded loop counts on: the same question, and the same code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from flyball.core.errors import LoopMismatch, UserError
from flyball.core.events import Event, Forked, Started
from flyball.core.spec import LoopSpec
from flyball.orchestrate.bindings import Bindings

_COMPARED = ("prompt", "history", "spec", "metadata", "carried", "tool_state")
"""What makes a loop the one that is wanted."""


def check_same(events: Sequence[Event], wanted: Started) -> None:
    """Check that a recorded loop is the one that is wanted.

    Raises:
        LoopMismatch: it is a flow, or has another prompt, history, spec, metadata or tool state.
    """
    recorded = as_begun(events, wanted.loop_id)
    differs = [name for name in _COMPARED if getattr(recorded, name) != getattr(wanted, name)]
    if differs:
        raise LoopMismatch(
            f"loop {wanted.loop_id!r} exists with another {' and '.join(differs)}: "
            "choose another loop_id, or go on with the recorded one by resume()",
            loop_id=wanted.loop_id,
            differs=differs,
        )


def as_begun(events: Sequence[Event], loop_id: str) -> Started:
    """What a recorded loop would have been begun with; for a fork, had it been begun by itself.

    Raises:
        LoopMismatch: it is a flow.
    """
    first = events[0]
    if not isinstance(first, Started):
        raise LoopMismatch(
            f"loop {loop_id!r} is a flow, and no agent's: choose another loop_id, or go on with the "
            "flow by its own run(..., loop_id=...)",
            loop_id=loop_id,
            differs=["kind"],
        )
    for event in events:
        if isinstance(event, Forked):
            first = replace(first, loop_id=loop_id, prompt=event.prompt or first.prompt, spec=event.spec)
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
