"""What a loop records can be read back; what could not be is refused before anything is written."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from flyball import (
    Agent,
    FinishReason,
    Image,
    Limits,
    Message,
    ModelInfo,
    ModelSettings,
    Request,
    Result,
    Role,
    Text,
    Usage,
    user,
)
from flyball.core.errors import EngineError, UserError
from flyball.core.events import ModelAnswered
from flyball.inference.stream import StreamEvent
from flyball.testing import BytesJournal, ScriptedEngine

ANSWER = Text("hello")


class Given:
    """An engine that gives one message, whatever it is."""

    def __init__(self, message: Message) -> None:
        self.message = message

    async def infer(self, request: Request) -> Result:
        return Result(self.message)

    async def stream(self, request: Request) -> AsyncIterator[StreamEvent]:
        raise NotImplementedError
        yield

    def model_info(self) -> ModelInfo:
        return ModelInfo("given")


def first_key(value: Any) -> str | None:
    return next(iter(cast("dict[str, Any]", value))) if isinstance(value, dict) else None


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"name": 3}, r"\$\.agent"),
        ({"retries": 1.5}, "retries"),
        ({"retries": "3"}, "retries"),
        ({"limits": Limits(max_iterations=2.5)}, "max_iterations"),  # pyright: ignore[reportArgumentType]
        ({"limits": Limits(timeout=float("inf"))}, "timeout"),
        ({"settings": ModelSettings(temperature="hot")}, "temperature"),  # pyright: ignore[reportArgumentType]
        ({"settings": {"temperature": 1}}, "settings"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": None}, "tools="),
        ({"tools": 3}, "tools="),
        ({"validators": print}, "validators="),
        ({"deliveries": 3}, "deliveries="),
        ({"approval": "yes"}, "approval="),
        ({"instructions": 3}, "instructions="),
    ],
    ids=first_key,
)
async def test_an_agent_that_could_not_be_recorded_is_refused(options: dict[str, Any], told: str) -> None:
    journal = BytesJournal()
    with pytest.raises(UserError, match=told):
        await Agent(ScriptedEngine("hello"), **options).run("hi", journal=journal, loop_id="l")
    assert await journal.loops() == []


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"metadata": [1]}, "metadata="),
        ({"metadata": {"a": object()}}, "metadata"),
        ({"correlation": "x"}, "correlation="),
        ({"journal": "runs.db"}, "journal= takes a journal"),
        ({"limits": {}}, "limits="),
        ({"usage_limits": {}}, "usage_limits="),
        ({"settings": {}}, "settings="),
        ({"timeout": "3"}, "time-out"),
        ({"timeout": float("nan")}, "time-out"),
        ({"jurnal": None}, "did you mean 'journal'"),
        ({"messages": [Message(Role.USER, (Text(3),))]}, "history"),  # pyright: ignore[reportArgumentType]
    ],
    ids=first_key,
)
async def test_a_run_that_could_not_be_recorded_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=told):
        await Agent(ScriptedEngine("hello")).run("hi", **options)


async def test_a_prompt_of_parts_is_looked_at_too() -> None:
    with pytest.raises(UserError, match="prompt"):
        await Agent(ScriptedEngine("hello")).run([Image(3)])  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "message",
    [
        Message(Role.ASSISTANT, (ANSWER,), finish_reason="bogus"),  # pyright: ignore[reportArgumentType]
        Message(Role.ASSISTANT, (ANSWER,), model=3),  # pyright: ignore[reportArgumentType]
        Message(Role.ASSISTANT, (ANSWER,), usage=3),  # pyright: ignore[reportArgumentType]
        Message(Role.ASSISTANT, (ANSWER,), usage=Usage(1.5)),  # pyright: ignore[reportArgumentType]
        Message(Role.ASSISTANT, (ANSWER,), extra={"a": object()}),
    ],
    ids=["reason", "model", "usage", "counts", "extra"],
)
async def test_what_an_engine_says_around_its_answer_is_left_out_if_it_cannot_be_read(
    message: Message,
) -> None:
    result = await Agent(Given(message)).run("hi", journal=BytesJournal())
    assert result.output == "hello"
    answered = [event for event in await result.events() if isinstance(event, ModelAnswered)]
    assert len(answered[0].notes) == 1
    assert "left out" in answered[0].notes[0]


async def test_a_finish_reason_as_text_is_taken_for_what_it_says() -> None:
    message = Message(Role.ASSISTANT, (ANSWER,), finish_reason="stop")  # pyright: ignore[reportArgumentType]
    result = await Agent(Given(message)).run("hi", journal=BytesJournal())
    assert result.messages[-1].finish_reason is FinishReason.STOP


async def test_counts_that_cannot_be_added_are_the_engines_failure() -> None:
    message = Message(Role.ASSISTANT, (ANSWER,), usage=Usage("many"))  # pyright: ignore[reportArgumentType]
    with pytest.raises(EngineError):
        await Agent(Given(message)).run("hi", journal=BytesJournal())


async def test_a_loop_with_details_in_its_usage_is_recorded_whole() -> None:
    message = Message(Role.ASSISTANT, (ANSWER,), usage=Usage(1, 2, details={"audio": 3}))
    journal = BytesJournal()
    result = await Agent(Given(message)).run(
        [Text("hi"), Image("https://example.org/a.png")], journal=journal
    )
    assert result.usage.details == {"audio": 3}
    assert (await result.events())[0] == (await journal.read(result.loop_id))[0]
    assert user("hi").text == "hi"
