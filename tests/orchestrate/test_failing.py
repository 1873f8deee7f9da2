"""What a user's function failed with, as an error of the taxonomy; and what is no failure of the run."""

from __future__ import annotations

from typing import Any

import pytest

from flyball import (
    Agent,
    InputGuardrail,
    Knowledge,
    MemoryJournal,
    MessageInterceptor,
    ResponseInterceptor,
    RunCondition,
    RunContext,
    TurnGuardrail,
)
from flyball.core.errors import EngineError, LoopTakenOver, RuleFailed
from flyball.core.events import ModelAnswered, Started
from flyball.orchestrate.failing import as_rule
from tests.orchestrate.models import Script


def test_what_is_ours_stays_and_what_is_not_is_a_rule() -> None:
    ours = EngineError("gone")
    assert as_rule(ours, "a function failed") is ours
    other = as_rule(ValueError("no"), "a function failed")
    assert isinstance(other, RuleFailed)
    assert (other.message, other.retryable) == ("a function failed: ValueError: no", False)


class Over:
    """Whoever is asked first finds that another is at it; whoever is asked then may go on."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, *_: Any) -> None:
        self.asked += 1
        if self.asked == 1:
            raise LoopTakenOver("another driver has resumed it", loop_id="judge")

    async def retrieve(self, query: str) -> str:
        self()
        return "barks"

    async def store(self, content: str) -> None:
        """Keep nothing."""


def features(over: Over) -> dict[str, dict[str, Any]]:
    def validator(ctx: RunContext[Any], output: str) -> str:
        over()
        return output

    return {
        "a validator": {"validators": [validator]},
        "a prompt function": {"instructions": [lambda ctx: over() or "Be brief."]},  # pyright: ignore[reportUnknownLambdaType]
        "an input guardrail": {"features": [InputGuardrail(over)]},
        "a turn guardrail": {"features": [TurnGuardrail(over)]},
        "a message interceptor": {"features": [MessageInterceptor(over)]},
        "a response interceptor": {"features": [ResponseInterceptor(over)]},
        "a run condition": {"features": [RunCondition(over)]},
        "knowledge": {"features": [Knowledge(over)]},
    }


@pytest.mark.parametrize("kind", features(Over()))
async def test_where_somebody_else_is_at_it_nothing_is_recorded(kind: str) -> None:
    """A judge's loop that another worker has taken over: what comes of it is that one's to say."""
    over, journal = Over(), MemoryJournal()
    agent = Agent(Script("a dog"), **features(over)[kind])
    with pytest.raises(LoopTakenOver):
        await agent.run("Bark.", journal=journal, loop_id="dog")
    assert isinstance((await journal.read("dog"))[-1], Started | ModelAnswered)
    assert (await agent.resume("dog", journal)).output == "a dog"
    assert over.asked == 2
