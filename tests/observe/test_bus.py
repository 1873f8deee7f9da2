"""The event bus: who hears of what, in which order, from where."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball import Agent, EventBus, RunCompletedEvent, RunStartedEvent, RuntimeEvent
from flyball.core.errors import UserError
from flyball.testing import ScriptedEngine
from tests.observe.logged import logged


class Animal:
    pass


class Owl(Animal):
    pass


async def test_by_type_in_the_order_of_subscription() -> None:
    bus, heard = EventBus(), list[str]()

    async def slowly(_: Owl) -> None:
        await asyncio.sleep(0)
        heard.append("owl, slowly")

    bus.subscribe(Owl, slowly)
    bus.subscribe(Animal, lambda _: heard.append("animal"))
    bus.subscribe(str, heard.append)
    bus.subscribe(object, lambda _: heard.append("anything"))
    await bus.publish(Owl())
    assert heard == ["owl, slowly", "animal", "anything"]
    heard.clear()
    await bus.publish("word")
    assert heard == ["word", "anything"]


async def test_who_has_unsubscribed_is_called_no_more_also_by_who_is_publishing() -> None:
    bus, heard = EventBus(), list[str]()
    ends: list[Any] = []

    def first(event: str) -> None:
        heard.append(f"first {event}")
        for end in ends:
            end()
            end()  # twice is once

    bus.subscribe(str, first)
    ends.append(bus.subscribe(str, lambda event: heard.append(f"second {event}")))
    bus.subscribe(str, lambda event: heard.append(f"third {event}"))
    await bus.publish("a")
    await bus.publish("b")
    assert heard == ["first a", "third a", "first b", "third b"]


async def test_who_subscribes_while_an_event_is_handed_out_hears_the_next() -> None:
    bus, heard = EventBus(), list[str]()

    def first(event: str) -> None:
        heard.append(event)
        if event == "a":
            bus.subscribe(str, lambda event: heard.append(f"late {event}"))

    bus.subscribe(str, first)
    await bus.publish("a")
    await bus.publish("b")
    assert heard == ["a", "b", "late b"]


async def test_a_handler_that_fails_is_logged_and_the_others_are_called() -> None:
    bus, heard = EventBus(), list[str]()

    def breaks(_: str) -> None:
        raise ValueError("oh no")

    async def breaks_later(_: str) -> None:
        await asyncio.sleep(0)
        raise ValueError("oh no, later")

    bus.subscribe(str, breaks)
    bus.subscribe(str, breaks_later)
    bus.subscribe(str, heard.append)
    with logged() as records:
        await bus.publish("a")
        bus.publish_async("b")
        await bus.flush()
    assert heard == ["a", "b"]
    assert len(records) == 4
    assert "breaks' failed when it was told str; the run goes on" in records[0].getMessage()


async def test_what_is_queued_is_handed_out_in_order_and_not_waited_for() -> None:
    bus, heard, go = EventBus(), list[int](), asyncio.Event()

    async def handler(event: int) -> None:
        await go.wait()
        heard.append(event)

    bus.subscribe(int, handler)
    for number in range(5):
        bus.publish_async(number)
    await asyncio.sleep(0)
    assert heard == []
    go.set()
    await bus.flush()
    assert heard == [0, 1, 2, 3, 4]
    await bus.flush()  # there is nothing more, and that is no reason to wait


@given(st.lists(st.integers(0, 3), max_size=8), st.integers(1, 3))
def test_the_order_of_the_queue_is_kept_whatever_handlers_do(pauses: list[int], handlers: int) -> None:
    async def main() -> None:
        bus, heard = EventBus(), [list[int]() for _ in range(handlers)]

        def handler(own: list[int]) -> Any:
            async def handle(event: tuple[int, int]) -> None:
                for _ in range(event[1]):
                    await asyncio.sleep(0)
                own.append(event[0])

            return handle

        for own in heard:
            bus.subscribe(tuple, handler(own))
        async with bus:
            for number, pause in enumerate(pauses):
                bus.publish_async((number, pause))
                if pause == 1:
                    await asyncio.sleep(0)
        assert heard == [list(range(len(pauses)))] * handlers

    asyncio.run(main())


async def test_a_handler_may_publish() -> None:
    bus, heard = EventBus(), list[str]()

    async def echo(event: str) -> None:
        heard.append(event)
        if len(event) < 3:
            bus.publish_async(event * 2)
            await bus.publish(event + "!")

    bus.subscribe(str, echo)
    bus.publish_async("a")
    await bus.flush()
    assert heard == ["a", "a!", "a!!", "aa", "aa!", "a!a!", "aaaa"]


async def test_a_handler_of_the_queue_cannot_wait_for_the_queue() -> None:
    bus = EventBus()

    async def waits(_: str) -> None:
        await bus.flush()

    bus.subscribe(str, waits)
    with logged() as records:
        bus.publish_async("a")
        await bus.flush()
    assert "it would wait for itself" in str(records[0].exc_info)


async def test_from_other_threads() -> None:
    bus, heard, where = EventBus(), list[int](), set[int]()

    def handler(event: int) -> None:
        heard.append(event)
        where.add(threading.get_ident())

    bus.subscribe(int, handler)
    bus.publish_async(-1)

    def publish(first: int) -> None:
        for number in range(first, first + 50):
            bus.publish_async(number)
        asyncio.run(bus.flush())

    await asyncio.gather(*[asyncio.to_thread(publish, first) for first in (0, 100, 200)])
    await bus.flush()
    assert sorted(heard) == [-1, *range(50), *range(100, 150), *range(200, 250)]
    for first in (0, 100, 200):
        own = [number for number in heard if first <= number < first + 50]
        assert own == sorted(own)
    assert where == {threading.get_ident()}, "in the event loop of the first who published"


def test_what_is_queued_where_no_event_loop_runs_waits_for_one() -> None:
    bus, heard = EventBus(), list[str]()
    bus.subscribe(str, heard.append)
    bus.publish_async("early")
    assert heard == []
    asyncio.run(bus.flush())
    assert heard == ["early"]
    bus.publish_async("between")  # that event loop is closed

    async def later() -> None:
        bus.publish_async("late")
        await bus.flush()

    asyncio.run(later())
    assert heard == ["early", "between", "late"]


async def test_a_closed_bus_has_handed_out_all_and_takes_nothing_more() -> None:
    heard: list[str] = []
    async with EventBus() as bus:
        bus.subscribe(str, heard.append)
        bus.publish_async("a")
    assert heard == ["a"]
    with pytest.raises(UserError, match="the event bus is closed"):
        bus.publish_async("b")
    with pytest.raises(UserError, match="the event bus is closed"):
        await bus.publish("b")
    agent = Agent(ScriptedEngine("hi"), features=[bus])
    assert (await agent.run("go")).output == "hi"


async def test_it_carries_what_happens_in_runs() -> None:
    bus, heard = EventBus(), list[RuntimeEvent]()
    end = bus.subscribe(RunStartedEvent, heard.append)
    bus.subscribe(RunCompletedEvent, heard.append)
    agents = [Agent(ScriptedEngine("hi", "hi"), features=[bus]) for _ in range(2)]
    for agent in agents:
        await agent.run("go")
    assert [event.type for event in heard] == ["run_started", "run_completed"] * 2
    end()
    await agents[0].run("go")
    assert heard[-1].type == "run_completed"
    assert len(heard) == 5


@pytest.mark.parametrize(("kind", "handler"), [("str", print), (str, "print"), (str | int, print)])
def test_what_cannot_be_subscribed(kind: Any, handler: Any) -> None:
    with pytest.raises(UserError, match="takes a type of events and a function"):
        EventBus().subscribe(kind, handler)
    assert repr(EventBus()) == "<EventBus with 0 subscriptions>"
