"""What is told on a channel: all of it, or that it cannot be told; and where to go on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.errors import JournalCorrupt, JournalUnreachable
from flyball.core.events import Event
from flyball.core.forms.semstreams import UserResponse
from flyball.core.signals import SignalType
from flyball.orchestrate.beginnings import Beginnings
from flyball.orchestrate.channels import Dispatcher, signal_of
from flyball.orchestrate.channels.outbox import Outbox
from flyball.orchestrate.channels.retelling import place_of
from flyball.orchestrate.channels.telling import Telling
from flyball.orchestrate.followed import Recorded
from flyball.orchestrate.journal import MemoryJournal
from flyball.orchestrate.permissions import Policy
from flyball.orchestrate.service import Service
from tests.orchestrate.channels.test_dispatcher import ROLES, dispatching, drafting, message, until
from tests.patience import PATIENCE

# pyright: reportPrivateUsage=false


class Faulty(MemoryJournal):
    """A journal of which some reads fail."""

    def __init__(self) -> None:
        super().__init__()
        self.failures: list[Exception] = []

    async def read(self, loop_id: str, start: int = 0) -> list[Event]:
        if self.failures:
            raise self.failures.pop()
        return await super().read(loop_id, start)


@asynccontextmanager
async def outbox(journal: Faulty) -> AsyncGenerator[tuple[Dispatcher, Outbox]]:
    async with dispatching(journal) as dispatcher, asyncio.timeout(PATIENCE):
        yield dispatcher, Outbox(dispatcher.service)


async def begun(following: AsyncGenerator[UserResponse]) -> asyncio.Future[UserResponse]:
    """Somebody follows: what comes first is still to come."""
    first = asyncio.ensure_future(anext(following))
    for _ in range(10):
        await asyncio.sleep(0)
    return first


async def test_a_journal_that_is_away_for_a_moment_loses_nobody() -> None:
    journal = Faulty()
    async with outbox(journal) as (dispatcher, box), aclosing(box.follow("slack/general")) as told:
        first = await begun(told)
        for number in range(3):
            await dispatcher.take(message(f"Hello {number}", by=f"u{number}"))
        journal.failures = [JournalUnreachable("away"), JournalUnreachable("away")]
        box.stir()
        results = {(await first).content} | {(await until(told, "result")).content for _ in range(2)}
    assert {"Hello 0", "Hello 1", "Hello 2"} >= results - {""}
    assert not journal.failures


async def test_who_follows_is_told_that_a_loop_cannot_be_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def torn(_: Service, loop_id: str, after: int = 0) -> AsyncGenerator[Recorded]:
        yield Recorded(after, (await journal.read(loop_id))[0])
        raise JournalCorrupt("it is torn")

    monkeypatch.setattr(Service, "follow", torn)
    journal = Faulty()
    async with outbox(journal) as (dispatcher, box), aclosing(box.follow("slack/general")) as told:
        first = await begun(told)
        await dispatcher.take(message("book it"))
        assert (await first).type in ("prompt", "stream")
        with pytest.raises(JournalCorrupt):
            await until(told, "result")


async def test_who_come_at_once_have_loops_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looking: list[Beginnings] = []
    real = Outbox._look

    async def look(box: Outbox, beginnings: Beginnings) -> None:
        looking.append(beginnings)
        await real(box, beginnings)

    async def slowly(_: Beginnings) -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr(Outbox, "_look", look)
    monkeypatch.setattr(Beginnings, "skip", slowly)
    async with outbox(Faulty()) as (dispatcher, box):
        followers = [box.follow("slack/general") for _ in range(5)]
        firsts = [asyncio.ensure_future(anext(one)) for one in followers]
        for _ in range(20):
            await asyncio.sleep(0)
        await dispatcher.take(message("Hello"))
        box.stir()
        await asyncio.gather(*firsts)
        for one in followers:
            await one.aclose()
    assert len(looking) == 1


async def test_what_goes_wrong_under_a_loop_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not only what goes wrong with the loop itself: a prompt of one under it would be missing."""
    journal = Faulty()
    async with outbox(journal) as (dispatcher, _):
        taken = await dispatcher.take(message("Hello"))

        def broken(_: Telling, one: object) -> list[UserResponse]:
            raise ZeroDivisionError(str(one))

        monkeypatch.setattr(Telling, "take", broken)
        with pytest.raises(ZeroDivisionError):
            [one async for one in dispatcher.follow(taken.in_reply_to)]


@given(st.text() | st.from_regex(r"[a-z]{1,5}/[0-9]{1,30}(/(piece|call)/[0-9]{1,30})?"))
def test_any_text_may_be_sent_as_the_last_id(text: str) -> None:
    loop_id, number = place_of(text)
    assert number >= 0
    assert text.startswith(loop_id)


def test_an_id_says_where_to_go_on() -> None:
    assert place_of("talk-1/7") == ("talk-1", 7)
    assert place_of("talk-1/7/piece/3") == ("talk-1", 6)
    assert place_of("talk-1/7/call/0") == ("talk-1", 6)
    assert place_of("talk-1/7/answer") == ("talk-1", 7)
    assert place_of("talk-1/7/answer/0123456789ab") == ("talk-1", 6)
    assert place_of("a/b/0/piece/1") == ("a/b", 0)
    assert place_of("talk-1/" + "9" * 5000) == ("", 0)
    assert place_of("nothing") == ("", 0)


async def test_who_comes_again_is_told_of_what_ended_meanwhile_however_old_it_is() -> None:
    async with outbox(Faulty()) as (dispatcher, box):
        slow = await dispatcher.take(message("book it", by="ann"))
        async with aclosing(box.follow("slack/general")) as told:
            await until(told, "prompt")
            await dispatcher.take(message("Hello", by="cat"))
            quick = await until(told, "result")
        await dispatcher.service.signal(slow.in_reply_to, SignalType.APPROVE)
        async with aclosing(dispatcher.follow(slow.in_reply_to)) as course:
            await until(course, "result")
        async with aclosing(box.follow("slack/general", quick.response_id)) as told:
            assert (await until(told, "result")).content == "book it | booked Rome"


@pytest.mark.parametrize("alone", [False, True])
async def test_a_reviewer_who_follows_is_asked_about_anothers_answer(alone: bool) -> None:
    async with drafting(Policy(roles=ROLES), "SECRET") as dispatcher, asyncio.timeout(PATIENCE):
        box, policy = Outbox(dispatcher.service), dispatcher.service.policy
        user_id, follower = ("ben", None) if alone else ("", policy.person("ben"))
        async with aclosing(box.follow("slack/general", "", user_id, follower=follower)) as told:
            first = await begun(told)
            taken = await dispatcher.take(message("write"))
            box.stir()
            one = await first
            prompt = one if one.type == "prompt" else await until(told, "prompt")
        assert (prompt.user_id, prompt.in_reply_to) == ("ben", taken.in_reply_to)
        assert prompt.blocks[0].content == "SECRET"
        # Who comes again is asked again, under the same id: it still waits.
        async with aclosing(box.follow("slack/general", prompt.response_id, "ben")) as told:
            assert await until(told, "prompt") == prompt
        pressed = await dispatcher.take(signal_of(prompt.actions[0], prompt, "s", "ben"))
        assert pressed.type == "status"


async def test_who_may_not_approve_sees_no_prompt_of_others() -> None:
    async with drafting(Policy(roles=ROLES), "SECRET") as dispatcher, asyncio.timeout(PATIENCE):
        box, ann = Outbox(dispatcher.service), dispatcher.service.policy.person("ann")
        taken = await dispatcher.take(message("write", by="ben"))
        heard: list[UserResponse] = []
        async with aclosing(box.follow("slack/general", taken.response_id, follower=ann)) as told:
            async for one in told:
                heard.append(one)
                if "waits for somebody who may approve" in one.content:
                    await dispatcher.service.signal(taken.in_reply_to, SignalType.APPROVE)
                if one.type == "result":
                    break
        assert [one.type for one in heard if "SECRET" in str(one.write())] == ["result"]


async def test_however_many_loops_there_were_none_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flyball.orchestrate.channels.follower._PAGE", 2)
    async with outbox(Faulty()) as (dispatcher, box):
        first = await dispatcher.take(message("Hello", by="first"))
        people = [f"u{number}" for number in range(15)]
        for name in people:
            taken = await dispatcher.take(message(name, by=name))
            async with aclosing(dispatcher.follow(taken.in_reply_to)) as course:
                await until(course, "result")
        async with aclosing(box.follow("slack/general", first.response_id)) as told:
            results = [await until(told, "result") for _ in range(16)]
        assert {one.content for one in results} == {"Hello", *people}


@given(st.text(min_size=1), st.integers(1, 10**9), st.integers(0, 99))
def test_every_kind_of_id_that_is_told_says_where_to_go_on(loop_id: str, number: int, of: int) -> None:
    name = f"{loop_id}/{number}"
    if place_of(loop_id)[0]:  # an id of a loop that reads as one of a response's
        return
    assert place_of(name) == place_of(f"{name}/answer") == (loop_id, number)
    for kind in ("piece", "call", "asked"):
        assert place_of(f"{name}/{kind}/{of}") == (loop_id, number - 1)
