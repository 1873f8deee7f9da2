"""What every `Journal` promises, as tests that a journal's author can run.

    class TestMyJournal(JournalConformance):
        async def make_journal(self) -> Journal:
            return MyJournal(...)

The methods are coroutines: run them with pytest-asyncio's auto mode, or with the marker of your runner. A
promise that a hook leaves open is skipped, with the reason. No test sleeps; one that waits in vain
gives up after `patience` seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar, get_args
from unittest import SkipTest

from flyball.core.errors import FlyballError, JournalConflict, JournalTooNew, LoopNotFound, UserError
from flyball.core.events import Event
from flyball.orchestrate.journal import Journal
from flyball.testing.conformance.samples import every_event, from_a_later_release, long_event, numbered

T = TypeVar("T")
E = TypeVar("E", bound=FlyballError)

ODD_IDS = (
    " ",
    "a b",
    "a/b",
    "../../etc/passwd",
    "a.b.*.>",
    "'; DROP TABLE event; --",
    '"quoted"',
    "%s %d {0} ?1 :name",
    "%",
    "_",
    "Ünïcödé ☃ 漢字 🎛️",
    "e\u0301",
    "\u00e9",
    "upper",
    "UPPER",
    "line\nbreak\ttab",
    "nul\0byte",
    "nul\0",
    "0",
    "00",
    "x" * 10_000,
)
"""Loop ids that an implementation may stumble over; each names a loop of its own."""


class JournalConformance:
    """The promises of `Journal`. Subclass it, name the subclass `Test…`, and give it `make_journal`."""

    patience: float = 60.0
    """Seconds after which what should come at once is taken never to come."""

    async def make_journal(self) -> Journal:
        """A fresh, empty journal. Every test makes its own."""
        raise NotImplementedError("JournalConformance needs make_journal(), which gives an empty journal")

    async def reopen(self, journal: Journal) -> Journal | None:
        """The same journal as another process would open it, or None if it does not outlive its process."""
        del journal
        return None

    async def close_journal(self, journal: Journal) -> None:
        """Let go of a journal that `make_journal` or `reopen` gave."""
        del journal

    @asynccontextmanager
    async def journal(self) -> AsyncGenerator[Journal]:
        """A fresh journal for a block, closed after it."""
        journal = await self.make_journal()
        try:
            yield journal
        finally:
            await self.close_journal(journal)

    # Appending and reading

    async def test_is_a_journal(self) -> None:
        """It has the methods of the protocol."""
        async with self.journal() as journal:
            assert isinstance(journal, Journal), f"{type(journal).__name__} lacks methods of Journal"

    async def test_an_unknown_loop_is_empty(self) -> None:
        """Reading what was never written gives nothing, and leaves nothing behind."""
        async with self.journal() as journal:
            assert await journal.read("nobody") == []
            assert await journal.read("nobody", 3) == []
            assert await journal.loops() == []

    async def test_every_event_is_read_back_equal(self) -> None:
        """Whatever the event, it comes back as it was, and in order."""
        events = every_event()
        missing = set(get_args(Event)) - {type(event) for event in events}
        assert not missing, f"the suite lacks samples of {missing}"
        async with self.journal() as journal:
            for n, event in enumerate(events):
                assert await journal.append("one by one", [event], n) == n + 1
            assert await journal.append("at once", events, 0) == len(events)
            assert await journal.read("one by one") == events
            assert await journal.read("at once") == events

    async def test_reads_from_a_number_on(self) -> None:
        """`start` leaves out that many events; beyond the end there is nothing."""
        events = numbered(5)
        async with self.journal() as journal:
            await journal.append("loop", events, 0)
            for start in range(8):
                assert await journal.read("loop", start) == events[start:], f"from {start}"

    async def test_large_events_and_large_appends(self) -> None:
        """Neither a megabyte in one event nor a thousand events in one append is too much."""
        large, many = long_event(1_000_000), numbered(1_000)
        async with self.journal() as journal:
            assert await journal.append("large", [large], 0) == 1
            assert await journal.append("many", many, 0) == 1_000
            assert await journal.read("large") == [large]
            assert await journal.read("many") == many
            assert await journal.read("many", 998) == many[998:]

    async def test_takes_any_sequence_and_keeps_no_hold_on_it(self) -> None:
        """Changing the list that was given, or the list that was read, changes nothing in the journal."""
        given = numbered(2)
        async with self.journal() as journal:
            await journal.append("loop", given, 0)
            await journal.append("loop", tuple(numbered(1, 2)), 2)
            given.clear()
            (await journal.read("loop")).clear()
            assert await journal.read("loop") == numbered(3)

    # Compare and set

    async def test_an_append_that_expects_too_few_is_refused(self) -> None:
        """Somebody else was quicker: nothing is written, and the error tells both numbers."""
        async with self.journal() as journal:
            await journal.append("loop", numbered(3), 0)
            for expected in (0, 1, 2):
                error = await _refused(JournalConflict, journal.append("loop", numbered(2, 7), expected))
                told = error.details
                assert told == {"loop_id": "loop", "expected": expected, "actual": 3}, f"details are {told}"
            assert await journal.read("loop") == numbered(3)

    async def test_an_append_that_expects_too_many_is_refused(self) -> None:
        """There are no gaps: nothing is written, and no loop is begun by it."""
        async with self.journal() as journal:
            error = await _refused(JournalConflict, journal.append("new", numbered(1), 1))
            assert error.details == {"loop_id": "new", "expected": 1, "actual": 0}
            assert await journal.read("new") == []
            assert await journal.loops() == [], "a refused append must not begin a loop"
            await journal.append("loop", numbered(2), 0)
            error = await _refused(JournalConflict, journal.append("loop", numbered(2, 9), 9))
            assert error.details == {"loop_id": "loop", "expected": 9, "actual": 2}
            assert await journal.read("loop") == numbered(2)

    async def test_a_refused_append_can_be_made_good(self) -> None:
        """After a conflict the journal works on, with the right number."""
        async with self.journal() as journal:
            await journal.append("loop", numbered(1), 0)
            error = await _refused(JournalConflict, journal.append("loop", numbered(1, 1), 0))
            assert error.retryable
            assert await journal.append("loop", numbered(1, 1), error.details["actual"]) == 2
            assert await journal.read("loop") == numbered(2)

    async def test_an_append_of_nothing_only_checks(self) -> None:
        """It returns the length or refuses, and begins no loop."""
        async with self.journal() as journal:
            assert await journal.append("loop", [], 0) == 0
            assert await journal.loops() == [], "an append of nothing must not begin a loop"
            await journal.append("loop", numbered(2), 0)
            assert await journal.append("loop", [], 2) == 2
            await _refused(JournalConflict, journal.append("loop", [], 1))
            assert await journal.read("loop") == numbered(2)

    async def test_of_many_writers_one_wins_each_number(self) -> None:
        """Tasks that race for one loop: each append that was told a place has it, alone and in one piece."""
        writers, appends = 8, 6
        places: dict[int, list[Event]] = {}

        async def write(writer: int, journal: Journal) -> None:
            expected = 0
            for k in range(appends):
                pair = numbered(2, 1_000 * writer + 2 * k)
                while True:
                    try:
                        length = await journal.append("loop", pair, expected)
                    except JournalConflict as error:
                        expected = error.details["actual"]
                    else:
                        assert expected not in places, f"two appends were told that they begin at {expected}"
                        places[expected] = pair
                        expected = length
                        break
                    await asyncio.sleep(0)

        async with self.journal() as journal:
            await asyncio.gather(*[write(writer, journal) for writer in range(writers)])
            found = await journal.read("loop")
        assert sorted(places) == list(range(0, 2 * writers * appends, 2)), "a place is missing"
        assert found == [event for place in sorted(places) for event in places[place]]

    async def test_readers_see_whole_appends(self) -> None:
        """Whoever reads while another writes sees what was written first, and never a part of an append."""
        width, appends = 4, 25
        async with self.journal() as journal:

            async def write() -> None:
                for k in range(appends):
                    await journal.append("loop", numbered(width, k * width), k * width)
                    await asyncio.sleep(0)

            writing = asyncio.create_task(write())
            while not writing.done():
                found = await journal.read("loop")
                assert len(found) % width == 0, f"{len(found)} events, though they come {width} at a time"
                assert found == numbered(len(found))
                await asyncio.sleep(0)
            await writing
            assert await journal.read("loop") == numbered(width * appends)

    async def test_a_cancelled_append_is_decided(self) -> None:
        """Once CancelledError is out, the append is in the journal or never will be."""
        async with self.journal() as journal:
            length = 0
            for turns in range(6):
                task = asyncio.create_task(journal.append("loop", numbered(2, length), length))
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task], timeout=self.patience)
                assert task.done(), "a cancelled append did not end"
                found = await journal.read("loop")
                assert len(found) in (length, length + 2), (
                    f"half an append: {len(found) - length} of 2 events"
                )
                if not task.cancelled():
                    assert await task == len(found) == length + 2
                length = await journal.append("loop", numbered(1, len(found)), len(found))
            assert await journal.read("loop") == numbered(length)

    # Loops

    async def test_loops_do_not_disturb_each_other(self) -> None:
        """Loops that are written at once each have their own numbers and their own events."""
        count = 20
        async with self.journal() as journal:

            async def write(name: str, first: int) -> None:
                for k in range(5):
                    await journal.append(name, numbered(1, first + k), k)
                    await asyncio.sleep(0)

            await asyncio.gather(*[write(f"loop-{n}", 100 * n) for n in range(count)])
            for n in range(count):
                assert await journal.read(f"loop-{n}") == numbered(5, 100 * n)
            assert sorted(await journal.loops()) == sorted(f"loop-{n}" for n in range(count))

    async def test_odd_ids_name_loops_of_their_own(self) -> None:
        """An id is only a name: whatever stands in it, it is no path, no pattern and no SQL."""
        async with self.journal() as journal:
            for n, name in enumerate(ODD_IDS):
                assert await journal.append(name, numbered(1, n), 0) == 1, f"for {name[:40]!r}"
            for n, name in enumerate(ODD_IDS):
                assert await journal.read(name) == numbered(1, n), f"for {name[:40]!r}"
                assert await journal.wait(name, 0, timeout=0), f"for {name[:40]!r}"
            assert await journal.loops() == list(reversed(ODD_IDS))

    async def test_an_empty_id_is_refused(self) -> None:
        """A loop needs a name."""
        async with self.journal() as journal:
            await _refused(UserError, journal.append("", numbered(1), 0))
            assert await journal.loops() == []

    async def test_loops_are_listed_newest_first(self) -> None:
        """By their first event: those that come later do not change the order."""
        async with self.journal() as journal:
            for name in ("b", "c", "a"):
                await journal.append(name, numbered(1), 0)
            assert await journal.loops() == ["a", "c", "b"]
            await journal.append("b", numbered(1, 1), 1)
            assert await journal.loops() == ["a", "c", "b"]

    async def test_loops_are_listed_page_by_page(self) -> None:
        """Before one that is named, and no more than so many; each page goes on where the last one ended."""
        names = [f"loop {n}" for n in range(7)]
        async with self.journal() as journal:
            for name in names:
                await journal.append(name, numbered(1), 0)
            newest = names[::-1]
            for limit in (1, 2, 3, 7, 9):
                assert await journal.loops(limit=limit) == newest[:limit], f"the newest {limit}"
                pages: list[str] = []
                for _ in range(len(names) + 1):
                    page = await journal.loops(pages[-1] if pages else "", limit)
                    assert len(page) <= limit
                    pages += page
                assert pages == newest, f"in pages of {limit}"
            assert await journal.loops(names[3]) == newest[4:]
            assert await journal.loops(names[0]) == []
            assert await journal.loops(limit=0) == []

    async def test_pages_stay_while_loops_begin(self) -> None:
        """Who lists page by page finds each loop that was there once, whatever begins or grows meanwhile."""
        async with self.journal() as journal:
            for n in range(6):
                await journal.append(f"old {n}", numbered(1), 0)
            found = await journal.loops(limit=2)
            for n in range(4):
                await journal.append(f"new {n}", numbered(1), 0)
                await journal.append(f"old {n}", numbered(1, 1), 1)
                found += await journal.loops(found[-1], 1)
            assert found == [f"old {n}" for n in reversed(range(6))]

    async def test_a_page_before_an_unknown_loop_is_refused(self) -> None:
        """There is no place to go on from, and nothing is given instead."""
        async with self.journal() as journal:
            await journal.append("loop", numbered(1), 0)
            error = await _refused(LoopNotFound, journal.loops("nobody"))
            assert error.details["loop_id"] == "nobody"

    async def test_sizes_of_many_loops(self) -> None:
        """As many as each has now, in the order in which they were asked for; an unknown one has none."""
        async with self.journal() as journal:
            for n in range(1, 6):
                await journal.append(f"loop {n}", numbered(n), 0)
            names = ["loop 3", "nobody", "loop 1", "loop 5", "loop 3"]
            assert await journal.sizes(names) == [3, 0, 1, 5, 3]
            await journal.append("loop 3", numbered(1, 3), 3)
            assert await journal.sizes(["loop 3"]) == [4]
            assert await journal.sizes([]) == []
            assert len(await journal.loops()) == 5, "asking for its size must not begin a loop"

    async def test_odd_ids_can_be_gone_on_from(self) -> None:
        """An id is only a name here, too."""
        async with self.journal() as journal:
            for n, name in enumerate(ODD_IDS):
                await journal.append(name, numbered(n + 1), 0)
            assert await journal.sizes(ODD_IDS) == [n + 1 for n in range(len(ODD_IDS))]
            for n, name in enumerate(ODD_IDS):
                older = list(reversed(ODD_IDS[:n]))
                assert await journal.loops(name, 3) == older[:3], f"before {name[:40]!r}"

    # Waiting

    async def test_wait_returns_at_once_for_what_is_there(self) -> None:
        """Also with a time-out of nothing at all."""
        async with self.journal() as journal:
            await journal.append("loop", numbered(2), 0)
            assert await journal.wait("loop", 0) is True
            assert await journal.wait("loop", 1) is True
            assert await journal.wait("loop", 1, timeout=0) is True

    async def test_wait_times_out(self) -> None:
        """False, when the loop has not grown: one that is unknown, or one that is as long as that."""
        async with self.journal() as journal:
            await journal.append("loop", numbered(2), 0)
            assert await journal.wait("nobody", 0, timeout=0.01) is False
            assert await journal.wait("loop", 2, timeout=0.01) is False
            assert await journal.wait("loop", 2, timeout=0) is False
            assert await journal.loops() == ["loop"], "waiting must not begin a loop"

    async def test_an_append_wakes_all_who_wait_for_it(self) -> None:
        """And only those: whoever waits for more events, or for another loop, waits on."""
        async with self.journal() as journal:
            await journal.append("loop", numbered(1), 0)
            woken = [asyncio.create_task(journal.wait("loop", 1)) for _ in range(3)]
            longer = asyncio.create_task(journal.wait("loop", 2))
            other = asyncio.create_task(journal.wait("other", 0))
            await self._settled(journal)
            assert not any(task.done() for task in (*woken, longer, other)), "woken by nothing"
            await journal.append("loop", numbered(1, 1), 1)
            assert await self._soon(asyncio.gather(*woken)) == [True, True, True]
            assert not longer.done(), "woken by too few events"
            assert not other.done(), "woken by another loop's event"
            await journal.append("loop", numbered(1, 2), 2)
            await journal.append("other", numbered(1), 0)
            assert await self._soon(asyncio.gather(longer, other)) == [True, True]

    async def test_a_wait_can_be_cancelled(self) -> None:
        """At once, and without harm to others who wait."""
        async with self.journal() as journal:
            given_up = asyncio.create_task(journal.wait("loop", 0))
            stays = asyncio.create_task(journal.wait("loop", 0))
            await self._settled(journal)
            given_up.cancel()
            await asyncio.wait([given_up], timeout=self.patience)
            assert given_up.cancelled()
            await journal.append("loop", numbered(1), 0)
            assert await self._soon(stays) is True

    # Durability

    async def test_another_process_finds_everything(self) -> None:
        """What was appended is there when the journal is opened again, and goes on from there."""
        async with self.journal() as journal:
            await journal.append("first", every_event(), 0)
            await journal.append("second", numbered(3), 0)
            again = await self.reopen(journal)
            if again is None:
                raise SkipTest("this journal does not outlive its process: there is no reopen()")
            try:
                assert await again.read("first") == every_event()
                assert await again.read("second") == numbered(3)
                assert await again.loops() == ["second", "first"]
                await _refused(JournalConflict, again.append("second", numbered(1), 0))
                assert await again.append("second", numbered(1, 3), 3) == 4
                assert await again.read("second") == numbered(4)
            finally:
                await self.close_journal(again)

    async def test_what_a_later_release_wrote_is_left_to_it(self) -> None:
        """It is refused by name, as nothing else is: no damage, and no other loop's fault."""
        async with self.journal() as journal:
            for number, event in enumerate(from_a_later_release()):
                loop, beside = f"loop {number}", f"beside {number}"
                await journal.append(beside, numbered(1), 0)
                await journal.append(loop, numbered(2), 0)
                assert await journal.append(loop, [event], 2) == 3
                again = await self.reopen(journal)
                if again is None:
                    raise SkipTest("this journal does not outlive its process: one release writes to it")
                try:
                    for start in range(3):
                        await _refused(JournalTooNew, again.read(loop, start))
                    assert await again.sizes([loop, beside]) == [3, 1]
                    assert (await again.loops())[:2] == [loop, beside]
                    assert await self._soon(asyncio.ensure_future(again.wait(loop, 2))) is True
                    assert await again.read(beside) == numbered(1)
                    await _refused(JournalConflict, again.append(loop, numbered(1), 2))
                finally:
                    await self.close_journal(again)

    async def _soon(self, work: asyncio.Future[T]) -> T:
        return await asyncio.wait_for(work, self.patience)

    async def _settled(self, journal: Journal) -> None:
        """Let tasks that were started come to the point where they wait."""
        for _ in range(5):
            await journal.read("loop")
            await asyncio.sleep(0)


async def _refused(kind: type[E], work: Coroutine[Any, Any, object]) -> E:
    try:
        result = await work
    except kind as error:
        return error
    raise AssertionError(f"expected {kind.__name__}, and it returned {result!r}")
