"""Lineage: what a loop that is begun from within a run has from that run.

Its parent and its depth, the trace that it goes on with, the metadata, the tightest limit on depth, the
deadline, and an id that is the same each time: where a tool is run again after a crash, it finds the child
that it had begun. So nothing that the id is made of may depend on when it is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import msgspec
from msgspec.structs import replace

from flyball.core.context import RunContext
from flyball.core.correlation import Correlation
from flyball.core.errors import UserError
from flyball.core.events import Started
from flyball.core.spec import LoopSpec
from flyball.core.task import AgentRole
from flyball.orchestrate.correlation import span_id_of, trace_id_of

_OF_ONE_TASK = ("context_request_id",)
"""What a task says of itself and not of what is begun for it."""
_CHOSEN = frozenset({"journal", "runtime"})
"""The options that say where a run goes."""


def at_home(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """A child's options, with its parent's journal or driver where none was chosen.

    Raises:
        UserError: `parent` is no RunContext.
    """
    parent = options["parent"]
    if not isinstance(parent, RunContext):
        raise UserError(
            f"parent= takes the RunContext of the run that this one is begun from, not {parent!r}"
        )
    home: Any = parent.home  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if home is None or not _CHOSEN.isdisjoint(options):
        return options
    return {**home.child_options(), **options}


def under(parent: RunContext[Any], started: Started, options: Mapping[str, Any]) -> Started:
    """The beginning of a loop, as a child of the run that a context is of."""
    facts = parent.facts
    spec = limited(started.spec, facts.max_depth)
    metadata = started.metadata if "metadata" in options else passed_on(facts.metadata)
    correlation = options.get("correlation") or _correlation(parent)
    child = replace(
        started,
        spec=spec,
        correlation=correlation,
        metadata=metadata,
        parent_loop_id=facts.loop_id,
        depth=facts.depth + 1,
        deadline=facts.deadline,
    )
    if options.get("loop_id") is not None:
        return child
    carried = () if child.carried is None else (child.carried,)
    said = msgspec.json.encode((spec, child.prompt, child.history, metadata, *carried), order="sorted")
    content = sha256(said).hexdigest()
    where = facts.idempotency_key or f"{facts.loop_id}/{facts.attempt}/{facts.turn}"
    name = sha256(f"{where}/{content}/{parent.number(content)}".encode()).hexdigest()
    return replace(child, loop_id=f"{facts.loop_id}-{name[:12]}")


def limited(spec: LoopSpec, max_depth: int | None) -> LoopSpec:
    """A spec under a limit on depth from above: the tighter one holds."""
    own = spec.limits.max_depth
    if max_depth is None or (own is not None and own <= max_depth):
        return spec
    return replace(spec, limits=replace(spec.limits, max_depth=max_depth))


def passed_on(metadata: dict[str, Any] | None) -> dict[str, Any] | None:
    """The metadata that a child has from its parent: all but what is the parent's own, such as its role."""
    if not metadata:
        return metadata
    kept = {name: value for name, value in metadata.items() if name not in _OF_ONE_TASK}
    if kept.get("role") in list(AgentRole):
        del kept["role"]
    return kept or None


def _correlation(parent: RunContext[Any]) -> Correlation:
    """The same request and trace; the child's span is under that of the call that begins it."""
    facts = parent.facts
    given = facts.correlation
    return Correlation(
        given.request_id or facts.loop_id,
        given.session_id,
        given.trace_id or trace_id_of(facts.loop_id),
        span_id_of(facts.idempotency_key or facts.loop_id),
        caused_by=facts.tool_call_id or given.step_name,
        task_id=given.task_id,
        step_name=given.step_name,
        tool_call_id=facts.tool_call_id,
    )
