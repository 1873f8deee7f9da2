"""Where a run is: on a NATS server, or in this user's journal; found without anybody having to say.

A server that is named (`--nats`, `$FLYBALL_NATS`) is the place, and so is a file that is named (`--journal`).
Else it is the server that `flyball up` runs here, if that has the run, and this user's journal if not.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from flyball.adapters.cli.cluster import Cluster
from flyball.adapters.cli.naming import find_run
from flyball.adapters.cli.shared import Shared
from flyball.core.errors import JournalUnreachable, LoopNotFound, UserError

if TYPE_CHECKING:
    from flyball.orchestrate.runtime import Runtime
    from flyball.runtime.nats import NatsOptions

_PROBE = 3.0
"""Seconds for a server that may be gone: `up` was killed, and could not say so."""


@asynccontextmanager
async def found(
    name: str, cluster: Cluster, shared: Shared, *, coming: bool = False
) -> AsyncGenerator[tuple[Runtime, str, bool]]:
    """What has a run, the run's id, and whether that is here: no worker carries it on.

    `coming`: on a server, one that is not there yet is found as well.

    Raises:
        LoopNotFound: it is nowhere.
        UserError: both a server and a file are named, or several runs begin like that.
    """
    if cluster.named and shared.journal is not None:
        raise UserError("--nats and --journal name two places: give one of them")
    options, there = None, None
    if cluster.named:
        options = cluster.options()
    elif shared.journal is None and (running := cluster.running()) is not None:
        there = await _has(running, name)
        if there or (there is not None and coming and not await _is_here(name, shared)):
            options = running
    if options is None:
        from flyball.orchestrate.local import LocalRuntime

        if not shared.file.exists():
            server = "no NATS server is named, and none runs here"
            if there is not None:
                server = "the NATS server that runs here does not have it"
            raise LoopNotFound(
                f"there is no run {name[:100]!r}: {shared.file} is not there; {server}", loop_id=name
            )
        async with shared.recorded() as journal:
            loop_id = await find_run(journal, name)
            async with LocalRuntime(journal) as local:
                yield local, loop_id, True
        return
    from flyball.runtime.nats import NatsRuntime

    async with await NatsRuntime.open(options) as runtime:
        if not coming and not await runtime.journal.read(name):
            raise LoopNotFound(f"there is no loop {name!r} on that server", loop_id=name)
        yield runtime, name, False


async def _has(options: NatsOptions, name: str) -> bool | None:
    """Whether a server has a loop; None if there is no server."""
    from flyball.runtime.nats import NatsJournal

    try:
        async with await NatsJournal.open(replace(options, patience=_PROBE)) as journal:
            return bool(await journal.read(name))
    except JournalUnreachable:
        return None


async def _is_here(name: str, shared: Shared) -> bool:
    """Whether a run is in this user's journal."""
    try:
        async with shared.recorded() as journal:
            await find_run(journal, name)
    except LoopNotFound:
        return False
    return True
