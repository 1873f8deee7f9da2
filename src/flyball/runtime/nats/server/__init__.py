"""A nats-server of one's own, for one machine.

embedded   EmbeddedServer: starts, supervises and stops it
settings   its configuration: loopback, a secret, on disk before it answers
guard      the process between us and it, so that it never outlives us
binary     where the program is
"""

from __future__ import annotations

from flyball.runtime.nats.server.embedded import EmbeddedServer

__all__ = ["EmbeddedServer"]
