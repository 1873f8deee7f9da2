"""Where a run is: on a NATS server, or in this user's journal; found without anybody having to say.

A server that is named (`--nats`, `$FLYBALL_NATS`) is the place, and so is a file that is named (`--journal`).
Else it is the server that `flyball up` runs here, if that has the run, and this user's journal if not.

    found       what has a run, and can be told something about it
    recorded    the journal that has a run, for who only reads
    listed      the journal whose runs are meant, where none is named
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from flyball.adapters.cli.cluster import Cluster
from flyball.adapters.cli.naming import find_run
from flyball.adapters.cli.shared import Shared
from flyball.core.errors import JournalUnreachable, LoopNotFound, UserError

if TYPE_CHECKING:
    from flyball.orchestrate.journal import Journal
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
    options, there = _named(cluster, shared), None
    if options is None and shared.journal is None and (running := cluster.running()) is not None:
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


@asynccontextmanager
async def recorded(name: str, cluster: Cluster, shared: Shared) -> AsyncGenerator[tuple[Journal, str]]:
    """The journal that has a run, and the run's id; on a server that is named also by its beginning, or last.

    Raises:
        LoopNotFound: it is nowhere; where a server runs here, the message says how to ask that.
        UserError: both a server and a file are named, or several runs begin like that.
    """
    options = _named(cluster, shared)
    running = cluster.running() if options is None and shared.journal is None else None
    if running is not None and await _has(running, name):
        options = running
    if options is None:
        async with AsyncExitStack() as stack:
            try:
                journal = await stack.enter_async_context(shared.recorded())
                loop_id = await find_run(journal, name)
            except LoopNotFound as error:
                if running is not None:
                    raise LoopNotFound(f"{error.message}; {_hint(running)}", loop_id=name) from None
                raise
            yield journal, loop_id
        return
    from flyball.runtime.nats import NatsJournal

    async with await NatsJournal.open(options) as journal:
        yield journal, name if await journal.read(name) else await find_run(journal, name)


@asynccontextmanager
async def listed(cluster: Cluster, shared: Shared) -> AsyncGenerator[tuple[Journal | None, str]]:
    """The journal whose runs are listed, and what it is called; None where there is no file yet.

    Raises:
        UserError: both a server and a file are named.
    """
    if (options := _named(cluster, shared)) is not None:
        from flyball.runtime.nats import NatsJournal

        async with await NatsJournal.open(options) as journal:
            yield journal, ", ".join(options.servers)
    elif not shared.file.exists():
        yield None, str(shared.file)
    else:
        async with shared.recorded() as journal:
            yield journal, str(shared.file)


def others(cluster: Cluster, shared: Shared) -> str:
    """Where else runs may be: on the server that runs here, where nothing else is named; else nothing."""
    if cluster.named or shared.journal is not None or (running := cluster.running()) is None:
        return ""
    return _hint(running)


def _hint(running: NatsOptions) -> str:
    return f"a NATS server runs here: --nats {','.join(running.servers)} asks that"


def _named(cluster: Cluster, shared: Shared) -> NatsOptions | None:
    """The server that is named, if one is.

    Raises:
        UserError: a file is named, too.
    """
    if cluster.named and shared.journal is not None:
        raise UserError("--nats and --journal name two places: give one of them")
    return cluster.options() if cluster.named else None


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
