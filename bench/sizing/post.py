"""Messages to workers: each is given to one with room, and again when it was not heard of for too long."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from bench.sizing.clock import Clock, Process, Running
from bench.sizing.cluster import Stream
from bench.sizing.plan import Plan
from bench.sizing.stations import Station


class Worker:
    """A process with one thread. One that comes again has nothing of what it had."""

    def __init__(self, cpu: Station) -> None:
        self.cpu = cpu
        self.alive = True
        self.held: dict[Message, Running | None] = {}


Work = Callable[[Worker, int], Process]
"""What a worker does with a message; the number says how often it was given."""


class Message:
    """One that is to be done."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.given = 0
        self.since = 0.0


class Post:
    """A consumer on the wire, and those who work for it."""

    def __init__(self, clock: Clock, plan: Plan, wire: Stream, workers: list[Worker]) -> None:
        self._clock, self._plan, self._wire, self.workers = clock, plan, wire, workers
        self.again = 0
        """Messages that were given once more."""
        self.most = 0
        """The most that were under way at once."""
        self._waiting: deque[Message] = deque()
        self._under_way = 0
        self._next = 0

    def put(self, message: Message) -> None:
        """A message is on the wire."""
        self._waiting.append(message)
        self.give()

    def give(self) -> None:
        """Give out what can be: while the wire is led, few enough are under way, and somebody has room."""
        while (
            self._waiting and self._wire.leader is not None and self._under_way < self._plan.max_ack_pending
        ):
            worker = self._with_room()
            if worker is None:
                return
            message = self._waiting.popleft()
            self._under_way += 1
            self.most = max(self.most, self._under_way)
            message.given += 1
            self.again += message.given > 1
            message.since = self._clock.now
            self._begin(worker, message)

    def _begin(self, worker: Worker, message: Message) -> None:
        worker.held[message] = None
        running = Running(message.work(worker, message.given), lambda: self._done(worker, message))
        if message in worker.held:
            worker.held[message] = running

    def _done(self, worker: Worker, message: Message) -> None:
        del worker.held[message]
        if self._wire.leader is None:
            # Nobody hears that it is done: it is given again, to somebody who sees that it is.
            self._again_at(message.since + self._plan.hold, message)
        else:
            self._under_way -= 1
        self.give()

    def died(self, worker: Worker) -> None:
        """What a worker had is given to others, when its last sign of life is so old."""
        third = self._plan.hold / 3
        for message, running in worker.held.items():
            if running is not None:
                running.stop()
            signs = (self._clock.now - message.since) // third
            self._again_at(message.since + signs * third + self._plan.hold, message)
        worker.held.clear()

    def _again_at(self, when: float, message: Message) -> None:
        def again() -> None:
            self._under_way -= 1
            self._waiting.appendleft(message)
            self.give()

        self._clock.at(when, again)

    def _with_room(self) -> Worker | None:
        for turn in range(len(self.workers)):
            worker = self.workers[(self._next + turn) % len(self.workers)]
            if worker.alive and len(worker.held) < self._plan.room:
                self._next = (self._next + turn + 1) % len(self.workers)
                return worker
        return None
