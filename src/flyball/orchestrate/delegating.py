"""What a loop hands on to one that it begins: decided, and issued, before that one's beginning is written.

What was handed on stands in the child's `Started`, so nothing is issued for a loop that is there: not when
the call that begins it is run again, nor when either is resumed or replayed. Should a process die after
issuing and before writing, the same is asked for again by the same name, and given again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from flyball.core.events import FlowStarted, Started
from flyball.orchestrate.bindings import Bindings
from flyball.orchestrate.journal import Journal

if TYPE_CHECKING:
    from flyball.identity.acting import ActsAs

BeginningT = TypeVar("BeginningT", Started, FlowStarted)


async def delegated(started: Started, bindings: Bindings, options: Mapping[str, Any]) -> Started:
    """The beginning of a run, with what the run that begins it hands on, if it does so.

    Raises:
        FlyballError: it may not be handed on, or could not be issued.
    """
    parent = options.get("parent")
    if parent is None or bindings.acting is None:
        return started
    journal = options.get("journal")
    if journal is None:
        journal = getattr(options.get("runtime"), "journal", None)
    return await handed_on(started, bindings.acting, parent.acting, parent.facts.identity, journal)


async def handed_on(
    started: BeginningT,
    acting: ActsAs,
    above: ActsAs | None,
    held: dict[str, Any] | None,
    journal: Journal | None,
) -> BeginningT:
    """The beginning of a loop that acts as `acting`, under one that acts as `above` and holds `held`.

    Raises:
        FlyballError: it may not be handed on, or could not be issued.
    """
    if not acting.takes or above is None or held is None:
        return started
    if journal is not None and (events := await journal.read(started.loop_id)):
        recorded = events[0]
        known = isinstance(recorded, type(started))
        return replace(started, identity=recorded.identity) if known else started
    from flyball.identity.agent_identity import AgentIdentity

    holder = AgentIdentity.read(held)
    identity = await above.hand_on(holder, acting, occasion=started.loop_id, now=started.at)
    return started if identity is None else replace(started, identity=identity.write())
