"""`flyball signal`: say something to a run, wherever it is driven."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from flyball.adapters.cli.cluster import CLUSTER, Cluster
from flyball.adapters.cli.naming import short
from flyball.adapters.cli.person import person
from flyball.adapters.cli.running import run
from flyball.adapters.cli.screen import err, out, write_json
from flyball.adapters.cli.shared import SHARED, Shared
from flyball.core.signals import Signal, SignalType


def signal(
    run_id: Annotated[str, Parameter(name="RUN")],
    kind: Annotated[str, Parameter(name="SIGNAL")],
    text: Annotated[str, Parameter(name="TEXT")] = "",
    /,
    *,
    call: str | None = None,
    by: str | None = None,
    cluster: Cluster = CLUSTER,
    shared: Shared = SHARED,
) -> int:
    """Say something to a run; it is recorded when the command ends. Exit 8 where it does not fit now.

    The run may be one on NATS, or one that another process drives: it is found where it is.

    Args:
        run_id: The run: its id; of a run in this user's journal also the beginning of it, or last.
        kind: cancel, pause, resume, approve, reject, feedback, retry or detach.
        text: The reason, or the feedback.
        call: The tool call that is meant, where several wait for approval, or run.
        by: Who says it; the user of this machine unless it is said.
        cluster: The NATS server.
        shared: Options of all commands.
    """
    said = Signal(kind, by=by or person(), text=text, call_id=call)  # pyright: ignore[reportArgumentType]
    return run(_signal(run_id, said, cluster, shared))


async def _signal(name: str, said: Signal, cluster: Cluster, shared: Shared) -> int:
    from flyball.adapters.cli.finding import found

    async with found(name, cluster, shared) as (runtime, loop_id, here):
        stage = await runtime.signal(loop_id, said)
    if shared.json:
        write_json({"loop": loop_id, "signal": str(said.type), "stage": str(stage)})
        return 0
    out().print(f"{said.type}: run {short(loop_id)} is {stage}")
    if here and said.type is SignalType.RETRY:
        err().print(f"to go on: flyball resume {short(loop_id)}")
    return 0
