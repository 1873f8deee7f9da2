"""Loops on NATS JetStream: durable on a cluster, shared by any number of machines.

    runtime      NatsRuntime, a Driver: asks for loops, and follows them
    crew         Crew: the workers of one process; workers: loop, model and tools
    bus          the wire between them: the stream AGENT; deliveries: its messages as work
    journal      NatsJournal, the Journal of this package
    layout       the streams and stores on the server: made once, the same for everybody
    naming       ids as subjects, whatever stands in them
    entry        the events of one append, as one message
    fetching     many messages with one question; the end of a loop
    watching     who waits for a loop to grow, and how they are told
    blobs        what is too large for a message; stored: what a stream answers to one
    connection   a connection that is never given up, and how to come in; asking: questions and answers on it
    server       a nats-server of one's own

Rules:
- the journals are the truth; what is on the wire follows from them, and may be lost or come twice;
- compare-and-set on a loop's subjects is what correctness rests on; duplicate windows, notices and
  acknowledgements only help;
- nothing that a user chose becomes part of a subject as it is: `naming.token` writes it;
- whatever the client library raises leaves this package as an error of flyball's.
"""

from __future__ import annotations

from flyball.runtime.nats.connection import NatsOptions, connect
from flyball.runtime.nats.crew import Crew
from flyball.runtime.nats.journal import NatsJournal
from flyball.runtime.nats.layout import Layout
from flyball.runtime.nats.runtime import NatsRuntime
from flyball.runtime.nats.server import EmbeddedServer

__all__ = ["Crew", "EmbeddedServer", "Layout", "NatsJournal", "NatsOptions", "NatsRuntime", "connect"]
