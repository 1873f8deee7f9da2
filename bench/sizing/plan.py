"""What is simulated: a region, its load and its failures, and what each thing costs."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Costs(Struct, frozen=True):
    """Seconds and bytes of one durable message, as `make bench-nats ARGS=--partition` has them.

    `store`: a stream is busy with it, and a lane of the disk. `line`: on its way, with nothing busy.
    `worker`, `server`, `follower`: CPU. `caller`: CPU of who asks for a loop, for all of it. `client_bytes`:
    to and from clients. `route_bytes`: to each copy. `disk_bytes`: written by each copy.
    """

    store: float = 0.001
    line: float = 0.0006
    worker: float = 0.00018
    server: float = 0.00028
    follower: float = 0.00012
    caller: float = 0.004
    client_bytes: int = 2_900
    route_bytes: int = 2_400
    disk_bytes: int = 5_000


ALWAYS = Costs()
"""`sync_interval: always`."""
DEFAULT = Costs(store=0.0001, worker=0.00014, server=0.00012, follower=0.00008, caller=0.0028, disk_bytes=900)
"""The server's default: a disk is not waited for."""


class Failure(Struct, frozen=True):
    """Something dies at a time, and is there again some seconds later. With a zone all workers in it die."""

    at: float
    what: Literal["worker", "node", "zone"]
    which: int = 0
    back: float = 5.0


class Plan(Struct, frozen=True):
    """A region. Two of one plan come to the same, to the last digit.

    `crews`: processes that serve loop, model and tools; or, with `apart`, so many of each kind. `rate`: loops
    that begin in a second, at random; with `callers` instead so many who each wait for a loop and ask for
    the next. `model`, `tool`: mean seconds of a call. `hold`: after which a dead worker's message is given
    again. `room`: messages that a worker has at once. `election`: least and most seconds until a stream that
    lost its leader has another. `retry`: most seconds until an unanswered publish is made again. `lanes`:
    writes that a disk has under way at once. `hop`: seconds from one node to another, and back. `shared`: the
    workers, callers and nodes are on one machine, with the cores of a node.
    """

    partitions: int = 64
    replicas: int = 3
    nodes: int = 6
    zones: int = 3
    crews: int = 24
    apart: bool = False
    rate: float = 100.0
    callers: int = 0
    calls: int = 5
    seconds: float = 30.0
    model: float = 1.0
    tool: float = 0.1
    costs: Costs = ALWAYS
    cores: int = 8
    lanes: int = 4
    hop: float = 0.001
    hold: float = 30.0
    room: int = 256
    max_ack_pending: int = 1_000_000
    election: tuple[float, float] = (4.0, 9.0)
    retry: float = 1.0
    shared: bool = False
    failures: tuple[Failure, ...] = ()
    seed: int = 1

    def __post_init__(self) -> None:
        if self.replicas > self.nodes or self.zones > self.nodes:
            raise ValueError(f"{self.nodes} nodes: too few for {self.replicas} copies in {self.zones} zones")
