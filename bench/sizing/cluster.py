"""Nodes in zones, and streams on them: a message counts once more than half of the copies have it."""

from __future__ import annotations

from random import Random

from bench.sizing.clock import Clock, Then
from bench.sizing.plan import Plan
from bench.sizing.stations import Station


class Node:
    """A server with its cores and its disk."""

    def __init__(self, zone: int, cpu: Station, lanes: int) -> None:
        self.zone = zone
        self.alive = True
        self.cpu = cpu
        self.disk = Station(lanes)
        self.writes = self.written = self.network = 0
        """Messages to its disk, and bytes there, and over its network."""


class Stream:
    """Takes messages one after another, while it has a leader and a quorum."""

    def __init__(self, clock: Clock, chance: Random, plan: Plan, copies: list[Node]) -> None:
        self._clock, self._chance, self._plan, self.copies = clock, chance, plan, copies
        self.leader: Node | None = copies[0]
        self.longest = 0.0
        """The longest time without a leader."""
        self.stored = 0
        self.elected: Then = lambda: None
        """Told when there is a leader again."""
        self._turn = [Station() for _ in copies]
        self._term = 0
        self._lost = 0.0
        self._waiting: list[Then] = []

    def publish(self, take: Then, answered: Then) -> None:
        """Store a message: `take` is called when it counts, perhaps more than once, and then `answered`."""
        if self.leader is None:
            self._waiting.append(lambda: self.publish(take, answered))
            return
        plan, costs, now, term = self._plan, self._plan.costs, self._clock.now, self._term
        done: list[float] = []
        for node, turn in zip(self.copies, self._turn, strict=True):
            if not node.alive:
                continue
            leads = node is self.leader
            ready = node.cpu.take(now, costs.server if leads else costs.follower)
            stored = node.disk.take(turn.take(ready, costs.store) - costs.store, costs.store)
            done.append(stored + (0.0 if leads else plan.hop))
            node.writes += 1
            node.written += costs.disk_bytes
            node.network += (
                costs.client_bytes + costs.route_bytes * (plan.replicas - 1) if leads else costs.route_bytes
            )
        when = sorted(done)[len(self.copies) // 2]

        def counts() -> None:
            if term == self._term:
                self.stored += 1
                take()
                self._clock.at(self._clock.now + costs.line, answered)
                return
            # Its leader is gone, and so is the answer; whether the copies have it, nobody was told.
            if self._chance.random() < 0.5:
                take()
            self.publish(take, answered)

        self._clock.at(when, counts)

    def look(self) -> None:
        """A node died or came back: there may be no leader any more, or one may be found."""
        if self.leader is not None and (not self.leader.alive or not self._quorum()):
            self.leader = None
            self._term += 1
            self._lost = self._clock.now
        if self.leader is None and self._quorum():
            term = self._term
            wait = self._chance.uniform(*self._plan.election)
            self._clock.at(self._clock.now + wait, lambda: self._elect(term))

    def _quorum(self) -> bool:
        return sum(node.alive for node in self.copies) > len(self.copies) // 2

    def _elect(self, term: int) -> None:
        if self.leader is not None or term != self._term or not self._quorum():
            return
        self.leader = next(node for node in self.copies if node.alive)
        self.longest = max(self.longest, self._clock.now - self._lost)
        self.elected()
        waiting, self._waiting = self._waiting, []
        for again in waiting:
            self._clock.at(self._clock.now + self._chance.uniform(0, self._plan.retry), again)


class Cluster:
    """All nodes, and the streams: one a partition, and those that there is one of."""

    def __init__(self, clock: Clock, chance: Random, plan: Plan) -> None:
        machine = Station(plan.cores)
        self.nodes = [
            Node(n % plan.zones, machine if plan.shared else Station(plan.cores), plan.lanes)
            for n in range(plan.nodes)
        ]
        # Neighbours are in different zones, so that copies are too; each node leads as many as the others.
        placed = [
            [self.nodes[(s + copy) % plan.nodes] for copy in range(plan.replicas)]
            for s in range(plan.partitions + 3)
        ]
        streams = [Stream(clock, chance, plan, copies) for copies in placed]
        self.wire, self.loops, self.trajectories = streams[:3]
        self.journals = streams[3:]
        self.streams = streams

    def set_alive(self, nodes: list[Node], *, alive: bool) -> None:
        """Some nodes die together, or are there again."""
        for node in nodes:
            node.alive = alive
        for stream in self.streams:
            stream.look()
