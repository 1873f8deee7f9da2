"""`flyball follow` and `flyball trajectory`: a run wherever it is driven, live and afterwards."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Annotated, Literal

from cyclopts import Parameter

from flyball.adapters.cli.cluster import CLUSTER, Cluster
from flyball.adapters.cli.running import run
from flyball.adapters.cli.screen import err, plain, write_json
from flyball.adapters.cli.shared import SHARED, Shared
from flyball.core.events import Event
from flyball.inference.stream import Restart, TextDelta


def follow(
    run_id: Annotated[str, Parameter(name="RUN")],
    /,
    *,
    start: Annotated[int, Parameter(name="--from")] = 0,
    cluster: Cluster = CLUSTER,
    shared: Shared = SHARED,
) -> int:
    """Watch a run until it is over: its steps on stderr, the model's words on stdout as they come.

    The run may be one on NATS, or one that another process drives: then its words come with each answer.

    Args:
        run_id: The run: its id; of a run in this user's journal also the beginning of it, or last. On NATS
            one that is not there yet is waited for.
        start: Leave out so many events at the beginning.
        cluster: The NATS server.
        shared: Options of all commands.
    """
    return run(_follow(run_id, max(start, 0), cluster, shared))


def trajectory(
    run_id: Annotated[str, Parameter(name="RUN")],
    /,
    *,
    detail: Literal["summary", "full"] = "summary",
    cluster: Cluster = CLUSTER,
    shared: Shared = SHARED,
) -> int:
    """Draw the steps of a run.

    Args:
        run_id: The run: its id; of a run in this user's journal also the beginning of it, or last.
        detail: With --json: summary, or full with each request's messages and calls.
        cluster: The NATS server.
        shared: Options of all commands. With --json it is one document, with SemStreams' keys.
    """
    return run(_trajectory(run_id, detail, cluster, shared))


async def _trajectory(name: str, detail: Literal["summary", "full"], cluster: Cluster, shared: Shared) -> int:
    from flyball.adapters.cli.finding import found
    from flyball.adapters.cli.timeline import print_timeline
    from flyball.orchestrate.projections import trajectory as trajectory_of

    async with found(name, cluster, shared) as (runtime, loop_id, _):
        events = await runtime.journal.read(loop_id)
    if shared.json:
        write_json(trajectory_of(events, detail).write())
    else:
        print_timeline(events)
    return 0


async def _follow(name: str, start: int, cluster: Cluster, shared: Shared) -> int:
    from flyball.adapters.cli.finding import found
    from flyball.orchestrate.followed import Recorded

    async with found(name, cluster, shared, coming=True) as (runtime, loop_id, _):
        events = (await runtime.journal.read(loop_id))[:start]
        teller = Teller(events)
        async for told in runtime.follow(loop_id, len(events)):
            if isinstance(told, Recorded):
                events.append(told.event)
                teller.tell(events)
            elif isinstance(told, TextDelta):
                teller.say(told.text)
            elif isinstance(told, Restart):
                teller.take_back()
    return 0


class Teller:
    """Tells each step once, and keeps it apart from the words that are being said."""

    def __init__(self, events: list[Event]) -> None:
        """Nothing is told yet; what these events tell is not."""
        from flyball.adapters.cli.timeline import steps_of

        # Counted one by one: steps stand in the order of their beginning, and an early one may come late.
        self._told = Counter(steps_of(events) if events else ())
        self._midway = False

    def say(self, text: str) -> None:
        """Some words of the model's."""
        sys.stdout.write(plain(text))
        sys.stdout.flush()
        self._midway = not text.endswith("\n")

    def take_back(self) -> None:
        """What was said of an answer is void: the model was called again, and says something else."""
        self._end_line()
        err().print("the model was called again: its last words are void", style="yellow")

    def _end_line(self) -> None:
        if self._midway:
            sys.stdout.write("\n")
            sys.stdout.flush()
            self._midway = False

    def tell(self, events: list[Event]) -> None:
        """The steps that are new."""
        from flyball.adapters.cli.timeline import steps_of

        began, steps = events[0].at, steps_of(events)
        for step in (Counter(steps) - self._told).elements():
            self._end_line()
            took = "" if step.took is None else f"  {step.took:.2f} s"
            tokens = f"  {step.tokens}" if step.tokens else ""
            line = f"+{step.at - began:.2f} s {step.mark} {step.what}  {step.about}{took}{tokens}"
            err().print(line, style=step.style, overflow="ellipsis", no_wrap=True)
        self._told = Counter(steps)
