"""A history that is too long for a real model: less is sent, and it answers."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from pathlib import Path

import pytest

from flyball import Agent, AutoContext, ContextOverflow, ModelSettings
from flyball.core.errors import ContextExceeded
from flyball.core.events import ModelAnswered
from flyball.core.history import check_history
from flyball.core.messages import Message, assistant, user
from flyball.engines.llama_cpp import LlamaCppEngine
from flyball.models import SMALL
from flyball.orchestrate.compacted import SUMMARY
from flyball.orchestrate.machine import fold, inference_owed
from flyball.orchestrate.requests import request_parts
from flyball.orchestrate.sent import Asking

SHORT = ModelSettings(max_tokens=20, temperature=0.0)
WINDOW = 384
TALK: list[Message] = [
    message
    for number in range(8)
    for message in (
        user(f"Tell me about the number {number}, please. " * 2),
        assistant(f"The number {number} is a number like many others. " * 3),
    )
]


@pytest.fixture(scope="module")
def narrow(smollm: Path) -> Generator[LlamaCppEngine]:
    """A model that cannot take much, and is the faster for it."""
    assert smollm.exists()
    engine = LlamaCppEngine(SMALL, context=WINDOW, parallel=1)
    yield engine
    asyncio.run(engine.aclose())


async def test_what_it_can_take_is_sent_instead(narrow: LlamaCppEngine) -> None:
    with pytest.raises(ContextExceeded):
        await Agent(narrow, settings=SHORT).run("What is two?", messages=TALK)
    agent = Agent(narrow, settings=SHORT, instructions="Be brief.", features=[ContextOverflow()])
    result = await agent.run("What is two?", messages=TALK)
    events = await result.events()
    (answered,) = [event for event in events if isinstance(event, ModelAnswered)]
    before = fold(events[: events.index(answered)])
    effect = inference_owed(before)
    assert effect is not None
    sent = Asking.of(before, effect, request_parts(before.spec)).sent(answered.around)
    assert len(sent) == 2, "it said by how much it was too much: once more is enough"
    check_history(sent[-1].messages, complete=True)
    assert sent[-1].messages[-1] == user("What is two?")
    assert answered.message.usage is not None
    assert 0 < answered.message.usage.input_tokens < WINDOW
    assert len(result.messages) == len(TALK) + 3, "what was said is whole"


async def test_a_stream_is_no_different(narrow: LlamaCppEngine) -> None:
    agent = Agent(narrow, settings=SHORT, features=[ContextOverflow()])
    async with agent.run_stream("What is two?", messages=TALK) as stream:
        words = [text async for text in stream.text()]
    result = await stream.get_result()
    assert "".join(words) == result.output
    (answered,) = [event for event in await result.events() if isinstance(event, ModelAnswered)]
    assert answered.around is not None
    (compaction,) = answered.around.compactions
    assert compaction.messages_after < compaction.messages_before == len(TALK) + 1


async def test_a_real_model_sums_up(narrow: LlamaCppEngine) -> None:
    """One so small may find no end: then all goes on as it was."""
    agent = Agent(narrow, settings=SHORT, features=[AutoContext(100, 3, settings=SHORT)])
    result = await agent.run("What is two?", messages=TALK[:6])
    (summary, answer) = [event for event in await result.events() if isinstance(event, ModelAnswered)]
    assert (summary.purpose, answer.purpose) == ("compact", "turn")
    assert result.usage.requests == 2
    compaction = result.state.compaction
    assert compaction is not None
    if summary.message.finish_reason == "length":
        assert compaction.made is None
    else:
        assert compaction.made is not None
        assert compaction.made.messages[0].text.startswith(f"{SUMMARY} {summary.message.text.strip()}")
