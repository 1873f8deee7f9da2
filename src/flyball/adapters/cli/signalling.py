"""`flyball signal`: say something to a loop that workers carry on."""

from __future__ import annotations

import getpass
from typing import Annotated

from cyclopts import Parameter

from flyball.adapters.cli.cluster import CLUSTER, Cluster
from flyball.adapters.cli.running import run
from flyball.adapters.cli.screen import out, write_json
from flyball.core.signals import Signal


def signal(
    loop_id: Annotated[str, Parameter(name="LOOP")],
    kind: Annotated[str, Parameter(name="SIGNAL")],
    text: Annotated[str, Parameter(name="TEXT")] = "",
    /,
    *,
    call: str | None = None,
    by: str | None = None,
    cluster: Cluster = CLUSTER,
    json: bool = False,
    debug: bool = False,
) -> int:
    """Say something to a loop; it is recorded when the command ends. Exit 8 where it does not fit now.

    Args:
        loop_id: The loop's id.
        kind: cancel, pause, resume, approve, reject, feedback or retry.
        text: The reason, or the feedback.
        call: The tool call that is meant, where several wait for approval.
        by: Who says it; the user of this machine unless it is said.
        cluster: The NATS server.
        json: Print one JSON document on stdout.
        debug: Show the traceback of an error.
    """
    del debug
    said = Signal(kind, by=by or getpass.getuser(), text=text, call_id=call)  # pyright: ignore[reportArgumentType]
    return run(_signal(loop_id, said, cluster, as_json=json))


async def _signal(loop_id: str, said: Signal, cluster: Cluster, *, as_json: bool) -> int:
    from flyball.runtime.nats import NatsRuntime

    async with await NatsRuntime.open(cluster.options()) as runtime:
        stage = await runtime.signal(loop_id, said)
    if as_json:
        write_json({"loop": loop_id, "signal": str(said.type), "stage": str(stage)})
    else:
        out().print(f"{said.type}: loop {loop_id} is {stage}")
    return 0
