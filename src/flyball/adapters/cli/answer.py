"""`flyball answer`: give a run the result of a tool call that waits for it from outside."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from flyball.adapters.cli.cluster import CLUSTER, Cluster
from flyball.adapters.cli.naming import short
from flyball.adapters.cli.running import run
from flyball.adapters.cli.screen import err, out, write_json
from flyball.adapters.cli.shared import SHARED, Shared
from flyball.core.deferred import DeferredToolResult
from flyball.core.errors import UserError


def answer(
    run_id: Annotated[str, Parameter(name="RUN")],
    call: Annotated[str, Parameter(name="CALL")],
    text: Annotated[str | None, Parameter(name="TEXT")] = None,
    /,
    *,
    data: str | None = None,
    error: bool = False,
    cluster: Cluster = CLUSTER,
    shared: Shared = SHARED,
) -> int:
    """Give a run the result of a deferred tool call; it is recorded when the command ends.

    Exit 8 where no such call waits. The run may be one on NATS, or one that another process drives.

    Args:
        run_id: The run: its id; of a run in this user's journal also the beginning of it, or last.
        call: The id of the call, as `flyball why RUN` shows it.
        text: The result.
        data: The result as JSON, in the place of text.
        error: The text says what went wrong; the model reads it, and may call again.
        cluster: The NATS server.
        shared: Options of all commands.
    """
    if (text is None) == (data is None):
        raise UserError("give the result as TEXT, or as --data JSON")
    result = DeferredToolResult("", call, text if data is None else _parsed(data), error)
    return run(_answer(run_id, result, cluster, shared))


def _parsed(data: str) -> Any:
    from msgspec import DecodeError, json

    try:
        return json.decode(data)
    except (DecodeError, UnicodeError, RecursionError) as wrong:
        raise UserError(f"--data takes JSON: {wrong}") from wrong


async def _answer(name: str, result: DeferredToolResult, cluster: Cluster, shared: Shared) -> int:
    from flyball.adapters.cli.finding import found
    from flyball.orchestrate.recorded import load
    from flyball.orchestrate.waiting import deferred_requests

    async with found(name, cluster, shared) as (runtime, loop_id, here):
        stage = await runtime.answer(loop_id, [result])
        _, state = await load(runtime.journal, loop_id)
    waiting = [one.tool_call_id for one in deferred_requests(state)]
    if shared.json:
        told = {"loop": loop_id, "call": result.tool_call_id, "stage": str(stage), "waiting": waiting}
        write_json(told)
        return 0
    out().print(f"{result.tool_call_id}: run {short(loop_id)} is {stage}")
    if waiting:
        err().print(f"it still waits for: {', '.join(waiting)}")
    elif here:
        err().print(f"to go on: flyball resume {short(loop_id)}")
    return 0
