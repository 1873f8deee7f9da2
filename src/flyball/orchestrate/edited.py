"""A run with its editor: the architect's result, and in it what came of the editor's loop.

The architect's outcome stands, whatever becomes of the editor: that one's failure is in its own journal, and
in `result.editor.error`. It is not raised, for the architect's answer would be lost with it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from flyball.core.clock import Clock
from flyball.core.errors import Deferred, FlyballError
from flyball.core.events import Outcome, Started
from flyball.orchestrate.bindings import Bindings, nobody_can_approve
from flyball.orchestrate.calls import waits_for_results
from flyball.orchestrate.driver import Drive
from flyball.orchestrate.editing import editor_bindings, editor_loop
from flyball.orchestrate.elsewhere import Driver
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.machine import fold
from flyball.orchestrate.result import RunResult
from flyball.orchestrate.runs import result_of
from flyball.orchestrate.state import State
from flyball.orchestrate.tracing import trace_recorded

if TYPE_CHECKING:
    from flyball.observe.trace import RunTrace


def has_edited(state: State) -> bool:
    """Whether a loop is one that has handed on to an editor."""
    return bool(state.spec.editor) and state.outcome is Outcome.SUCCESS


async def edited(drive: Drive) -> RunResult[Any]:
    """The result of an architect that is over, once its editor has been driven to its end.

    Raises:
        FlyballError: the architect failed or was cancelled; or the editor's loop cannot be gone on with.
    """
    result = result_of(drive)
    return replace(result, editor=await _driven(await drive.begin_editor()))


async def _driven(editor: Drive) -> RunResult[Any]:
    if editor.bindings.waits_for_people and not editor.shared:
        raise nobody_can_approve(editor.bindings)  # a handle on the architect's run does not reach it
    with suppress(Deferred):  # the result says that it waits
        await editor.run()
    if has_edited(editor.state):
        return await edited(editor)
    return _ending(editor.state, editor.bindings, editor.journal, editor.trace)


async def edited_elsewhere(
    driver: Driver, bindings: Bindings, journal: Journal, state: State, clock: Clock
) -> RunResult[Any] | None:
    """What came of the editor of an architect that another driver has carried out, by the same driver."""
    loop_id = editor_loop(state.loop_id)
    await journal.wait(loop_id, 0)  # it is begun by whoever ended the architect's loop
    started = (await journal.read(loop_id))[0]
    assert isinstance(started, Started)
    editor = editor_bindings(bindings)
    _, reached = await driver.run(editor, journal, started, clock)
    result = _ending(reached, editor, journal, await trace_recorded(journal, loop_id, editor.stages))
    if not has_edited(reached):
        return result
    return replace(result, editor=await edited_elsewhere(driver, editor, journal, reached, clock))


async def editor_followed(bindings: Bindings, journal: Journal, state: State) -> RunResult[Any]:
    """What came of the editor of an architect that is driven elsewhere, once it is over."""
    loop_id, editor = editor_loop(state.loop_id), editor_bindings(bindings)
    reached = await _over(journal, loop_id)
    result = _ending(reached, editor, journal, await trace_recorded(journal, loop_id, editor.stages))
    if not has_edited(reached):
        return result
    return replace(result, editor=await editor_followed(editor, journal, reached))


async def replayed_editor(agent: Any, loop_id: str, journal: Journal) -> RunResult[Any] | None:
    """What is recorded of an architect's editor; None if it is not over."""
    events = await journal.read(editor_loop(loop_id))
    if not events or (state := fold(events)).at != "done":
        return None
    try:
        return await agent.replay(state.loop_id, journal)
    except FlyballError as error:
        return error.partial


async def _over(journal: Journal, loop_id: str) -> State:
    while True:
        events = await journal.read(loop_id)
        state = fold(events, f"loop {loop_id}") if events else None
        if state is not None and (state.at == "done" or waits_for_results(state)):
            return state
        await journal.wait(loop_id, len(events))


def _ending(
    state: State, bindings: Bindings, journal: Journal, trace: RunTrace | None = None
) -> RunResult[Any]:
    """How a loop ended, as a result: also one that failed, or is not over."""
    well = state.error is None and state.outcome is Outcome.SUCCESS
    output = bindings.output.of(state) if well else None
    return RunResult(output, state, journal, None, bindings.tracker, trace)
