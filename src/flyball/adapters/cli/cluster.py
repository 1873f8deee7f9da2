"""The NATS server that a command speaks to: one that is named, or the one that `flyball up` runs here."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from cyclopts import Parameter

from flyball.core.errors import UserError
from flyball.runtime.nats.connection import NatsOptions
from flyball.runtime.nats.server.running import CREDS, MONITORING, NATS, addresses, running_here


@Parameter(name="*")
@dataclass(frozen=True)
class Cluster:
    """Options of the commands that speak to NATS."""

    nats: str | None = None
    """Addresses of servers, with commas; without it $FLYBALL_NATS, or what `flyball up` runs here."""
    creds: Path | None = None
    """A credentials file; without it $FLYBALL_NATS_CREDS."""
    nkey: Path | None = None
    """A file with an nkey's seed."""
    tls_ca: Path | None = None
    """A file with the certificates that servers are trusted by."""
    tls_cert: Path | None = None
    """A file with the certificate to show."""
    tls_key: Path | None = None
    """A file with that certificate's key."""
    replicas: int | None = None
    """Copies of everything, each on a server of its own; for a cluster that has no loops yet. Without it
    $FLYBALL_NATS_REPLICAS, or one."""
    monitoring: str | None = None
    """Addresses of the servers' monitoring, with commas, such as http://127.0.0.1:8222: workers do not start
    where a server acknowledges what is not on its disk. Without it $FLYBALL_NATS_MONITORING."""
    synced: bool = False
    """Take it that what the servers acknowledge is on disk: they have `sync_interval: always`."""

    @property
    def named(self) -> str | None:
        """The servers that are named, by option or by variable."""
        return self.nats or os.environ.get(NATS)

    def running(self) -> NatsOptions | None:
        """The server that `flyball up` runs here, as far as that is known."""
        return running_here()

    def options(self) -> NatsOptions:
        """Where the server is, and how to come in.

        Raises:
            UserError: none is named, and none runs here.
        """
        named = self.named
        if named is None:
            if (running := self.running()) is not None:
                return running
            raise UserError(
                "no NATS server is named, and none runs here: start one with `flyball up`, or give --nats or "
                f"${NATS}"
            )
        running = self.running()
        if running is not None and set(addresses(named)) == set(running.servers):
            return running  # who started it has the key to it
        return NatsOptions(
            addresses(named),
            credentials=_text(self.creds) or os.environ.get(CREDS) or None,
            nkey=_text(self.nkey),
            tls_ca=_text(self.tls_ca),
            tls_cert=_text(self.tls_cert),
            tls_key=_text(self.tls_key),
            replicas=self._copies(),
            monitoring=addresses(self.monitoring or os.environ.get(MONITORING, "")),
            synced=self.synced,
        )

    def _copies(self) -> int:
        given = self.replicas if self.replicas is not None else os.environ.get("FLYBALL_NATS_REPLICAS", "1")
        if not str(given).isdecimal() or not 1 <= int(given) <= 5:
            raise UserError(f"{given!r} replicas: a cluster keeps 1 to 5 copies")
        return int(given)


CLUSTER = Cluster()


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path.expanduser())
