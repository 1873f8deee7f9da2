"""`flyball follow` and `flyball trajectory`: a loop that workers carry on, live and afterwards."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

from cyclopts import Parameter

from flyball.adapters.cli.cluster import CLUSTER, Cluster
from flyball.adapters.cli.running import run
from flyball.adapters.cli.screen import err, plain, write_json
from flyball.core.errors import LoopNotFound
from flyball.core.events import Event
from flyball.inference.stream import TextDelta


def follow(
    loop_id: Annotated[str, Parameter(name="LOOP")],
    /,
    *,
    start: Annotated[int, Parameter(name="--from")] = 0,
    cluster: Cluster = CLUSTER,
    debug: bool = False,
) -> int:
    """Watch a loop until it is over: its steps on stderr, the model's words on stdout as they come.

    Args:
        loop_id: The loop's id. One that is not there yet is waited for.
        start: Leave out so many events at the beginning.
        cluster: The NATS server.
        debug: Show the traceback of an error.
    """
    del debug
    return run(_follow(loop_id, start, cluster))


def trajectory(
    loop_id: Annotated[str, Parameter(name="LOOP")],
    /,
    *,
    detail: Literal["summary", "full"] = "summary",
    cluster: Cluster = CLUSTER,
    json: bool = False,
    debug: bool = False,
) -> int:
    """Draw the steps of a loop.

    Args:
        loop_id: The loop's id.
        detail: With --json: summary, or full with each request's messages and calls.
        cluster: The NATS server.
        json: Print the trajectory as one JSON document, with SemStreams' keys.
        debug: Show the traceback of an error.
    """
    del debug
    return run(_trajectory(loop_id, detail, cluster, as_json=json))


async def _trajectory(
    loop_id: str, detail: Literal["summary", "full"], cluster: Cluster, *, as_json: bool
) -> int:
    from flyball.adapters.cli.timeline import print_timeline
    from flyball.orchestrate.projections import trajectory as trajectory_of
    from flyball.runtime.nats import NatsJournal

    async with await NatsJournal.open(cluster.options()) as journal:
        events = await journal.read(loop_id)
    if not events:
        raise LoopNotFound(f"there is no loop {loop_id!r}", loop_id=loop_id)
    if as_json:
        write_json(trajectory_of(events, detail).write())
    else:
        print_timeline(events)
    return 0


async def _follow(loop_id: str, start: int, cluster: Cluster) -> int:
    from flyball.orchestrate.machine import fold
    from flyball.runtime.nats import NatsRuntime

    teller = _Teller(start)
    async with await NatsRuntime.open(cluster.options()) as runtime, runtime.listen(loop_id) as following:
        events = await runtime.journal.read(loop_id)
        while True:
            teller.tell(events)
            if events and fold(events).at == "done":
                return 0
            for delta in await following.news(len(events)):
                if isinstance(delta.event, TextDelta):
                    teller.say(delta.event.text)
            events += await runtime.journal.read(loop_id, len(events))


class _Teller:
    """Tells each step once, and keeps it apart from the words that are being said."""

    def __init__(self, start: int) -> None:
        self._start = start
        self._told = 0
        self._midway = False

    def say(self, text: str) -> None:
        """Some words of the model's."""
        sys.stdout.write(plain(text))
        sys.stdout.flush()
        self._midway = not text.endswith("\n")

    def tell(self, events: list[Event]) -> None:
        """The steps that are new."""
        from flyball.adapters.cli.timeline import steps_of

        if not events:
            return
        if self._start:
            # What the first events tell is told already.
            self._told, self._start = len(steps_of(events[: self._start])), 0
        began, steps = events[0].at, steps_of(events)
        for step in steps[self._told :]:
            if self._midway:
                sys.stdout.write("\n")
                sys.stdout.flush()
                self._midway = False
            took = "" if step.took is None else f"  {step.took:.2f} s"
            tokens = f"  {step.tokens}" if step.tokens else ""
            line = f"+{step.at - began:.2f} s {step.mark} {step.what}  {step.about}{took}{tokens}"
            err().print(line, style=step.style, overflow="ellipsis", no_wrap=True)
        self._told = len(steps)
