"""Metered engines: the engine's own in all they do, and each answer is heard of once."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from flyball import CostTracker, Message, ModelPricing, Request, Role, Text, Usage, user
from flyball.core.errors import EngineError
from flyball.inference.engine import Engine
from flyball.inference.model_string import parse_model
from flyball.inference.profile import profile_for
from flyball.inference.rendered import Prompt, Renders
from flyball.observe.metering import MeteredEngine, metered, unmetered
from flyball.testing import ScriptedEngine
from flyball.testing.conformance import EngineConformance

ASK = Request((user("hi"),))


def answer(tokens: int = 3) -> Message:
    return Message(Role.ASSISTANT, (Text("hello there"),), usage=Usage(tokens, 1), model="m")


def tracker() -> CostTracker:
    return CostTracker({"m": ModelPricing(1, 0), "test": ModelPricing(1, 0)})


class TestMeteredConformance(EngineConformance):
    def make_engine(self) -> Engine:
        return metered(ScriptedEngine(*["hello there"] * 99, chunk=3), (tracker(),), "test")


async def test_an_answer_is_heard_of_once_whole_or_in_pieces() -> None:
    first, second = tracker(), tracker()
    engine = metered(ScriptedEngine(answer(3), answer(4), chunk=2), (first, second), "test")
    await engine.infer(ASK)
    assert first.total_cost == second.total_cost == Decimal(3)
    assert [piece async for piece in engine.stream(ASK)]
    assert first.total_cost == second.total_cost == Decimal(7)


async def test_a_stream_that_is_left_used_nobody_knows_how_much() -> None:
    counted = tracker()
    pieces: Any = metered(ScriptedEngine(answer(), chunk=2), (counted,), "test").stream(ASK)
    await anext(pieces)
    await pieces.aclose()
    assert counted.total_cost is None


async def test_a_failure_passes_and_costs_nothing_that_is_known() -> None:
    counted = tracker()
    engine = metered(ScriptedEngine(EngineError("no")), (counted,), "test")
    with pytest.raises(EngineError, match="no"):
        await engine.infer(ASK)
    assert counted.cost_breakdown() == {}


async def test_what_is_no_result_is_passed_on_for_others_to_complain() -> None:
    class Odd(ScriptedEngine):
        async def infer(self, request: Request) -> Any:
            return "text"

    assert await metered(Odd(), (tracker(),), "test").infer(ASK) == "text"


async def test_what_an_engine_can_it_still_can() -> None:
    class Closing(ScriptedEngine):
        profile = profile_for(parse_model("openai:gpt-5"))
        closed = False

        async def aclose(self) -> None:
            self.closed = True

        def rendered(self, request: Request, answer: Message | None) -> tuple[Prompt, ...]:
            return (Prompt("all of it", ()),)

    inner = Closing("hi", name="m")
    engine = metered(inner, (tracker(),), "m")
    assert isinstance(engine, MeteredEngine)
    assert engine.profile is inner.profile
    assert engine.model_info() == inner.model_info()
    assert isinstance(engine, Renders)
    assert engine.rendered(ASK, None)[0].about == "all of it"
    await engine.aclose()
    assert inner.closed
    plain = metered(ScriptedEngine("hi"), (tracker(),), "m")
    assert not isinstance(plain, Renders)
    assert isinstance(plain, MeteredEngine)
    await plain.aclose()


def test_without_a_tracker_an_engine_stays_itself_and_none_is_metered_twice() -> None:
    inner, one = ScriptedEngine("hi"), tracker()
    assert metered(inner, (), "m") is inner
    assert unmetered(inner) is inner
    once = metered(inner, (one,), "m")
    assert unmetered(metered(once, (one,), "m")) is inner
    assert metered(once, (), "m") is inner
