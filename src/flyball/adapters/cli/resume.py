"""`flyball resume`: go on with a run where it stopped."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from flyball.adapters.cli.driven import DRIVEN, Driven
from flyball.adapters.cli.person import person
from flyball.adapters.cli.running import run
from flyball.adapters.cli.shared import SHARED, Shared
from flyball.core.errors import SignalRefused, UserError
from flyball.core.signals import Signal, SignalType


def resume(
    run_id: Annotated[str, Parameter(name="RUN")] = "last",
    /,
    *,
    approve: bool = False,
    reject: str | None = None,
    take_over: bool = False,
    driven: Driven = DRIVEN,
    shared: Shared = SHARED,
) -> int:
    """Go on with a run that was interrupted; try one again that failed or ran out of time.

    It goes on by what was recorded. A run that has its answer gives it again.

    Args:
        run_id: The run: its id, the beginning of it, or last.
        approve: Let the tool calls run that wait for approval, or the answer count.
        reject: Refuse what waits for approval; the model reads the reason.
        take_over: Go on also with a run that another process drives; that one stops then.
        driven: Options of commands that drive a run.
        shared: Options of all commands.
    """
    if approve and reject is not None:
        raise UserError("--approve and --reject cannot both be: give one of them")
    verdict = None
    if approve or reject is not None:
        kind = SignalType.APPROVE if approve else SignalType.REJECT
        verdict = Signal(kind, by=person(), text=reject or "")
    return run(_resume(run_id, verdict, take_over, driven, shared))


async def _resume(name: str, verdict: Signal | None, take_over: bool, driven: Driven, shared: Shared) -> int:
    from flyball.adapters.cli.naming import find_run
    from flyball.adapters.cli.origin import origin_of
    from flyball.adapters.cli.replay import shown_again
    from flyball.adapters.cli.serving import go_on, judge_of, serving
    from flyball.core.events import Outcome
    from flyball.orchestrate.claims import is_claimed
    from flyball.orchestrate.recorded import load_any, send_signal
    from flyball.orchestrate.state import State

    async with shared.recorded() as journal:
        loop_id = await find_run(journal, name)
        events, state = await load_any(journal, loop_id)
        if state.paused or (isinstance(state, State) and state.pausing):
            await send_signal(journal, loop_id, Signal(SignalType.RESUME, by=person()))
        if verdict is not None:
            try:
                await send_signal(journal, loop_id, verdict)
            except SignalRefused:
                raise UserError(f"nothing of run {name!r} waits for approval") from None
        if state.at == "done" and state.outcome is Outcome.SUCCESS:
            return await shown_again(journal, loop_id, as_json=shared.json, quiet=driven.quiet)
        if is_claimed(journal, loop_id) and not take_over:
            answered = "" if verdict is None else "your answer was recorded, and "
            raise UserError(
                f"{answered}another process drives run {name!r}: look at it with `flyball follow {name}`, or "
                "go on with it here with --take-over",
                loop_id=loop_id,
            )
        origin = origin_of(events, state).changed(driven)
        judge = await judge_of(journal, state, yes=driven.yes)
    journal = shared.open()
    async with serving(journal, origin, origin.options(), judge=judge) as system:
        return await go_on(system, journal, loop_id, as_json=shared.json, quiet=driven.quiet, yes=driven.yes)
