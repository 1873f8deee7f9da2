"""Who gives a call up is free at once, its slot soon after, and nobody else notices."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from flyball.engines.llama_cpp import LlamaCppEngine
from flyball.inference.request import Request
from flyball.inference.stream import close_stream, collect
from tests.engines.llama_cpp.asking import LONG, ask, idle, long_prompt, until

AT_ONCE = 20
"""Turns of the event loop in which nobody can have waited for the child, however slow the machine is."""

pytestmark = pytest.mark.slow  # all of them have the small model read or write for a while


async def given_up(work: asyncio.Future[Any]) -> bool:
    """Cancel a call; whether who waited for it is free at once."""
    work.cancel()
    for _ in range(AT_ONCE):
        await asyncio.sleep(0)
    return work.cancelled()


async def asked(engine: LlamaCppEngine, calls: int) -> bool:
    await asyncio.sleep(0)
    return engine.open_calls == calls


async def busy(engine: LlamaCppEngine) -> bool:
    return await engine.busy_slots() > 0


@pytest.mark.parametrize(
    "request_",
    [ask("Tell me a story.", 1500, options=LONG), ask(long_prompt(1800, "Story"), 4)],
    ids=["while it answers", "while it reads the prompt"],
)
async def test_cancelling_frees_the_caller_at_once_and_the_slot_at_the_next_batch(
    engine: LlamaCppEngine, request_: Request
) -> None:
    await until(lambda: idle(engine))
    task = asyncio.ensure_future(engine.infer(request_))
    await until(lambda: busy(engine))
    assert await given_up(task)
    assert engine.open_calls == 0
    # Reading all of the prompt takes many batches of 128 tokens; how long one takes depends on the machine.
    begun = time.monotonic()
    await collect(engine.stream(ask(long_prompt(128, "Measure"), 1)))
    batch = time.monotonic() - begun
    assert await until(lambda: idle(engine)) < 5 * batch + 0.5


async def test_other_calls_are_not_touched(engine: LlamaCppEngine) -> None:
    await until(lambda: idle(engine))
    # Calls that share a batch round otherwise, and the model may choose other words: here it has no choice.
    text = " ".join(str(number) for number in range(40))
    kept = asyncio.ensure_future(engine.infer(ask("Count.", 200, grammar=f'root ::= "{text}"')))
    for attempt in range(3):
        dropped = asyncio.ensure_future(engine.infer(ask(long_prompt(900, f"Drop {attempt}"), 4)))
        await until(lambda: busy(engine))
        assert await given_up(dropped)
    assert (await kept).content == text


async def test_a_call_that_waits_for_a_slot_is_never_begun(engine: LlamaCppEngine) -> None:
    await until(lambda: idle(engine))
    first = [engine.stream(ask(f"Tell me about {what}.", 400, options=LONG)) for what in ("tea", "ink")]
    for stream in first:
        await anext(stream)
    waiting = asyncio.ensure_future(engine.infer(ask(long_prompt(1800, "Wait"), 4)))
    await until(lambda: asked(engine, 3))
    assert await given_up(waiting)
    for stream in first:
        await stream.aclose()
    # Had it been begun, it would hold a slot for as long as its prompt takes.
    begun = time.monotonic()
    await engine.infer(ask("Hello", 2))
    assert await until(lambda: idle(engine)) + time.monotonic() - begun < 20


async def test_a_closed_stream_gives_nothing_more(engine: LlamaCppEngine) -> None:
    stream = engine.stream(ask("Tell me a story.", 400, options=LONG))
    await anext(stream)
    closing = asyncio.ensure_future(close_stream(stream))
    for _ in range(AT_ONCE):
        await asyncio.sleep(0)
    assert closing.done()
    await closing
    assert [event async for event in stream] == []


async def test_who_waits_for_the_model_to_load_can_stop_waiting() -> None:
    engine = LlamaCppEngine("smollm2-135m", context=512, parallel=1)
    try:
        one = asyncio.ensure_future(engine.infer(ask("Hello", 2)))
        other = asyncio.ensure_future(engine.infer(ask("Good morning", 2)))
        for _ in range(5):
            await asyncio.sleep(0)
        assert await given_up(one)
        assert (await other).content
    finally:
        await engine.aclose()
