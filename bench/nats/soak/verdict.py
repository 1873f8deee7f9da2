"""What must hold when all is over: from the journals as they are on the server, and the tools' own notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.nats.paused import WAITING
from bench.nats.soak.work import ANSWER, CALLS
from flyball.core.errors import FlyballError
from flyball.core.events import Ended, Event, ModelAnswered, Outcome, Started, ToolReturned, ToolStarted
from flyball.core.messages import ResultKind
from flyball.orchestrate.machine import fold
from flyball.runtime.nats import NatsOptions, NatsRuntime
from flyball.runtime.nats.dead import dead_letters
from flyball.runtime.nats.entry import decode_entry
from flyball.runtime.nats.fetching import after
from flyball.runtime.nats.naming import journal_stream, journal_subjects

_ONCE = "launch"


class Verdict(NamedTuple):
    """What was found: loops, their events, and all that does not hold."""

    loops: int
    events: int
    runs: int
    repeated: int
    interrupted: int
    broken: list[str]


async def judge(
    options: NatsOptions,
    asked: Sequence[str],
    notes: Path,
    waiting: Sequence[str] = (),
    *,
    cut_off: int | None = None,
) -> Verdict:
    """Look at everything, on a connection of its own. Those that wait are as `paused.fill` has left them.

    `cut_off` is how many calls can have been under way when something was killed; None if nobody counted.
    """
    broken: list[str] = []
    events = 0
    ran = ran_times(_lines(notes))
    interrupted = 0
    async with await NatsRuntime.open(options) as runtime:
        for number, dead in await dead_letters(runtime.bus):
            broken.append(f"put aside: {number} {dead.subject}: {dead.code}: {dead.reason}")
        broken += await _gaps(runtime)
        there = set(await runtime.journal.loops()) - set(waiting)
        broken += [f"{loop_id}: there, and nobody asked for it" for loop_id in there - set(asked)]
        lengths = zip(waiting, await runtime.journal.sizes(waiting), strict=True)
        broken += [
            f"{loop_id}: it waits, and has {size} events" for loop_id, size in lengths if size != WAITING
        ]
        for loop_id in asked:
            read = await runtime.journal.read(loop_id)
            events += len(read)
            broken += [f"{loop_id}: {what}" for what in wrong_with(loop_id, read, ran)]
            interrupted += sum(result.result.status is ResultKind.INTERRUPTED for result in _returned(read))
    runs, repeated = sum(ran.values()), sum(ran.values()) - len(ran)
    broken += too_many(len(asked), repeated, interrupted, cut_off)
    return Verdict(len(there), events, runs, repeated, interrupted, broken)


def too_many(loops: int, repeated: int, interrupted: int, cut_off: int | None) -> list[str]:
    """What was repeated and interrupted beyond what killing explains. One alone is allowed.

    A call is repeated, or nobody can tell of it, because it was under way when something was killed. Of
    those that may start once, most have to have run: a runtime that runs none of them keeps the rule, too.
    """
    wrong: list[str] = []
    if cut_off is not None:
        counts = {"repeated": repeated, "interrupted": interrupted}
        wrong = [
            f"{number} calls were {what}, and {cut_off} can have been under way when something was killed"
            for what, number in counts.items()
            if number > cut_off
        ]
    once = loops * CALLS.count(_ONCE)
    if 2 * interrupted > once:
        wrong.append(f"of {once} calls that may start once, {interrupted} were interrupted: most have to run")
    return wrong


async def _gaps(runtime: NatsRuntime) -> list[str]:
    """Entries that do not begin where the loop's last one ended, read without the journal's own care."""
    wrong: list[str] = []
    reached: Counter[str] = Counter()
    for number in range(runtime.journal.partitions):
        stream = journal_stream(number)
        for message in await after(runtime.connection, stream, journal_subjects(number)):
            entry = decode_entry(message.data, stream)
            if entry.first != reached[entry.loop_id]:
                wrong.append(
                    f"{entry.loop_id}: an entry begins with event {entry.first}, and "
                    f"{reached[entry.loop_id]} were before it"
                )
            reached[entry.loop_id] = entry.first + len(entry.events)
    return wrong


Ran = Mapping[tuple[str, str, str], int]
"""How often each call physically ran: by tool, loop and call."""


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def ran_times(lines: Iterable[str]) -> Ran:
    """What the tools wrote down, counted."""
    counted: Counter[tuple[str, str, str]] = Counter()
    for line in lines:
        name, loop_id, call_id = line.split()
        counted[name, loop_id, call_id] += 1
    return counted


def wrong_with(loop_id: str, events: Sequence[Event], ran: Ran) -> list[str]:
    """What does not hold for one loop."""
    if not events:
        return ["it is not there"]
    wrong: list[str] = []
    try:
        state = fold(events, loop_id)
    except FlyballError as error:
        return [f"it does not fold: {error}"]
    ends = [event for event in events if isinstance(event, Ended)]
    if state.at != "done" or [end.outcome for end in ends] != [Outcome.SUCCESS] or state.answer != ANSWER:
        wrong.append(f"it is not complete: at {state.at}, outcome {state.outcome}, {state.answer!r}")
    wrong += [
        f"{name} is there {times} times" for name, times in Counter(map(_name, events)).items() if times > 1
    ]
    returned = _returned(events)
    said = [event.result.call_id for event in returned]
    if said != [f"call_{n}" for n in range(len(CALLS))]:
        wrong.append(f"results are lost or doubled: {said}")
    for event in returned:
        result = event.result
        times = ran.get((result.name, loop_id, result.call_id), 0)
        if result.name == _ONCE and times > 1:
            wrong.append(f"{result.call_id} may start once, and physically ran {times} times")
        if result.status is ResultKind.INTERRUPTED and result.name == _ONCE:
            continue  # nobody can tell whether it had its effect, and the model was told so
        if result.status is not ResultKind.RETURN or result.content != f"{result.call_id} of {loop_id}":
            wrong.append(f"{result.call_id} came to {result.status}: {result.text}")
        elif not times:
            wrong.append(f"{result.call_id} has a result, and never ran")
    return wrong


def _returned(events: Sequence[Event]) -> list[ToolReturned]:
    return [event for event in events if isinstance(event, ToolReturned)]


def _name(event: Event) -> str:
    """What an event is about: of each there is one."""
    match event:
        case Started() | Ended():
            return type(event).__name__
        case ModelAnswered():
            return f"the answer of turn {event.turn}"
        case ToolReturned() | ToolStarted():
            return f"{type(event).__name__} {event.index} of turn {event.turn}"
        case _:
            return f"{type(event).__name__} at {event.at}"
