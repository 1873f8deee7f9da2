"""Who comes back to a channel is told what came after: once, the oldest first, the same each time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import cache
from itertools import accumulate
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball import Agent
from flyball.core.errors import InvalidRequest
from flyball.core.events import Ended, Event
from flyball.core.forms.semstreams import UserResponse
from flyball.inference.answers import tool_call_answer
from flyball.inference.request import Request
from flyball.inference.scripted import FunctionEngine
from flyball.orchestrate.channels import Dispatcher, signal_of
from flyball.orchestrate.channels.audience import no_roles
from flyball.orchestrate.channels.follower import Follower, Told
from flyball.orchestrate.channels.outbox import Outbox
from flyball.orchestrate.channels.retelling import Place, comes_back_to
from flyball.orchestrate.journal import MemoryJournal
from flyball.orchestrate.local import LocalRuntime
from flyball.orchestrate.permissions import Policy
from flyball.orchestrate.service import Service
from tests.effort import examples
from tests.orchestrate.channels.test_dispatcher import ROLES, agents, dispatching, message, say, until
from tests.patience import PATIENCE

CHANNEL = "slack/general"
_decoder = msgspec.json.Decoder(list[Event])


async def delegate(request: Request) -> Any:
    """Have another agent book."""
    results = [result.text for message in request.messages for result in message.tool_results]
    return results[0] if results else tool_call_answer("clerk", {"prompt": "book it"})


@cache
def courses() -> tuple[dict[str, list[Event]], ...]:
    """Journals as there are, each with those of the loops under it."""
    return asyncio.run(_courses())


async def _courses() -> tuple[dict[str, list[Event]], ...]:
    made: list[dict[str, list[Event]]] = []
    for said in ("Hello", "fail", "book it", "delegate"):
        journal = MemoryJournal()
        async with LocalRuntime(journal) as runtime:
            clerk = agents()[0]
            boss = Agent(FunctionEngine(delegate), name="boss", tools=[clerk.as_tool()])
            service = Service([clerk, boss], runtime, policy=Policy(roles=ROLES))
            dispatcher = Dispatcher(service)
            agent = {"agent": "boss"} if said == "delegate" else None
            taken = await dispatcher.take(message(said, metadata=agent))
            if "book" in said or agent:
                async with aclosing(dispatcher.follow(taken.in_reply_to)) as course:
                    prompt = await until(course, "prompt")
                    await dispatcher.take(signal_of(prompt.actions[0], prompt, "s", "ben"))
                    await until(course, "result")
            else:
                [one async for one in dispatcher.follow(taken.in_reply_to)]
            await service.aclose()
        names = (await journal.loops("", 10))[::-1]
        made.append({name: await journal.read(name) for name in names})
    return tuple(made)


class World(msgspec.Struct):
    """A journal with loops on one channel."""

    journal: MemoryJournal
    over: set[str]
    """The loops that are over, with those under them."""
    first: str


_times = st.integers(0, 6).map(float)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Any list of journals, at any times; some break off in the middle."""
    journal, over, names = MemoryJournal(), set[str](), list[str]()
    for number in range(draw(st.integers(1, 5))):
        course = draw(st.sampled_from(courses()))
        whole = draw(st.booleans()) or len(course) > 1  # of one of several, not all have come as far
        for below, recorded in enumerate(course.values()):
            text = msgspec.json.encode(recorded).decode()
            for which, old in reversed(list(enumerate(course))):  # a child's id begins with it
                text = text.replace(old, f"loop{number}-{which}")
            events = _decoder.decode(text)
            kept = events if whole else events[: draw(st.integers(1, len(events)))]
            at = draw(st.lists(_times, min_size=len(kept), max_size=len(kept)))
            dated = [msgspec.structs.replace(event, at=when) for event, when in zip(kept, at, strict=True)]
            journal.put(f"loop{number}-{below}", dated, 0)
            names.append(f"loop{number}-{below}")
            if isinstance(dated[-1], Ended) and below == 0:
                over |= {f"loop{number}-{which}" for which in range(len(course))}
    return World(journal, over, draw(st.sampled_from(names)))


@asynccontextmanager
async def serving(world: World) -> AsyncGenerator[Service]:
    async with LocalRuntime(world.journal) as runtime:
        service = Service(agents(), runtime, policy=Policy(roles=ROLES))
        yield service
        await service.aclose()


async def caught_up(service: Service, last: str) -> list[Told]:
    """What somebody is told at once who comes back."""
    here = Follower(service, CHANNEL, "", no_roles, None)
    try:
        return [one async for one in here.caught_up(last)]
    finally:
        await here.aclose()


def loop_of(response: UserResponse) -> str:
    return response.response_id.split("/")[0]


def finished(world: World, told: Sequence[Told]) -> list[UserResponse]:
    return [one.response for one in told if loop_of(one.response) in world.over]


@examples(of_a_hundred=60)
@given(worlds())
async def test_whoever_comes_back_wherever_is_told_the_rest_once_and_in_order(world: World) -> None:
    async with serving(world) as service:
        whole = await caught_up(service, f"{world.first}/0")
        known = [one.response.response_id for one in whole]
        assert len(set(known)) == len(known)
        places = [_place(one.response) for one in whole]
        assert places == sorted(places), "the oldest first"
        rest = finished(world, whole)
        for number, one in enumerate(whole):
            again = await caught_up(service, one.response.response_id)
            if one.is_place:
                left = whole[number + 1 :]
                assert finished(world, again) == finished(world, left)
                assert [two for two in again if two.is_place] == [two for two in left if two.is_place]
            assert {loop_of(two.response) for two in again} >= {
                loop_of(two.response) for two in whole if loop_of(two.response) not in world.over
            }, "what is not over is told again"
        # One who loses the connection after each response, and remembers the ids alone that were given.
        last, heard = f"{world.first}/0", list[UserResponse]()
        while True:
            told = await caught_up(service, last)
            place = next((number for number, one in enumerate(told) if one.is_place), None)
            if place is None:
                break
            heard += finished(world, told[: place + 1])
            last = told[place].response.response_id
        assert heard == rest, "each once, and it comes to an end"


def _place(response: UserResponse) -> Place:
    place = comes_back_to(response)
    assert place is not None
    return place


@given(st.lists(_times, min_size=1))
def test_no_event_is_told_to_be_before_one_that_it_follows(times: list[float]) -> None:
    """Whatever the clocks say of those who recorded them."""
    course = courses()[2]
    (name,), (events,) = course, course.values()
    journal = MemoryJournal()
    at = [times[number % len(times)] for number in range(len(events))]
    dated = [msgspec.structs.replace(event, at=when) for event, when in zip(events, at, strict=True)]
    journal.put(name, dated, 0)

    async def told() -> list[Told]:
        async with serving(World(journal, {name}, name)) as service:
            return await caught_up(service, f"{name}/0")

    latest = list(accumulate(at, max))
    for one in asyncio.run(told()):
        assert one.response.timestamp == latest[_place(one.response).number - 1]


async def test_several_that_are_over_are_told_the_oldest_first_and_are_past() -> None:
    async with dispatching(MemoryJournal()) as dispatcher, asyncio.timeout(PATIENCE):
        begun = await dispatcher.take(message("one"))
        [one async for one in dispatcher.follow(begun.in_reply_to)]
        for content in ("two", "three", "four"):
            await say(dispatcher, content)
        told = [one.response for one in await caught_up(dispatcher.service, begun.response_id)]
        assert [one.content for one in told] == [
            "one",
            "one | two",
            "one | two | three",
            "one | two | three | four",
        ]
        for number, one in enumerate(told, 1):
            again = await caught_up(dispatcher.service, one.response_id)
            assert [two.response for two in again] == told[number:]


async def test_a_loop_whose_end_is_not_recorded_yet_is_followed_to_it() -> None:
    """Though its outcome is decided: it is told of as soon as it is."""
    ((name, events),) = courses()[0].items()
    events = [msgspec.structs.replace(event, at=time.time()) for event in events]
    journal = MemoryJournal()
    journal.put(name, events[:-1], 0)
    async with dispatching(journal) as dispatcher, asyncio.timeout(PATIENCE):
        later = await say(dispatcher, "Good day", by="cat")
        for last in ("", later.response_id):
            assert await caught_up(dispatcher.service, last) == []
        box = Outbox(dispatcher.service)
        async with (
            aclosing(box.follow(CHANNEL)) as one,
            aclosing(box.follow(CHANNEL, later.response_id)) as two,
        ):
            coming = [asyncio.ensure_future(anext(told)) for told in (one, two)]
            await asyncio.sleep(0)
            await journal.append(name, events[-1:], len(events) - 1)
            assert [(await told).content for told in coming] == ["Hello", "Hello"]
        assert await caught_up(dispatcher.service, "") == []


async def test_of_a_loop_that_is_not_over_what_was_told_is_no_place_to_come_back_to() -> None:
    async with dispatching(MemoryJournal()) as dispatcher, asyncio.timeout(PATIENCE):
        slow = await dispatcher.take(message("book it"))
        async with aclosing(dispatcher.follow(slow.in_reply_to)) as course:
            prompt = await until(course, "prompt")
            quick = await say(dispatcher, "Hello", by="cat")
            again = await caught_up(dispatcher.service, quick.response_id)
            assert again == [Told(prompt, is_place=False)]
            box = Outbox(dispatcher.service)
            async with aclosing(box.follow_from(CHANNEL, quick.response_id)) as told:
                assert await anext(told) == again[0]
                await dispatcher.take(signal_of(prompt.actions[0], prompt, "s", "ben"))
                live = [one async for one in _till_the_end(told)]
            names = [one.response.response_id for one in live]
            assert prompt.response_id not in names, "it was told once"
            assert live[-1].is_place
            assert not any(one.is_place for one in live if one.response.type == "stream")
            assert await caught_up(dispatcher.service, live[-1].response.response_id) == []


async def _till_the_end(told: AsyncGenerator[Told]) -> AsyncGenerator[Told]:
    async for one in told:
        yield one
        if one.response.type == "result":
            return


@pytest.mark.parametrize("last", ["bogus", "nowhere/3", "m1/taken", "/", "0", "\0/1"])
async def test_an_id_of_nothing_is_answered_as_such(last: str) -> None:
    async with dispatching(MemoryJournal()) as dispatcher:
        box = Outbox(dispatcher.service)
        with pytest.raises(InvalidRequest, match="no response on this channel"):
            await box.check(CHANNEL, last)
        with pytest.raises(InvalidRequest):
            await anext(box.follow(CHANNEL, last))


async def test_an_id_of_another_channel_is_none_here() -> None:
    async with dispatching(MemoryJournal()) as dispatcher:
        result = await say(dispatcher, "Hello", channel_id="other")
        box = Outbox(dispatcher.service)
        await box.check("slack/other", result.response_id)
        with pytest.raises(InvalidRequest):
            await box.check(CHANNEL, result.response_id)
