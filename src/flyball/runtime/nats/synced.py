"""Whether servers have on disk what they acknowledge, so that a power cut loses none of it.

By default they have it there two minutes later. A client is not told which: only their monitoring is.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from flyball.core.errors import UserError
from flyball.runtime.nats.connection import NatsOptions

_log = logging.getLogger("flyball.nats")
_PATIENCE = 5.0
"""Seconds in which a server tells how it is set."""


class _Config(Struct):
    sync_always: bool = False


class _JetStream(Struct):
    config: _Config | None = None


class _Told(Struct):
    jetstream: _JetStream


async def check_synced(options: NatsOptions) -> None:
    """Do nothing where all servers have on disk what they acknowledge, or somebody vouches for it.

    Where it cannot be seen, that is logged as a warning.

    Raises:
        UserError: one says that it has not.
    """
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
    asked = [asyncio.to_thread(_is_synced, address, tls) for address in options.monitoring]
    for address, synced in zip(options.monitoring, await asyncio.gather(*asked), strict=True):
        if isinstance(synced, str):
            _log.warning("whether %s has on disk what it acknowledges cannot be seen: %s", address, synced)
        elif not synced:
            raise UserError(
                f"the NATS server of {address} acknowledges what is not on its disk yet, and a power cut "
                "would lose it: put `sync_interval: always` into its `jetstream` block, or say --synced to "
                "do without"
            )


def _is_synced(address: str, tls: ssl.SSLContext | None) -> bool | str:
    """Whether a server syncs before it acknowledges; or why it cannot be told."""
    to = urlsplit(address)
    host = to.hostname or ""
    line = (
        HTTPSConnection(host, to.port, timeout=_PATIENCE, context=tls)
        if to.scheme == "https"
        else HTTPConnection(host, to.port, timeout=_PATIENCE)
    )
    try:
        line.request("GET", f"{to.path.rstrip('/')}/varz")
        answer = line.getresponse()
        if answer.status != 200:
            return f"its monitoring answers with {answer.status}"
        config = msgspec.json.decode(answer.read(), type=_Told).jetstream.config
    except (OSError, HTTPException) as error:
        return str(error) or type(error).__name__
    except msgspec.DecodeError as error:
        return f"what answers is no monitoring of NATS: {error}"
    finally:
        line.close()
    # One that keeps no streams acknowledges nothing.
    return config is None or config.sync_always
