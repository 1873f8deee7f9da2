"""What came of a simulation."""

from __future__ import annotations

from typing import NamedTuple

from bench.sizing.plan import Plan
from bench.sizing.region import Region


class Load(NamedTuple):
    """A node, over the time of the simulation: shares of its cores and of its disk, and a second of it."""

    cpu: float
    disk: float
    writes: float
    written: float
    network: float


class Report(NamedTuple):
    """Of loops: how many in a second, and what the runtime added to the work of one, in seconds.

    `repeated`: calls that were made again, of a million. `given_again`: messages. `doubles`: messages that
    were not taken because they were there. `stall`: the longest time for which a stream took nothing. `wire`:
    the share of the time in which the one stream of the wire was busy, and `journal` the busiest journal.
    """

    loops: int
    rate: float
    p50: float
    p99: float
    slowest: float
    repeated: float
    given_again: int
    doubles: int
    stall: float
    wire: float
    journal: float
    worker: float
    under_way: int
    nodes: tuple[Load, ...]


def simulate(plan: Plan) -> Report:
    """Run a plan to its end. Rates and shares are of the second half: in the first, no loop has ended yet.

    Raises:
        AssertionError: something that must hold does not.
    """
    region, half = Region(plan), plan.seconds / 2
    seen: list[_Seen] = []
    for when in (half, plan.seconds):
        region.clock.at(when, lambda: seen.append(_see(region)))
    region.run()
    first, second = seen
    added = sorted([(loop.ended or 0.0) - loop.began - sum(loop.work) for loop in region.loops])

    def share(of: str, at: int = 0) -> float:
        return (getattr(second, of)[at] - getattr(first, of)[at]) / half

    costs, numbers = plan.costs, range(plan.nodes)
    return Report(
        loops=len(region.loops),
        rate=share("ended"),
        p50=added[len(added) // 2],
        p99=added[len(added) * 99 // 100],
        slowest=added[-1],
        repeated=1e6 * region.repeated / max(region.executions - region.repeated, 1),
        given_again=sum(post.again for post in region.posts.values()),
        doubles=region.doubles,
        stall=max(stream.longest for stream in region.cluster.streams),
        wire=share("wire") * costs.store,
        journal=max(share("journals", at) for at in range(plan.partitions)) * costs.store,
        worker=max(share("workers", at) for at in range(len(first.workers))),
        under_way=max(post.most for post in region.posts.values()),
        nodes=tuple(
            [
                Load(*[share(of, at) for of in ("cpu", "disk", "writes", "written", "network")])
                for at in numbers
            ]
        ),
    )


class _Seen(NamedTuple):
    """What was done by a moment."""

    ended: list[float]
    wire: list[float]
    journals: list[float]
    workers: list[float]
    cpu: list[float]
    disk: list[float]
    writes: list[float]
    written: list[float]
    network: list[float]


def _see(region: Region) -> _Seen:
    cluster = region.cluster
    workers = [worker.cpu for post in region.posts.values() for worker in post.workers]
    return _Seen(
        [sum(loop.ended is not None for loop in region.loops)],
        [cluster.wire.stored],
        [stream.stored for stream in cluster.journals],
        [cpu.busy / cpu.servers for cpu in workers],
        [node.cpu.busy / node.cpu.servers for node in cluster.nodes],
        [node.disk.busy / node.disk.servers for node in cluster.nodes],
        [node.writes for node in cluster.nodes],
        [node.written for node in cluster.nodes],
        [node.network for node in cluster.nodes],
    )
