"""A region at work: loops begin, workers carry them on, some die; and what must hold of every journal.

A loop of k tool calls is 2k + 2 appends: it begins; each turn the model's answer and the tool's result; the
last answer; the end. Workers of one process do what is owed themselves, and hold the loop's message until
it is over; workers apart send each other a message for every call and every answer.
"""

from __future__ import annotations

from functools import partial
from random import Random

from bench.sizing.clock import Clock, Process, Then, Wait
from bench.sizing.cluster import Cluster, Stream
from bench.sizing.plan import Failure, Plan
from bench.sizing.post import Message, Post, Work, Worker
from bench.sizing.stations import Station

_WINDOW = 120.0
"""Seconds for which the server knows a message's id."""


class Loop:
    """A loop, and its journal: the numbers of its steps, in the order in which they were taken."""

    def __init__(self, number: int, began: float, work: list[float], stream: Stream) -> None:
        self.number, self.began, self.work, self.stream = number, began, work, stream
        self.journal: list[int] = []
        self.times: list[float] = []
        self.ended: float | None = None
        self.then: Then | None = None
        """Who waits for it."""

    @property
    def steps(self) -> int:
        """How many entries it comes to: all work, and its beginning and end."""
        return len(self.work) + 2


class Region:
    """A simulation; `run` it once."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.clock, self.chance = plan, Clock(), Random(plan.seed)
        self.cluster = cluster = Cluster(self.clock, self.chance, plan)
        self.loops: list[Loop] = []
        self.executions = self.repeated = self.doubles = 0
        """Calls that were made, and made again; messages that were there already, and not taken."""
        kinds = ("loop", "model", "tools") if plan.apart else ("loop",)
        shared = cluster.nodes[0].cpu
        self.posts = {
            kind: Post(
                self.clock,
                plan,
                cluster.wire,
                [Worker(shared if plan.shared else Station()) for _ in range(plan.crews)],
            )
            for kind in kinds
        }
        cluster.wire.elected = self._give
        self._made: set[tuple[int, int]] = set()
        self._sent: dict[tuple[str, int, int], float] = {}
        self._caller = shared if plan.shared else Station(1_000)

    def run(self) -> None:
        """From the first loop until all have ended.

        Raises:
            AssertionError: a loop is lost, or something is recorded twice or out of order.
        """
        for failure in self.plan.failures:
            self.clock.at(failure.at, partial(self._fail, failure))
        if self.plan.callers:
            for _ in range(self.plan.callers):
                self.clock.at(0.0, self._call)
        else:
            self.clock.at(self.chance.expovariate(self.plan.rate), self._arrive)
        self.clock.run()
        self.check()

    def check(self) -> None:
        """What must hold when all is over."""
        for loop in self.loops:
            assert loop.ended is not None, f"loop {loop.number} is lost at {loop.journal}"
            assert loop.journal == list(range(loop.steps)), f"loop {loop.number} recorded {loop.journal}"
            assert loop.times == sorted(loop.times), f"loop {loop.number} is out of order"
        assert self.executions - self.repeated == sum(len(loop.work) for loop in self.loops)

    # Loops begin

    def _arrive(self) -> None:
        self._begin(None)
        following = self.clock.now + self.chance.expovariate(self.plan.rate)
        if following < self.plan.seconds:
            self.clock.at(following, self._arrive)

    def _call(self) -> None:
        if self.clock.now < self.plan.seconds:
            self._begin(self._call)

    def _begin(self, then: Then | None) -> None:
        plan, chance = self.plan, self.chance
        means = [mean for _ in range(plan.calls) for mean in (plan.model, plan.tool)] + [plan.model]
        work = [chance.expovariate(1 / mean) if mean else 0.0 for mean in means]
        journals = self.cluster.journals
        loop = Loop(len(self.loops), self.clock.now, work, journals[chance.randrange(len(journals))])
        loop.then = then
        self.loops.append(loop)
        asked = self._caller.take(self.clock.now, plan.costs.caller)
        carry = self._apart(loop, 0) if plan.apart else partial(self._together, loop)
        self.clock.at(asked, lambda: self._send("loop", loop, 0, carry, _nothing))

    # Work

    def _together(self, loop: Loop, worker: Worker, given: int) -> Process:
        """Carry a loop on, from wherever it is, to its end."""
        if given > 1:
            yield self._thinks(worker)  # the journal is read
        while loop.ended is None:
            yield from self._step(loop, worker, len(loop.journal))
        if given == 1:
            yield from self._tell_of(worker)

    def _apart(self, loop: Loop, at: int) -> Work:
        """What a loop worker does with the answer to step `at`: records it, and asks for what comes next."""

        def carry(worker: Worker, given: int) -> Process:
            if len(loop.journal) <= at:
                yield from self._record(loop, worker, at)
            yield from self._owed(loop, worker, at + 1)

        return carry

    def _owed(self, loop: Loop, worker: Worker, at: int) -> Process:
        if len(loop.journal) > at or loop.ended is not None:
            return  # somebody has gone on with it
        if at == loop.steps - 1:
            yield from self._record(loop, worker, at)
            yield from self._tell_of(worker)
            return
        kind = "tools" if at % 2 == 0 else "model"
        yield self._thinks(worker)
        yield partial(self._send, kind, loop, at, self._called(loop, at))

    def _called(self, loop: Loop, at: int) -> Work:
        """What a model or tools worker does: the call, and a message with its answer."""

        def call(worker: Worker, given: int) -> Process:
            yield self._thinks(worker)
            yield self._makes(loop, at)
            yield partial(self._send, "loop", loop, at, self._apart(loop, at))

        return call

    def _step(self, loop: Loop, worker: Worker, at: int) -> Process:
        if 0 < at < loop.steps - 1:
            yield self._makes(loop, at)
        yield from self._record(loop, worker, at)

    def _record(self, loop: Loop, worker: Worker, at: int) -> Process:
        yield self._thinks(worker)
        yield partial(loop.stream.publish, partial(self._take, loop, at))

    def _take(self, loop: Loop, at: int) -> None:
        """The compare-and-set: an entry is taken only after the one before it."""
        if len(loop.journal) != at:
            self.doubles += 1
            return
        loop.journal.append(at)
        loop.times.append(self.clock.now)
        if at == loop.steps - 1:
            loop.ended = self.clock.now
            if loop.then is not None:
                self.clock.at(self.clock.now + self.plan.costs.line, loop.then)

    def _makes(self, loop: Loop, at: int) -> Wait:
        self.executions += 1
        self.repeated += (loop.number, at) in self._made
        self._made.add((loop.number, at))
        return self.clock.until(self.clock.now + loop.work[at - 1])

    def _tell_of(self, worker: Worker) -> Process:
        """What is written beside a loop, which nobody waits for: two messages of the wire, four notes."""
        cluster = self.cluster
        for stream in (cluster.wire, cluster.wire, *[cluster.loops] * 3, cluster.trajectories):
            worker.cpu.take(self.clock.now, self.plan.costs.worker)
            stream.publish(_nothing, _nothing)
        yield self.clock.until(self.clock.now)

    def _thinks(self, worker: Worker) -> Wait:
        return self.clock.until(worker.cpu.take(self.clock.now, self.plan.costs.worker))

    def _send(self, kind: str, loop: Loop, at: int, work: Work, answered: Then) -> None:
        """Put a message on the wire; one whose id is there already is not taken."""
        name, post = (kind, loop.number, at), self.posts[kind]

        def take() -> None:
            if self.clock.now - self._sent.get(name, -_WINDOW) < _WINDOW:
                self.doubles += 1
                return
            self._sent[name] = self.clock.now
            post.put(Message(work))

        self.cluster.wire.publish(take, answered)

    # Trouble

    def _fail(self, failure: Failure) -> None:
        back = self.clock.now + failure.back
        nodes, zones = self.cluster.nodes, self.plan.zones
        if failure.what == "worker":
            posts = list(self.posts.values())
            self._kill(posts[failure.which % len(posts)], failure.which // len(posts), back)
            return
        hit = [nodes[failure.which % len(nodes)]]
        if failure.what == "zone":
            hit = [node for node in nodes if node.zone == failure.which % zones]
            for post in self.posts.values():
                for number in range(failure.which % zones, len(post.workers), zones):
                    self._kill(post, number, back)
        self.cluster.set_alive(hit, alive=False)
        self.clock.at(back, lambda: self.cluster.set_alive(hit, alive=True))

    def _kill(self, post: Post, number: int, back: float) -> None:
        worker = post.workers[number % len(post.workers)]
        worker.alive = False
        post.died(worker)
        self.clock.at(back, partial(self._works_again, worker, post))

    def _give(self) -> None:
        for post in self.posts.values():
            post.give()

    def _works_again(self, worker: Worker, post: Post) -> None:
        worker.alive = True
        post.give()


def _nothing() -> None:
    """Nobody waits for it."""
