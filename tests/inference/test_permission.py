from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from flyball.core.errors import ModelRequestsForbidden, UserError
from flyball.core.messages import user
from flyball.inference.permission import (
    VARIABLE,
    allow_model_requests,
    check_model_requests_allowed,
    forbid_model_requests,
    model_requests_allowed,
)
from flyball.inference.registry import resolve_engine
from flyball.inference.request import Request
from flyball.inference.scripted import FunctionEngine, ScriptedEngine


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


def test_where_nothing_is_said_calls_are_allowed() -> None:
    assert model_requests_allowed()
    check_model_requests_allowed("openai")


@pytest.mark.parametrize(
    ("word", "allowed"), [("0", False), ("1", True), ("off", False), (" TRUE ", True), ("", True)]
)
def test_the_environment_decides(word: str, allowed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, word)
    assert model_requests_allowed() is allowed


def test_a_word_that_says_neither_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "perhaps")
    with pytest.raises(UserError, match=f"{VARIABLE} is 'perhaps': set it to 0 or 1"):
        check_model_requests_allowed("openai")


def test_the_innermost_block_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "0")
    with allow_model_requests():
        assert model_requests_allowed()
        with forbid_model_requests():
            assert not model_requests_allowed()
            with allow_model_requests():
                assert model_requests_allowed()
            assert not model_requests_allowed()
        with allow_model_requests(allowed=False):
            assert not model_requests_allowed()
        assert model_requests_allowed()
    assert not model_requests_allowed()


def test_a_block_that_raises_is_left_too() -> None:
    with pytest.raises(ZeroDivisionError), forbid_model_requests():
        raise ZeroDivisionError
    assert model_requests_allowed()


def test_the_refusal_says_what_to_do() -> None:
    with forbid_model_requests(), pytest.raises(ModelRequestsForbidden) as caught:
        check_model_requests_allowed("openai")
    message = caught.value.message
    assert "'openai'" in message
    assert "ScriptedEngine" in message
    assert "allow_model_requests()" in message
    assert f"{VARIABLE}=1" in message


async def test_tasks_take_it_with_them_and_do_not_disturb_others() -> None:
    inside = asyncio.Event()
    looked = asyncio.Event()

    async def forbidden() -> bool:
        with forbid_model_requests():
            inside.set()
            await looked.wait()
            return await asyncio.create_task(asyncio.sleep(0, model_requests_allowed()))

    task = asyncio.create_task(forbidden())
    await inside.wait()
    assert model_requests_allowed()
    looked.set()
    assert not await task


@pytest.fixture
def forbidden_by_fixture() -> Iterator[None]:
    with forbid_model_requests():
        yield


@pytest.mark.usefixtures("forbidden_by_fixture")
def test_a_fixture_may_hold_the_block() -> None:
    assert not model_requests_allowed()


@pytest.mark.usefixtures("forbidden_by_fixture")
async def test_a_fixture_may_hold_the_block_for_a_coroutine_too() -> None:
    assert not model_requests_allowed()


async def test_engines_that_answer_from_code_are_always_allowed() -> None:
    async def answer(_: Request) -> str:
        return "hi"

    request = Request((user("hello"),))
    with forbid_model_requests():
        assert (await ScriptedEngine("hi").infer(request)).content == "hi"
        assert (await FunctionEngine(answer).infer(request)).content == "hi"
        assert (await resolve_engine("test:hi").infer(request)).content == "hi"
