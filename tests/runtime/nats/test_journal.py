"""The journal on JetStream, on a real server."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from flyball.core.errors import JournalConflict, JournalCorrupt, JournalUnreachable, UserError
from flyball.orchestrate.journal import Journal
from flyball.runtime.nats import Layout, NatsJournal, NatsOptions
from flyball.runtime.nats.naming import LoopSubjects, journal_stream
from flyball.testing.conformance import JournalConformance
from flyball.testing.conformance.samples import long_event, numbered
from tests.patience import PATIENCE
from tests.runtime.nats.conftest import clear


class TestNatsJournal(JournalConformance):
    @pytest.fixture(autouse=True)
    def _server(self, nats: NatsOptions) -> None:
        self._options = nats

    async def make_journal(self) -> Journal:
        async with await NatsJournal.open(self._options) as before:
            await clear(before)
        return await NatsJournal.open(self._options)

    async def reopen(self, journal: Journal) -> Journal | None:
        del journal
        return await NatsJournal.open(self._options)

    async def close_journal(self, journal: Journal) -> None:
        assert isinstance(journal, NatsJournal)
        await journal.aclose()


async def test_two_processes_see_each_others_events(nats: NatsOptions, journal: NatsJournal) -> None:
    async with await NatsJournal.open(nats) as other:
        await journal.append("loop", numbered(1), 0)
        waiting = asyncio.create_task(journal.wait("loop", 1))
        assert await other.append("loop", numbered(1, 1), 1) == 2
        assert await asyncio.wait_for(waiting, PATIENCE)
        assert await journal.read("loop", 1) == numbered(1, 1)
        # What it knows of the loop's end is old by now, and that is found out.
        await other.append("loop", numbered(1, 2), 2)
        with pytest.raises(JournalConflict) as told:
            await journal.append("loop", numbered(1, 9), 2)
        assert told.value.details["actual"] == 3


async def test_an_append_that_was_taken_and_not_answered_is_not_made_twice(
    journal: NatsJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    await journal.append("loop", numbered(1), 0)
    ask = journal.connection.request

    async def swallowed(subject: str, data: bytes, headers: dict[str, str] | None = None) -> object:
        """The first answer is lost, and the server has forgotten the id when it is asked again."""
        if headers is None:
            return await ask(subject, data)
        await ask(subject, data, headers)
        return await ask(subject, data, {**headers, "Nats-Msg-Id": f"{headers['Nats-Msg-Id']}?"})

    monkeypatch.setattr(journal.connection, "request", swallowed)
    assert await journal.append("loop", numbered(2, 1), 1) == 3
    monkeypatch.undo()
    assert await journal.read("loop") == numbered(3)


async def test_large_entries_are_kept_beside_the_stream(journal: NatsJournal) -> None:
    large = long_event(journal.connection.max_payload + 1)
    assert await journal.append("loop", [large, *numbered(1, 1)], 0) == 2
    assert await journal.append("loop", numbered(1, 2), 2) == 3
    assert (await journal.read("loop"))[0] == large
    assert await journal.read("loop", 2) == numbered(1, 2)
    assert await journal.loops() == ["loop"]
    await journal.connection.js.delete_object_store("FLYBALL_BLOBS")
    async with await NatsJournal.open(_options_of(journal)) as again:
        with pytest.raises(JournalCorrupt, match="is not in FLYBALL_BLOBS"):
            await again.read("loop")
        # What does not need it is still there.
        assert await again.read("loop", 2) == numbered(1, 2)


def _options_of(journal: NatsJournal) -> NatsOptions:
    return journal.connection.options


async def test_what_is_no_entry_is_told_with_its_place(journal: NatsJournal) -> None:
    subjects = LoopSubjects("loop", journal.partitions)
    await journal.connection.request(subjects.entry("begin"), b"{nonsense", {"Flyball-Length": "1"})
    with pytest.raises(JournalCorrupt, match=rf"{subjects.stream} \d+: not an entry"):
        await journal.read("loop")


async def test_an_entry_of_another_loop_is_told(journal: NatsJournal) -> None:
    await journal.append("loop", numbered(1), 0)
    subjects = LoopSubjects("loop", journal.partitions)
    stray = b'{"loop_id":"other","first":1,"events":[]}'
    await journal.connection.request(subjects.entry("x"), stray, {"Flyball-Length": "2"})
    with pytest.raises(JournalCorrupt, match="has event 1 of loop 'other'"):
        await journal.read("loop")


async def test_the_first_who_comes_settles_the_number_of_partitions(nats: NatsOptions) -> None:
    async with await NatsJournal.open(nats) as before:
        await clear(before)
    async with await NatsJournal.open(nats, Layout(partitions=2)) as first:
        try:
            async with await NatsJournal.open(nats, Layout(partitions=7)) as second:
                assert (first.partitions, second.partitions) == (2, 2)
                for n in range(20):
                    await second.append(f"loop-{n}", numbered(1), 0)
                assert len(await first.loops()) == 20
        finally:
            await clear(first)


async def test_streams_that_are_not_ours_are_left_alone(journal: NatsJournal, nats: NatsOptions) -> None:
    js = journal.connection.js
    await clear(journal)
    await js.add_stream(name=journal_stream(0), subjects=["orders.>"])
    with pytest.raises(UserError, match="was not made by flyball"):
        await NatsJournal.open(nats)
    await js.delete_stream(journal_stream(0))
    await js.add_stream(name="ORDERS", subjects=["fly.j.>"])
    with pytest.raises(UserError, match="does not make the stream JOURNAL_0"):
        await NatsJournal.open(nats)
    await js.delete_stream("ORDERS")


async def test_a_full_stream_refuses_and_loses_nothing(journal: NatsJournal) -> None:
    await journal.append("loop", numbered(1), 0)
    js, subjects = journal.connection.js, LoopSubjects("loop", journal.partitions)
    config = (await js.stream_info(subjects.stream)).config
    await js.update_stream(config, max_msgs=1)
    with pytest.raises(Exception, match="does not take events of loop 'loop': maximum messages"):
        await journal.append("loop", numbered(1, 1), 1)
    await js.update_stream(config, max_msgs=-1)
    assert await journal.append("loop", numbered(1, 1), 1) == 2
    assert await journal.read("loop") == numbered(2)


async def test_nobody_answers(nats: NatsOptions) -> None:
    nowhere = NatsOptions(("nats://user:secret@127.0.0.1:1",), patience=0.3)
    with pytest.raises(JournalUnreachable, match=r"nats://127\.0\.0\.1:1") as told:
        await NatsJournal.open(nowhere)
    assert "secret" not in str(told.value)


async def test_a_wrong_token_is_the_users_error(nats: NatsOptions) -> None:
    with pytest.raises(UserError, match=r"(?i)authorization"):
        await NatsJournal.open(NatsOptions(nats.servers, token="wrong", patience=PATIENCE))


async def test_files_that_are_not_there_are_named() -> None:
    with pytest.raises(UserError, match=r"'/no/such\.creds' for NATS is not there"):
        await NatsJournal.open(NatsOptions(credentials="/no/such.creds"))
    with pytest.raises(UserError, match="TLS files"):
        await NatsJournal.open(NatsOptions(tls_ca="/no/such.pem"))


@pytest.mark.parametrize(
    "values", [{"partitions": 0}, {"partitions": 2000}, {"replicas": 0}, {"replicas": 9}]
)
def test_a_layout_that_cannot_be(values: dict[str, int]) -> None:
    with pytest.raises(UserError, match=next(iter(values))):
        Layout(**values)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(("before", "looked_for"), [(3, 0), (70, 4)], ids=["short", "long"])
async def test_who_follows_a_loop_does_not_read_it_anew_each_time(
    journal: NatsJournal, monkeypatch: pytest.MonkeyPatch, before: int, looked_for: int
) -> None:
    asked: list[int] = []
    publish = journal.connection.publish

    async def counted(subject: str, data: bytes, reply: str = "") -> None:
        asked.append(msgspec.json.decode(data)["seq"])
        await publish(subject, data, reply)

    for n in range(before):
        await journal.append("loop", numbered(1, n), n)
    monkeypatch.setattr(journal.connection, "publish", counted)
    assert await journal.read("loop") == numbered(before)
    await journal.append("loop", numbered(1, before), before)
    assert await journal.read("loop", before) == numbered(1, before)
    assert await journal.read("loop", before + 1) == [], "and nobody looks for what is not there"
    await journal.append("loop", numbered(1, before + 1), before + 1)
    assert await journal.read("loop", before + 1) == numbered(1, before + 1)
    assert await journal.read("loop", 1) == numbered(before + 1, 1), "and who wants more has it"
    # A short loop's last entry says where the others are. A long one is looked for, from where it was read.
    assert len(asked) == looked_for
    if asked:
        whole, second, third, again = asked
        assert third > second > before
        assert whole == again == 1


async def test_a_loop_is_read_where_its_entries_are_and_a_long_one_is_looked_for(
    journal: NatsJournal,
) -> None:
    for n in range(80):
        await journal.append("long", numbered(1, n), n)
        if n in (0, 1, 2, 63, 64, 65, 66, 79):
            async with await NatsJournal.open(journal.connection.options) as other:
                assert await other.read("long") == numbered(n + 1)
                await other.append("long", (), n + 1)
    async with await NatsJournal.open(journal.connection.options) as other:
        assert await other.append("long", numbered(1, 80), 80) == 81
    assert await journal.read("long") == numbered(81)


async def test_a_loop_of_which_an_entry_is_gone_is_no_loop(journal: NatsJournal) -> None:
    for n in range(3):
        await journal.append("holed", numbered(1, n), n)
    stream = LoopSubjects("holed", journal.partitions).stream
    await journal.connection.js.delete_msg(
        stream, (await journal.connection.js.stream_info(stream)).state.last_seq - 1
    )
    async with await NatsJournal.open(journal.connection.options) as other:
        with pytest.raises(JournalCorrupt):
            await other.read("holed")
