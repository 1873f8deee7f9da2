"""The catalogue: finding is filtering all summaries, paging gives each loop once, nothing is read twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from flyball import Agent, AgentStep, MemoryJournal, Pipeline, send_signal
from flyball.core.errors import InvalidRequest, JournalUnreachable, LoopNotFound
from flyball.core.events import Event, Stage, StageMoved
from flyball.inference.answers import tool_call
from flyball.inference.scripted import ScriptedEngine
from flyball.orchestrate.catalogue import Catalogue, LoopQuery
from flyball.orchestrate.catalogue import catalogue as tuning
from flyball.orchestrate.catalogue.cursor import read_cursor, write_cursor
from flyball.orchestrate.catalogue.query import matcher
from flyball.orchestrate.catalogue.remembered import Remembered
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.projections.summary import summary_of
from flyball.runtime.sqlite import SQLiteJournal
from flyball.testing.bytes_journal import BytesJournal
from tests.effort import examples
from tests.orchestrate.catalogue.filled import QUERIES, all_found, begun, fill, summaries
from tests.orchestrate.journals import journals
from tests.orchestrate.test_standing import pay


@pytest.fixture(params=["memory", "bytes", "sqlite"])
async def journal(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Journal]:
    if request.param == "sqlite":
        async with SQLiteJournal(tmp_path / "runs.db", synchronous="normal") as journal:
            yield journal
    else:
        yield MemoryJournal() if request.param == "memory" else BytesJournal()


async def moved(journal: Journal, loop_id: str, stage: Stage) -> None:
    """Have a loop grow by an event."""
    (length,) = await journal.sizes([loop_id])
    await journal.append(loop_id, [StageMoved(200.0, stage)], length)


class Counted(MemoryJournal):
    """Counts the loops that are read, and how much of them."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: Counter[str] = Counter()
        self.events = 0

    async def read(self, loop_id: str, start: int = 0) -> list[Event]:
        found = await super().read(loop_id, start)
        self.reads[loop_id] += 1
        self.events += len(found)
        return found


async def test_finding_is_filtering_all_summaries(journal: Journal) -> None:
    await fill(journal)
    catalogue, every = Catalogue(journal), await summaries(journal)
    for _ in range(2):
        for query in QUERIES:
            wanted = [one for one in every if matcher(query)(one)]
            for limit in (1, 3, 200):
                found = await all_found(catalogue, replace(query, limit=limit))
                assert found == wanted, f"{query} in pages of {limit}"
    assert {one.stage for one in every} >= {"complete", "failed", "deferred", "executing", ""}
    assert [one.loop_id for one in every if matcher(LoopQuery(text="umbrella rome"))(one)] == ["rome"]


@examples(50)
@given(
    st.lists(st.sampled_from(["begin", "grow", "page"]), max_size=30), st.integers(1, 4), st.integers(0, 9)
)
def test_what_was_there_is_found_once_whatever_begins(moves: list[str], limit: int, old: int) -> None:
    async def play() -> None:
        journal = MemoryJournal()
        for n in range(old):
            await journal.append(f"old {n}", [begun(f"old {n}")], 0)
        catalogue, found, query = Catalogue(journal), list[str](), LoopQuery(limit=limit)
        page = await catalogue.find(query)
        found += [one.loop_id for one in page.loops]
        for n, move in enumerate([*moves, *["page"] * (old + 1)]):
            if move == "begin":
                await journal.append(f"new {n}", [begun(f"new {n}")], 0)
            elif move == "grow" and old:
                await moved(journal, f"old {n % old}", Stage.PLANNING)
            elif page.next:
                page = await catalogue.find(replace(query, cursor=page.next))
                found += [one.loop_id for one in page.loops]
        assert not page.next
        assert found == [f"old {n}" for n in reversed(range(old))]

    asyncio.run(play())


@examples(30)
@given(st.lists(journals(12), min_size=1, max_size=4), st.data())
def test_a_catalogue_that_knows_loops_finds_what_a_new_one_finds(
    written: list[list[Event]], data: st.DataObject
) -> None:
    async def play() -> None:
        journal = MemoryJournal()
        catalogue = Catalogue(journal)
        there = [0] * len(written)
        while any(length < len(events) for length, events in zip(there, written, strict=True)):
            n = data.draw(st.sampled_from([n for n, events in enumerate(written) if there[n] < len(events)]))
            more = data.draw(st.integers(1, len(written[n]) - there[n]))
            await journal.append(f"{n}", written[n][there[n] : there[n] + more], there[n])
            there[n] += more
            assert (await catalogue.find()).loops == (await Catalogue(journal).find()).loops
            one = await catalogue.summary(f"{n}")
            assert one == await summary_of(journal, f"{n}")

    asyncio.run(play())


async def test_what_is_over_is_read_once_and_what_grows_is_gone_on_with() -> None:
    journal = Counted()
    for n in range(3):
        await Agent(ScriptedEngine("yes")).run("go", journal=journal, loop_id=f"over {n}")
    await journal.append("open", [begun("open")], 0)
    journal.reads.clear()
    catalogue = Catalogue(journal)
    first = await catalogue.find()
    assert journal.reads == Counter({"over 0": 1, "over 1": 1, "over 2": 1, "open": 1})
    journal.reads.clear()
    assert await catalogue.find() == first
    assert not journal.reads
    await moved(journal, "open", Stage.PLANNING)
    journal.events = 0
    assert (await catalogue.find(LoopQuery(limit=1))).loops[0].stage == "planning"
    assert (journal.events, journal.reads) == (1, Counter({"open": 1})), "only what is new"


async def test_one_that_is_tried_again_is_looked_at_again() -> None:
    journal = MemoryJournal()
    catalogue = Catalogue(journal)
    agent = Agent(ScriptedEngine())
    with pytest.raises(Exception, match="script"):
        await agent.run("go", journal=journal, loop_id="loop")
    assert (await catalogue.summary("loop")).stage == "failed"
    await send_signal(journal, "loop", "retry")
    assert (await catalogue.summary("loop")).stage == "executing"


async def test_how_one_stands_that_is_not_over_is_told_as_of_now() -> None:
    """Its journal is the same; the loop under it is not."""
    journal = MemoryJournal()
    catalogue = Catalogue(journal)
    payer = Agent(ScriptedEngine(tool_call("pay", {"amount": 3}, "c1"), "done"), tools=[pay], name="payer")
    running = asyncio.create_task(Pipeline(AgentStep(payer)).run("go", journal=journal, loop_id="f"))
    stages: set[str] = set()
    while "awaiting_approval" not in stages:
        await asyncio.sleep(0)
        if await journal.sizes(["f"]) != [0]:
            stages.add((await catalogue.summary("f")).stage)
    assert stages <= {"executing", "awaiting_approval"}
    await send_signal(journal, "f", "approve")
    await running
    assert (await catalogue.summary("f")).stage == "complete"


async def test_a_call_reads_no_more_than_it_may_and_says_where_to_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tuning, "_READ", 4)
    journal = Counted()
    for n in range(10):
        await journal.append(f"{n}", [begun(f"{n}", prompt="Rome" if n == 0 else "hi")], 0)
    catalogue, query = Catalogue(journal), LoopQuery(text="rome")
    page = await catalogue.find(query)
    assert (page.loops, bool(page.next), journal.reads.total()) == ((), True, 4)
    found = await all_found(catalogue, query)
    assert [one.loop_id for one in found] == ["0"]
    monkeypatch.setattr(tuning, "_SEEN", 3)
    page = await catalogue.find(query)
    assert (page.loops, read_cursor(page.next)) == ((), "7"), "those in mind are counted, too"


async def test_the_last_page_has_no_next() -> None:
    journal = MemoryJournal()
    for n in range(4):
        await journal.append(f"{n}", [begun(f"{n}")], 0)
    catalogue = Catalogue(journal)
    page = await catalogue.find(LoopQuery(limit=2))
    assert page.next
    page = await catalogue.find(LoopQuery(limit=2, cursor=page.next))
    assert [one.loop_id for one in page.loops] == ["1", "0"]
    assert page.next == ""
    assert (await Catalogue(MemoryJournal()).find()).loops == ()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("limit", 0),
        ("limit", 201),
        ("limit", "5"),
        ("limit", True),
        ("cursor", "?"),
        ("cursor", "abc"),
        ("cursor", "é"),
        ("cursor", write_cursor("nobody")),
        ("cursor", write_cursor("loop") + "="),
        ("stage", ("asleep",)),
        ("stage", "complete"),
        ("since", float("nan")),
        ("until", "now"),
    ],
)
async def test_what_cannot_be_asked_names_its_field(field: str, value: Any) -> None:
    journal = MemoryJournal()
    await journal.append("loop", [begun("loop")], 0)
    with pytest.raises(InvalidRequest) as told:
        await Catalogue(journal).find(replace(LoopQuery(), **{field: value}))
    assert told.value.details["field"] == field
    assert field in told.value.message


@given(st.text(min_size=1))
def test_a_cursor_is_read_as_it_was_written(loop_id: str) -> None:
    cursor = write_cursor(loop_id)
    assert read_cursor(cursor) == loop_id
    assert cursor.isascii()
    assert "=" not in cursor


@given(st.text())
def test_what_is_no_cursor_is_refused(text: str) -> None:
    try:
        assert write_cursor(read_cursor(text)) == text
    except InvalidRequest:
        pass


async def test_one_loop(journal: Journal) -> None:
    await fill(journal)
    catalogue = Catalogue(journal)
    for one in await summaries(journal):
        assert await catalogue.summary(one.loop_id) == one
    for name in ("nobody", ""):
        with pytest.raises(LoopNotFound):
            await catalogue.summary(name)


async def test_what_was_removed_is_not_found(tmp_path: Path) -> None:
    async with SQLiteJournal(tmp_path / "runs.db") as journal:
        for name in ("a", "b", "c"):
            await journal.append(name, [begun(name)], 0)
        catalogue = Catalogue(journal)
        page = await catalogue.find(LoopQuery(limit=1))
        await journal.delete("b")
        assert [one.loop_id for one in (await catalogue.find()).loops] == ["c", "a"]
        await journal.delete("c")
        with pytest.raises(InvalidRequest, match="cursor"):
            await catalogue.find(LoopQuery(cursor=page.next))
        with pytest.raises(LoopNotFound):
            await catalogue.summary("b")


class Vanishing(MemoryJournal):
    """Loses a loop between a look at its size and at its events."""

    async def read(self, loop_id: str, start: int = 0) -> list[Event]:
        return [] if loop_id == "gone" else await super().read(loop_id, start)


async def test_what_is_removed_meanwhile_is_not_found() -> None:
    journal = Vanishing()
    for name in ("a", "gone", "b"):
        await journal.append(name, [begun(name)], 0)
    catalogue = Catalogue(journal)
    assert [one.loop_id for one in (await catalogue.find()).loops] == ["b", "a"]
    with pytest.raises(LoopNotFound):
        await catalogue.summary("gone")


class Failing(MemoryJournal):
    """Cannot be read for a while."""

    fails = True

    async def read(self, loop_id: str, start: int = 0) -> list[Event]:
        if self.fails:
            raise JournalUnreachable("the server does not answer")
        return await super().read(loop_id, start)


async def test_what_could_not_be_read_once_is_read_again() -> None:
    journal = Failing()
    await journal.append("a", [begun("a")], 0)
    catalogue = Catalogue(journal)
    assert (await catalogue.summary("a")).error == JournalUnreachable("").code
    journal.fails = False
    assert (await catalogue.summary("a")).stage == "executing"


async def test_two_who_look_at_once_see_the_same(journal: Journal) -> None:
    await fill(journal)
    catalogue = Catalogue(journal)
    await catalogue.find()
    await moved(journal, "begun", Stage.PLANNING)
    pages = await asyncio.gather(*[catalogue.find() for _ in range(5)])
    assert all(page == pages[0] for page in pages)


async def test_what_is_kept_in_mind_is_bounded() -> None:
    journal = Counted()
    for n in range(5):
        await Agent(ScriptedEngine("yes")).run("go", journal=journal, loop_id=f"{n}")
    catalogue = Catalogue(journal, remembered=2)
    await catalogue.find()
    journal.reads.clear()
    await catalogue.summary("0")
    await catalogue.summary("1")
    assert not journal.reads
    await catalogue.summary("4")
    assert journal.reads == Counter({"4": 1})


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 9))), st.integers(1, 4), st.integers(0, 20)
)
def test_remembered_is_never_more_than_it_may_be(
    things: Sequence[tuple[str, int]], most: int, heavy: int
) -> None:
    kept = Remembered[tuple[str, int]](most, heavy, lambda one: one[1])
    expected: dict[str, tuple[str, int]] = {}
    for one in things:
        kept.keep(one[0], one)
        expected.pop(one[0], None)
        expected[one[0]] = one
        while len(expected) > most or sum(weight for _, weight in expected.values()) > heavy:
            expected.pop(next(iter(expected)))
        assert len(kept) == len(expected)
    for name in "abcdef":
        assert kept.take(name) == expected.get(name)
    assert len(kept) == 0
