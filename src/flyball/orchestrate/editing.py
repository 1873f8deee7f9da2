"""Architect and editor: the loop that goes on from another's answer, and what it is told.

An architect's loop that ends well begins its editor's, before its own end is written. The editor is told by
a task like any other, so that it may be carried out anywhere; in this process it is begun from that task too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from msgspec.structs import replace

from flyball.core.clock import Clock
from flyball.core.effects import End
from flyball.core.errors import JournalConflict, UserError
from flyball.core.events import ChildEnded, ChildStarted, Started
from flyball.core.spec import EDITOR, LoopSpec
from flyball.orchestrate.bindings import Bindings
from flyball.orchestrate.children import (
    Cancel,
    Parent,
    RecordedParent,
    begin,
    cancel_by_journal,
    cancel_children,
    tell_parent,
)
from flyball.orchestrate.correlation import Correlation, loop_correlation
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.lineage import limited, passed_on
from flyball.orchestrate.state import State

if TYPE_CHECKING:
    from flyball.core.forms.semstreams import TaskMessage

PROMPT = """\
{task}

This is the architect's plan for it:

{plan}

Carry out the plan."""
"""What an editor is told: the task as the architect had it, and the architect's answer."""

Spawn: TypeAlias = Callable[[Started], Awaitable[None]]
"""Has a loop begun elsewhere. Being asked twice does no harm."""
Above: TypeAlias = Callable[[str, ChildEnded], Awaitable[None]]
"""Has whoever keeps a loop see that one under it is over. Being asked twice does no harm."""


def editor_loop(loop_id: str) -> str:
    """The id of the loop of an architect's editor."""
    return f"{loop_id}-editor"


def editor_bindings(bindings: Bindings) -> Bindings:
    """The editor's code; it has the architect's dependencies, unless it was bound with its own.

    Raises:
        UserError: there is none here.
    """
    if bindings.editor is None:
        raise UserError(f"the agent {bindings.spec.agent!r} has no editor here: give it one by editor=")
    editor = bindings.editor()
    return editor.with_deps(bindings.deps) if editor.deps is None and bindings.deps is not None else editor


def editor_task(state: State, spec: LoopSpec) -> TaskMessage:
    """The task of the editor: `state` is that of an architect that has answered, `spec` the editor's."""
    from flyball.core.forms.semstreams import TaskMessage
    from flyball.orchestrate.projections.loop_entity import result_of
    from flyball.orchestrate.task_facts import task_id_of

    asked = state.prompt.text if state.prompt is not None else ""
    deepest = limited(spec, state.spec.limits.max_depth).limits.max_depth
    tightened = deepest != spec.limits.max_depth
    return TaskMessage(
        loop_id=editor_loop(state.loop_id),
        task_id=task_id_of(state),
        role=spec.role or EDITOR,
        model=spec.model,
        prompt=PROMPT.format(task=asked, plan=result_of(state)),
        parent_loop_id=state.loop_id,
        depth=state.depth + 1,
        max_depth=deepest or 0 if tightened else 0,
        metadata=passed_on(state.metadata),
    )


def editor_started(state: State, spec: LoopSpec, at: float) -> Started:
    """What the editor's loop begins with."""
    from flyball.orchestrate.task_loops import task_started

    task, ids = editor_task(state, spec), loop_correlation(state)
    correlation = Correlation(
        ids.request_id,
        ids.session_id,
        ids.trace_id,
        ids.span_id,
        task_id=task.task_id,
        step_name=ids.step_name,
    )
    deepest = state.spec.limits.max_depth  # once more: a task has no word for a limit of 0
    return replace(task_started(task, limited(spec, deepest), at), correlation=correlation)


async def editor_beginning(state: State, bindings: Bindings, at: float, journal: Journal) -> Started:
    """`editor_started`, with as whom the editor acts, and what the architect hands on to it.

    `bindings` are the architect's.

    Raises:
        UserError: there is no editor here.
        FlyballError: what is handed on could not be issued.
    """
    editor = editor_bindings(bindings)
    started = editor_started(state, editor.spec, at)
    if editor.acting is None:
        return started
    from flyball.orchestrate.delegating import handed_on

    started = replace(started, identity=editor.identity)
    return await handed_on(started, editor.acting, bindings.acting, state.identity, journal)


async def take_leave(
    effect: End,
    state: State,
    journal: Journal,
    bindings: Bindings,
    clock: Clock,
    *,
    parent: Parent | None = None,
    cancel: Cancel | None = None,
    spawn: Spawn | None = None,
    above: Above | None = None,
) -> None:
    """Do what the end of a loop owes others, before it is written.

    Its children are cancelled, its editor is begun, and the loop above it is told that it is over.

    Args:
        effect: what is owed.
        state: that of the loop. What led to it must be durable.
        journal: where it is recorded.
        bindings: its agent's code.
        clock: where time comes from.
        parent: the loop itself, where its journal need not be read.
        cancel: how a child is cancelled; without it, in the journal.
        spawn: how an editor is begun; without it, its loop is begun in the journal, for whoever drives there.
        above: what is done once the loop above has recorded that this one is over.

    Raises:
        UserError: there is no editor here.
    """
    if effect.cancels:
        await cancel_children(journal, state, cancel or cancel_by_journal(journal, clock))
    if effect.editor:
        await _begin_editor(effect, state, journal, bindings, clock, parent, spawn)
    if state.parent_loop_id:
        told = await tell_parent(journal, state, clock.now())
        if above is not None:
            await above(state.parent_loop_id, told)


async def _begin_editor(  # noqa: PLR0917 - as `take_leave` has them
    effect: End,
    state: State,
    journal: Journal,
    bindings: Bindings,
    clock: Clock,
    parent: Parent | None,
    spawn: Spawn | None,
) -> None:
    started = await editor_beginning(state, bindings, clock.now(), journal)
    if spawn is not None:
        child = ChildStarted(clock.now(), editor_loop(state.loop_id), effect.editor)
        await (parent or RecordedParent(journal, state.loop_id)).hear(child)
        await spawn(started)
        return
    try:
        await begin(journal, started, clock, parent)
    except JournalConflict:
        return  # it was begun when this was done before
