"""Endpoints by name: exact, alias, default, else an error."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from flyball.core.errors import MissingExtra, UnknownModel, UserError
from flyball.core.messages import user
from flyball.inference.endpoints import Endpoint, Endpoints
from flyball.inference.limiting import LimitedEngine
from flyball.inference.registry import Registry
from flyball.inference.request import Request
from flyball.inference.scripted import ScriptedEngine

REQUEST = Request((user("hello"),))
FAST, BIG = Endpoint("test:fast", 60, 4), Endpoint("test:big", max_concurrent=1)
BOTH = {"fast": FAST, "big": BIG}


@pytest.mark.parametrize(
    ("name", "default", "said"),
    [
        ("fast", "big", "fast"),
        ("big", None, "big"),
        ("writer", "fast", "big"),
        ("nobody", "fast", "fast"),
        ("nobody", "big", "big"),
    ],
)
async def test_exact_then_alias_then_default(name: str, default: str | None, said: str) -> None:
    endpoints = Endpoints(BOTH, aliases={"writer": "big"}, default=default)
    assert (await endpoints[name].infer(REQUEST)).content == said


def test_a_name_that_is_none_of_these_says_what_there_is() -> None:
    endpoints = Endpoints(BOTH, aliases={"writer": "big"})
    with pytest.raises(UnknownModel, match=r"no endpoint 'writers'.*'fast', 'big', 'writer'") as caught:
        endpoints["writers"]
    assert caught.value.details == {"providers": ["fast", "big", "writer"], "near": ["writer"]}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"aliases": {"a": "b", "b": "big"}}, "stands for the alias 'b'"),
        ({"aliases": {"a": "small"}}, "the alias 'a' stands for 'small', which is no endpoint"),
        ({"aliases": {"fast": "big"}}, "'fast' is an endpoint"),
        ({"default": "small"}, "the default is 'small', which is no endpoint; there are 'fast', 'big'"),
        ({"aliases": {"a": "big"}, "default": "a"}, "the default is 'a'"),
    ],
)
def test_what_a_name_means_can_be_seen_in_one_place(given: Mapping[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Endpoints(BOTH, **given)


async def test_all_who_name_it_share_its_limit() -> None:
    model = ScriptedEngine("one", "two", pause=asyncio.Event().wait)
    endpoints = Endpoints({"m": Endpoint(model, max_concurrent=1)}, aliases={"n": "m"}, default="m")
    assert endpoints["m"] is endpoints["n"] is endpoints["other"]
    calls = [asyncio.ensure_future(endpoints[name].infer(REQUEST)) for name in ("m", "n", "other")]
    for _ in range(10):
        await asyncio.sleep(0)
    limited = endpoints["m"]
    assert isinstance(limited, LimitedEngine)
    assert (limited.gate.inside, limited.gate.waiting, len(model.calls)) == (1, 2, 1)
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)


def test_an_engine_is_made_when_it_is_asked_for() -> None:
    endpoints = Endpoints(
        {"here": FAST, "away": Endpoint("openai:gpt-5")}, registry=Registry(installed=False)
    )
    assert endpoints["here"].model_info().provider == "test"
    with pytest.raises(MissingExtra):
        endpoints["away"]


def test_limits_are_looked_at_at_once() -> None:
    with pytest.raises(UserError, match="max_concurrent=0"):
        Endpoint("test", max_concurrent=0)
