"""Whether servers have on disk what they acknowledge, so that a power cut loses none of it.

By default they have it there two minutes later. A client is not told which: only their monitoring is.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from flyball.core.errors import UserError
from flyball.runtime.nats.connection import Connection

T = TypeVar("T")
_log = logging.getLogger("flyball.nats")
_PATIENCE = 5.0
"""Seconds in which a server tells how it is set."""


class _Config(Struct):
    sync_always: bool = False


class _JetStream(Struct):
    config: _Config | None = None


class _Told(Struct):
    server_id: str
    server_name: str
    jetstream: _JetStream


class _Route(Struct):
    remote_id: str
    remote_name: str = ""


class _Routes(Struct):
    routes: list[_Route] | None = None


class _Server(Struct, frozen=True):
    """A server, as its monitoring tells: whether it syncs, and the names of all of its cluster, by id."""

    id: str
    synced: bool
    cluster: dict[str, str]


async def check_synced(connection: Connection) -> None:
    """Do nothing where all servers have on disk what they acknowledge, or somebody vouches for it.

    Where it cannot be seen, that is logged as a warning: no monitoring is named, it does not answer, or it is
    not that of the server in use, and of all in its cluster that are up.

    Raises:
        UserError: one says that it has not.
    """
    options = connection.options
    if options.synced:
        return
    if not options.monitoring:
        _log.warning(
            "whether the NATS servers have on disk what they acknowledge cannot be seen from here, and a "
            "power cut may lose what they have not: name their monitoring addresses (--monitoring), or vouch "
            "for `sync_interval: always` (--synced)"
        )
        return
    tls = options.tls()
    asked = [asyncio.to_thread(_seen, address, tls) for address in options.monitoring]
    used, name = connection.server
    seen, known = set[str](), {used: name}
    for address, server in zip(options.monitoring, await asyncio.gather(*asked), strict=True):
        if isinstance(server, str):
            _log.warning("whether %s has on disk what it acknowledges cannot be seen: %s", address, server)
            continue
        if not server.synced:
            raise UserError(
                f"the NATS server of {address} acknowledges what is not on its disk yet, and a power cut "
                "would lose it: put `sync_interval: always` into its `jetstream` block, or say --synced to "
                "do without"
            )
        seen.add(server.id)
        known |= server.cluster
    if unseen := sorted([name for one, name in known.items() if one not in seen]):
        _log.warning(
            "whether the NATS servers %s, which are used here, have on disk what they acknowledge cannot be "
            "seen: --monitoring names %s, and that is none of theirs",
            ", ".join(unseen),
            ", ".join(options.monitoring),
        )


def _seen(address: str, tls: ssl.SSLContext | None) -> _Server | str:
    """What a server tells of itself; or why it cannot be told."""
    to = urlsplit(address)
    host = to.hostname or ""
    line = (
        HTTPSConnection(host, to.port, timeout=_PATIENCE, context=tls)
        if to.scheme == "https"
        else HTTPConnection(host, to.port, timeout=_PATIENCE)
    )
    path = to.path.rstrip("/")
    try:
        told = _asked(line, f"{path}/varz", _Told)
        routes = _asked(line, f"{path}/routez", _Routes).routes or ()
    except (OSError, HTTPException) as error:
        return str(error) or type(error).__name__
    except msgspec.DecodeError as error:
        return f"what answers is no monitoring of NATS: {error}"
    finally:
        line.close()
    # One that keeps no streams acknowledges nothing.
    config = told.jetstream.config
    cluster = {told.server_id: told.server_name} | {one.remote_id: one.remote_name for one in routes}
    return _Server(told.server_id, config is None or config.sync_always, cluster)


def _asked(line: HTTPConnection, path: str, kind: type[T]) -> T:
    """What the monitoring answers.

    Raises:
        OSError, HTTPException: it does not.
        msgspec.DecodeError: it is no monitoring.
    """
    line.request("GET", path)
    answer = line.getresponse()
    if answer.status != 200:
        raise HTTPException(f"its monitoring answers with {answer.status}")
    return msgspec.json.decode(answer.read(), type=kind)
