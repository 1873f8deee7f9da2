"""The journals that flyball ships keep the promises of `Journal`, and the suite notices those that do not."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar
from unittest import SkipTest

import pytest

from flyball.core.codec import decode_event, encode_event
from flyball.core.errors import JournalConflict
from flyball.core.events import Event, StageMoved
from flyball.orchestrate.journal import Journal, MemoryJournal
from flyball.runtime.sqlite import SQLiteJournal
from flyball.runtime.sqlite.schema import Synchronous
from flyball.testing.bytes_journal import BytesJournal
from flyball.testing.conformance.journal import JournalConformance


class TestMemoryJournal(JournalConformance):
    async def make_journal(self) -> Journal:
        return MemoryJournal()


class TestBytesJournal(JournalConformance):
    async def make_journal(self) -> Journal:
        return BytesJournal()


class SQLiteConformance(JournalConformance):
    synchronous: ClassVar[Synchronous]
    folder: Path

    @pytest.fixture(autouse=True)
    def use_folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    async def make_journal(self) -> Journal:
        return SQLiteJournal(self.folder / "runs.db", synchronous=self.synchronous)

    async def reopen(self, journal: Journal) -> Journal:
        return await self.make_journal()

    async def close_journal(self, journal: Journal) -> None:
        assert isinstance(journal, SQLiteJournal)
        # What a later release wrote is told, too, and is the only thing that a promise leaves here.
        assert [found for found in await journal.integrity() if not found.endswith("upgrade it")] == []
        await journal.close()


class TestSQLiteJournalFull(SQLiteConformance):
    synchronous = "full"


class TestSQLiteJournalNormal(SQLiteConformance):
    synchronous = "normal"


# Journals that break one promise each


class Careless(MemoryJournal):
    """Appends whatever is expected."""

    async def append(self, loop_id: str, events: Sequence[Event], expected: int) -> int:
        return await super().append(loop_id, events, len(await self.read(loop_id)))


class Torn(MemoryJournal):
    """Writes the events of one append one after the other."""

    async def append(self, loop_id: str, events: Sequence[Event], expected: int) -> int:
        for n, event in enumerate(events):
            await super().append(loop_id, [event], expected + n)
            await asyncio.sleep(0)
        return expected + len(events)


class Racy(MemoryJournal):
    """Looks first and writes later."""

    async def append(self, loop_id: str, events: Sequence[Event], expected: int) -> int:
        actual = len(await self.read(loop_id))
        if actual != expected:
            raise JournalConflict("no", loop_id=loop_id, expected=expected, actual=actual)
        await asyncio.sleep(0)
        return await super().append(loop_id, events, len(await self.read(loop_id)))


class Forgetful(MemoryJournal):
    """Loses what one kind of event carries."""

    async def read(self, loop_id: str, start: int = 0) -> list[Event]:
        return [event for event in await super().read(loop_id, start) if not isinstance(event, StageMoved)]


class Clipping(MemoryJournal):
    """Takes what follows a NUL for padding."""

    async def append(self, loop_id: str, events: Sequence[Event], expected: int) -> int:
        return await super().append(loop_id.split("\0", 1)[0], events, expected)


class Deaf(MemoryJournal):
    """Never wakes anybody."""

    async def wait(self, loop_id: str, length: int, timeout: float | None = None) -> bool:  # noqa: ASYNC109
        if len(await self.read(loop_id)) > length:
            return True
        return await super().wait("nobody", 1 << 60, timeout)


class Jumpy(MemoryJournal):
    """Wakes everybody at once."""

    async def wait(self, loop_id: str, length: int, timeout: float | None = None) -> bool:  # noqa: ASYNC109
        return True


class OldestFirst(MemoryJournal):
    """Lists loops in the wrong order."""

    async def loops(self, before: str = "", limit: int | None = None) -> list[str]:
        return list(reversed(await super().loops(before, limit)))


class Overlapping(MemoryJournal):
    """Gives the loop that a page is to go on from again."""

    async def loops(self, before: str = "", limit: int | None = None) -> list[str]:
        found = await super().loops(before)
        return ([before, *found] if before else found)[:limit]


class Guessing(MemoryJournal):
    """Begins at the newest where it does not know where to go on."""

    async def loops(self, before: str = "", limit: int | None = None) -> list[str]:
        return await super().loops(before if before in self._loops else "", limit)


class Counting(MemoryJournal):
    """Gives no size twice."""

    async def sizes(self, loop_ids: Sequence[str]) -> list[int]:
        return await super().sizes(list(dict.fromkeys(loop_ids)))


class Late(MemoryJournal):
    """Writes behind the back of a task that was cancelled."""

    async def append(self, loop_id: str, events: Sequence[Event], expected: int) -> int:
        async def later() -> int:
            for _ in range(3):
                await asyncio.sleep(0)
            return await MemoryJournal.append(self, loop_id, events, expected)

        return await asyncio.shield(asyncio.ensure_future(later()))


class Shared(MemoryJournal):
    """Hands out its own list."""

    def __init__(self) -> None:
        super().__init__()
        self.lists: dict[str, list[Event]] = {}

    async def read(self, loop_id: str, start: int = 0) -> list[Event]:
        found = await super().read(loop_id, start)
        return found if start else self.lists.setdefault(loop_id, found)


class Rounding(MemoryJournal):
    """Keeps times in whole seconds."""

    async def read(self, loop_id: str, start: int = 0) -> list[Event]:
        written = [
            encode_event(event).replace(b".000001", b".0") for event in await super().read(loop_id, start)
        ]
        return [decode_event(data) for data in written]


@pytest.mark.parametrize(
    ("journal", "test"),
    [
        (Careless, "test_an_append_that_expects_too_few_is_refused"),
        (Torn, "test_readers_see_whole_appends"),
        (Racy, "test_of_many_writers_one_wins_each_number"),
        (Forgetful, "test_every_event_is_read_back_equal"),
        (Rounding, "test_every_event_is_read_back_equal"),
        (Clipping, "test_odd_ids_name_loops_of_their_own"),
        (Deaf, "test_an_append_wakes_all_who_wait_for_it"),
        (Deaf, "test_a_wait_can_be_cancelled"),
        (Jumpy, "test_wait_times_out"),
        (OldestFirst, "test_loops_are_listed_newest_first"),
        (Overlapping, "test_loops_are_listed_page_by_page"),
        (Overlapping, "test_pages_stay_while_loops_begin"),
        (Overlapping, "test_odd_ids_can_be_gone_on_from"),
        (Guessing, "test_a_page_before_an_unknown_loop_is_refused"),
        (Counting, "test_sizes_of_many_loops"),
        (Late, "test_a_cancelled_append_is_decided"),
        (Shared, "test_takes_any_sequence_and_keeps_no_hold_on_it"),
    ],
)
async def test_a_broken_promise_is_noticed(journal: type[MemoryJournal], test: str) -> None:
    class Broken(JournalConformance):
        patience = 0.05

        async def make_journal(self) -> Journal:
            return journal()

    with pytest.raises((AssertionError, TimeoutError, JournalConflict)):
        await getattr(Broken(), test)()


async def test_a_journal_that_cannot_be_reopened_is_skipped() -> None:
    with pytest.raises(SkipTest, match="does not outlive"):
        await TestMemoryJournal().test_another_process_finds_everything()
