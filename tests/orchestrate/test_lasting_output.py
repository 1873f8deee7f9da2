"""An output that a user's function gave is the same for who gets it and for who reads it from the journal."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest
from pydantic import BaseModel, Field, SecretStr, field_validator

from flyball import Agent, MemoryJournal, ModelRetry, SQLiteJournal, TextOutput
from flyball.core.errors import UserError
from flyball.inference.answers import tool_call
from flyball.inference.scripted import ScriptedEngine


class ReadByAlias(BaseModel):
    name: str = Field(validation_alias="n")


class WrittenByAlias(BaseModel):
    name: str = Field(serialization_alias="sn")


class Numbered(BaseModel):
    name: str
    id: UUID = Field(default_factory=uuid4)


class Plain(BaseModel):
    name: str
    people: int = 0


class Excluding(BaseModel):
    name: str
    score: int = Field(default=0, exclude=True)


class Hiding(BaseModel):
    name: SecretStr


class Titled(BaseModel):
    name: str

    @field_validator("name")
    @classmethod
    def with_title(cls, name: str) -> str:
        return f"Dr {name}"


class Cat(BaseModel):
    age: int


class Dog(BaseModel):
    age: int


def renamed(_: Any, output: Any) -> Any:
    return output.model_copy(update={"name": "B"})


def kept(_: Any, output: Any) -> Any:
    return output


def broken(_: Any, text: Any) -> Any:
    return f"{text}\udce9"


def hidden(_: Any, __: Any) -> Any:
    return Hiding(name=SecretStr("b"))


def titled(_: Any, __: Any) -> Any:
    return Titled(name="B")


def wrong(_: Any, output: Any) -> Any:
    return output.model_copy(update={"people": "many"})


def a_dog(_: Any, __: Any) -> Any:
    return Dog(age=2)


def unsaid(text: str):
    return Plain(name=text)


def answer(**arguments: Any) -> Any:
    return tool_call("final_result", arguments)


@pytest.mark.parametrize(
    ("kind", "said", "validator"),
    [
        (ReadByAlias, answer(n="a"), renamed),
        (WrittenByAlias, answer(name="a"), renamed),
        (Numbered, answer(name="a"), kept),
        (str, "a", broken),
    ],
    ids=["read by alias", "written by alias", "a default that is made anew", "a lone surrogate"],
)
async def test_what_a_validator_gave_is_read_back_the_same(kind: Any, said: Any, validator: Any) -> None:
    agent, journal = Agent(ScriptedEngine(said), output=kind, validators=[validator]), MemoryJournal()
    live = await agent.run("?", journal=journal, loop_id="one")
    assert (await agent.replay("one", journal)).output == live.output


@pytest.mark.parametrize(
    ("kind", "said", "validator"),
    [
        (Excluding, answer(name="a", score=7), renamed),
        (Hiding, answer(name="a"), hidden),
        (Titled, answer(name="a"), titled),
        (Plain, answer(name="a"), wrong),
        ([Cat, Dog], tool_call("final_result_Cat", {"age": 1}), a_dog),
        (TextOutput(unsaid), "a", kept),
    ],
    ids=["an excluded field", "a secret", "a validator that adds", "not valid", "a twin", "no annotation"],
)
async def test_what_would_be_another_when_read_is_refused(kind: Any, said: Any, validator: Any) -> None:
    agent = Agent(ScriptedEngine(said), output=kind, validators=[validator])
    with pytest.raises(UserError, match=r"is another when it is read from the journal|must be encodable"):
        await agent.run("?")


async def test_feedback_with_a_lone_surrogate_can_be_written(tmp_path: Any) -> None:
    def picky(_: Any, text: str) -> str:
        if text == "a":
            raise ModelRetry("not \udce9")
        return text

    engine = ScriptedEngine("a", "b")
    async with SQLiteJournal(tmp_path / "runs.db") as journal:
        result = await Agent(engine, validators=[picky]).run("?", journal=journal)
    assert result.output == "b"
    assert "not \ufffd" in str(engine.calls[1].messages[-1])


async def test_endless_feedback_is_cut() -> None:
    def picky(_: Any, text: str) -> str:
        if text == "a":
            raise ModelRetry("no" * 1_000_000)
        return text

    engine = ScriptedEngine("a", "b")
    await Agent(engine, validators=[picky]).run("?")
    assert len(str(engine.calls[1].messages[-1])) < 110_000


async def test_a_validator_that_fails_is_named() -> None:
    def clumsy(_: Any, text: str) -> str:
        raise KeyError(text)

    with pytest.raises(Exception, match="the output validator 'clumsy' failed: KeyError"):
        await Agent(ScriptedEngine("a"), validators=[clumsy]).run("?")
