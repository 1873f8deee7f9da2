"""How a flow is run: what is checked before its start, what it begins with, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from flyball.core.context import RunContext
from flyball.core.correlation import Correlation
from flyball.core.encodable import NotEncodable, to_json
from flyball.core.errors import LoopMismatch, LoopNotFound, UserError
from flyball.core.events import VERSION, FlowStarted, Started
from flyball.core.ids import new_id
from flyball.core.limits import Limits
from flyball.core.messages import user
from flyball.core.spec import LoopSpec
from flyball.orchestrate.clock import SYSTEM_CLOCK
from flyball.orchestrate.features import NO_STAGES, Stages, as_features, stages_of
from flyball.orchestrate.flow.doing import check_reachable
from flyball.orchestrate.flow.driver import FlowDrive, Place
from flyball.orchestrate.flow.options import FlowOptions
from flyball.orchestrate.flow.parts import ANYTHING, Part, first_takes, leaves
from flyball.orchestrate.flow.result import FlowResult, result_of
from flyball.orchestrate.flow.values import Values
from flyball.orchestrate.journal import Journal, MemoryJournal
from flyball.orchestrate.ledger import Ledger
from flyball.orchestrate.lineage import at_home, under
from flyball.orchestrate.recordable import recordable

_PLAIN = (str, int, float, bool, type(None), list, tuple, dict)


async def run_flow(root: Part, given: Any, options: FlowOptions) -> FlowResult[Any]:
    """Run a flow; see `Step.run`."""
    _check_options(options)
    chosen: Mapping[str, Any] = at_home(options) if "parent" in options else options
    place = _place(chosen)
    _check_leaves(root, place)
    values = _input_values(root, given)
    started = _started(root, values.encode(given, "the flow's input"), chosen, place.clock.now())
    if place.acting is not None:
        started = await _acting(started, place, chosen.get("parent"))
    home = chosen["parent"].home if "parent" in chosen else None
    known = isinstance(home, Ledger) and home.journal is place.journal
    parent = cast("Ledger[Any]", home) if known else None
    drive = await _driven_by(place).begin(root, values, place, started, parent)
    await drive.run()
    return await result_of(root, drive.state, place.journal)


async def resume_flow(
    build: Callable[[FlowStarted], Part], loop_id: str, options: FlowOptions
) -> FlowResult[Any]:
    """Go on with a recorded flow by what is recorded of it; `build` gives the steps that it stands for.

    Raises:
        LoopNotFound: the journal holds no such loop.
        LoopMismatch: it is no flow, or not one that `build` knows.
        FlyballError: see `Step.run`.
    """
    _check_options(options)
    place = _place(options)
    events = await place.journal.read(loop_id)
    if not events:
        raise LoopNotFound(f"the journal holds no loop {loop_id!r}", loop_id=loop_id)
    started = events[0]
    if not isinstance(started, FlowStarted):
        raise LoopMismatch(f"loop {loop_id!r} is an agent's, and no flow", loop_id=loop_id, differs=["kind"])
    root = build(started)
    _check_leaves(root, place)
    takes = first_takes(root)
    drive = await _driven_by(place).begin(root, Values(takes), place, started)
    await drive.run()
    return await result_of(root, drive.state, place.journal)


def _check_leaves(root: Part, place: Place) -> None:
    for leaf in leaves(root):
        _ = leaf.gives  # what it gives must be of a type that can be recorded
        if not place.reachable and (agent := leaf.asks()) is not None:
            check_reachable(agent)


def _driven_by(place: Place) -> type[FlowDrive]:
    """The kind of drive: one that nobody watches tells nobody."""
    if not place.stages.watchers:
        return FlowDrive
    from flyball.orchestrate.flow.watched import WatchedFlowDrive

    return WatchedFlowDrive


def _watched_by(options: Mapping[str, Any]) -> Stages:
    """Who watches a flow, and as whom it acts.

    Raises:
        UserError: something else is given.
    """
    if not (given := as_features(options.get("features", ()))):
        return NO_STAGES
    stages = stages_of(given)
    known = (*stages.watchers, *stages.identity)
    if others := [feature for feature in given if feature not in known]:
        raise UserError(
            f"a flow takes features that watch it, such as Observer() and EventBus(), and ActsAs(), not "
            f"{others[0]!r}: put it onto its agents"
        )
    return stages


def _check_options(options: Mapping[str, Any]) -> None:
    known = FlowOptions.__optional_keys__
    if unknown := [name for name in options if name not in known]:
        raise UserError(f"a flow has no option {unknown[0]!r}; it has {', '.join(sorted(known))}")
    timeout = options.get("timeout")
    if timeout is not None and not (isinstance(timeout, int | float) and timeout > 0):
        raise UserError(f"timeout= takes seconds, more than 0, not {timeout!r}")
    hear, journal = options.get("hear"), options.get("journal")
    if hear is not None and not callable(hear):
        raise UserError(f"hear= takes a function of a loop's id and a piece of an answer, not {hear!r}")
    if journal is not None and not isinstance(journal, Journal):
        raise UserError(f"journal= takes a journal, such as SQLiteJournal('runs.db'), not {journal!r}")


def _place(options: Mapping[str, Any]) -> Place:
    """Where the flow is recorded, and who drives what runs under it."""
    runtime, journal = options.get("runtime"), options.get("journal")
    if runtime is not None:
        own = getattr(runtime, "journal", None)
        if not isinstance(own, Journal):
            raise UserError(f"runtime= takes a runtime, such as LocalRuntime(journal), not {runtime!r}")
        if journal is not None and journal is not own:
            raise UserError("a runtime keeps its loops in its own journal: leave journal= out")
        journal = own
    clock = options.get("clock", SYSTEM_CLOCK)
    given = reachable = journal is not None
    home = options["parent"].home if "parent" in options else None
    if isinstance(home, Ledger) and home.journal is journal:
        reachable = cast("Ledger[Any]", home).reachable
    hear, deps, stages = options.get("hear"), options.get("deps"), _watched_by(options)
    acting = stages.acts_as
    if acting is None and "parent" in options:
        acting = options["parent"].acting
    return Place(
        journal or MemoryJournal(),
        runtime,
        clock,
        deps,
        given=given,
        reachable=reachable,
        hear=hear,
        stages=stages,
        acting=acting,
    )


async def _acting(started: FlowStarted, place: Place, parent: RunContext[Any] | None) -> FlowStarted:
    """A flow's beginning, with as whom it acts.

    One that has no identity of its own is the doing of the run that begins it, and acts as that does.

    Raises:
        FlyballError: what the run hands on to it could not be issued.
    """
    if (own := place.stages.acts_as) is None:
        assert parent is not None, "who else would have an identity"
        return replace(started, identity=parent.facts.identity)
    started = replace(started, identity=own.document)
    if parent is None:
        return started
    from flyball.orchestrate.delegating import handed_on

    return await handed_on(started, own, parent.acting, parent.facts.identity, place.journal)


def _input_values(root: Part, given: Any) -> Values:
    """How the flow's input is written down: as what its first steps take, or as what it is."""
    kind = first_takes(root)
    if kind is not Any:
        return Values(kind)
    return ANYTHING if type(given) in _PLAIN else Values(type(given))


def _started(root: Part, plain: Any, options: Mapping[str, Any], now: float) -> FlowStarted:
    loop_id, node = options.get("loop_id"), root.node()
    if loop_id is not None and (not loop_id or not isinstance(loop_id, str)):
        raise UserError(f"loop_id must be a text that is not empty, not {loop_id!r}")
    correlation = options.get("correlation") or Correlation()
    if type(correlation) is not Correlation:
        raise UserError(f"correlation= takes a Correlation, not {correlation!r}")
    recordable(correlation, "correlation")
    metadata = _metadata(options)
    timeout = options.get("timeout")
    if "parent" not in options:
        return FlowStarted(now, VERSION, loop_id or new_id(), node, plain, timeout, correlation, metadata)
    # What a loop under another has from it is the same for agents and flows: it is asked for as that of an
    # agent, whose prompt stands for what this is.
    said = str(msgspec.json.encode((node, plain, timeout), order="sorted"), "utf-8")
    spec = LoopSpec(agent=node.name, limits=Limits(max_depth=None))
    child = under(
        options["parent"],
        Started(now, VERSION, loop_id or "", spec, user(said), correlation=correlation, metadata=metadata),
        options,
    )
    return FlowStarted(
        now,
        VERSION,
        child.loop_id,
        node,
        plain,
        timeout,
        child.correlation,
        child.metadata,
        child.parent_loop_id,
        child.depth,
        child.spec.limits.max_depth,
        child.deadline,
    )


def _metadata(options: Mapping[str, Any]) -> dict[str, Any] | None:
    given = options.get("metadata")
    if given is None:
        return None
    try:
        plain = to_json(given, "metadata")
    except NotEncodable as error:
        raise UserError(str(error)) from error
    if type(plain) is not dict:
        raise UserError(f"metadata= takes a dict, not {plain!r}")
    return cast("dict[str, Any]", plain)
