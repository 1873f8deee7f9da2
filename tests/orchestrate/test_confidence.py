"""How sure one may be of an answer: by its rules, or by what was looked up for it; a vote says so itself."""

from __future__ import annotations

from typing import Any

import pytest

from flyball import (
    Agent,
    Chunk,
    ContextBuilder,
    InMemoryRetriever,
    Knowledge,
    MemoryJournal,
    ModelRetry,
    ModelSemanticValidator,
    Rule,
    RuleValidator,
    RunContext,
    StaticKnowledgeBase,
    System,
    SystemRequest,
    SystemResponse,
    tool,
    user,
)
from flyball.context.confidence import mean_score
from flyball.core.errors import EngineError
from flyball.core.events import Admitted, TurnPrepared
from flyball.inference.answers import tool_call as call
from flyball.inference.request import ModelInfo
from flyball.inference.scripted import FunctionEngine, ScriptedEngine
from flyball.orchestrate.contracts import Mode, OutputContract
from flyball.testing.split import SplitDriver
from tests.orchestrate.models import Script

X = '{"a":"x"}'
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
LIBRARY = InMemoryRetriever(
    [Chunk("The library closes at nine.", "town.md"), Chunk("Cats sleep.", "cats.md")]
)
ASKED = "When does the old library closes?"
RULES = RuleValidator(
    [
        Rule("short", lambda said: len(said) < 9),
        Rule("low", str.islower),
        Rule("a", lambda said: "a" in said),
        Rule("unchecked"),
    ]
)


def asking(text: str = ASKED, **options: Any) -> SystemRequest:
    return SystemRequest(messages=(user(text),), **options)


def sure(response: SystemResponse) -> tuple[float | None, str]:
    return response.confidence, response.confidence_source


async def test_a_plain_chat_says_nothing_of_it() -> None:
    assert sure(await System(Script("At nine.")).handle(asking())) == (None, "")


@pytest.mark.parametrize("when", ["turn", "run"])
async def test_by_what_was_looked_up(when: Any) -> None:
    knowledge = Knowledge(ContextBuilder(LIBRARY), when=when)
    journal = MemoryJournal()
    system = System(Script("At nine."), features=[knowledge], journal=journal)
    response = await system.handle(asking())
    assert sure(response) == (pytest.approx(2 / 3), "retrieval"), "old, library, closes: two of three"
    assert await system.replay(response.loop_id) == response
    kind = TurnPrepared if when == "turn" else Admitted
    (event,) = [event for event in await journal.read(response.loop_id) if isinstance(event, kind)]
    assert event.relevance == response.confidence
    assert sure(await system.handle(asking("Is tea served?"))) == (0.0, "retrieval"), "nothing was found"


async def test_the_best_of_several_counts() -> None:
    features = [
        Knowledge(ContextBuilder(InMemoryRetriever([Chunk(f"{words}", "x")])), name=words)
        for words in ("old library", "library")
    ]
    response = await System(Script("At nine."), features=features).handle(asking())
    assert sure(response) == (pytest.approx(2 / 3), "retrieval")


async def test_who_does_not_say_is_not_asked() -> None:
    plain = Knowledge(StaticKnowledgeBase("The library closes at nine."))
    assert sure(await System(Script("At nine."), features=[plain]).handle(asking())) == (None, "")

    def gone(query: str) -> Any:
        raise OSError("gone")

    broken = ContextBuilder(LIBRARY)
    broken.build = gone  # pyright: ignore[reportAttributeAccessIssue]
    degraded = Knowledge(broken, on_error="degrade")
    assert sure(await System(Script("At nine."), features=[degraded]).handle(asking())) == (None, "")


async def test_elsewhere_it_is_the_same() -> None:
    agent = Agent(Script("At nine."), features=[Knowledge(ContextBuilder(LIBRARY))])
    response = await System(agent, runtime=SplitDriver(seed=3)).handle(asking())
    assert sure(response) == (pytest.approx(2 / 3), "retrieval")


async def test_by_the_rules_that_hold() -> None:
    knowledge = Knowledge(ContextBuilder(LIBRARY))
    system = System(Script("at nine"), validators=[RULES], features=[knowledge])
    assert sure(await system.handle(asking())) == (1.0, "validation"), "before what was looked up"
    failed = await System(Script("Far too long"), validators=[RULES], retries=0).handle(asking())
    assert failed.error is not None
    assert failed.error.details is not None
    assert failed.error.details["asked"] == 3, "one has no check"
    assert sure(failed) == (pytest.approx(1 / 3), "validation")


async def test_who_has_no_rules_holds_none() -> None:
    def never(ctx: RunContext[Any], output: str) -> str:
        raise ModelRetry("no")

    response = await System(Script("one", "two"), validators=[never]).handle(asking())
    assert sure(response) == (0.0, "validation")


async def test_what_failed_for_another_reason_has_none() -> None:
    knowledge = Knowledge(ContextBuilder(LIBRARY))
    system = System(Script(EngineError("gone")), validators=[RULES], features=[knowledge])
    assert sure(await system.handle(asking())) == (None, "")


async def test_in_two_phases_it_is_that_of_the_one_that_has_it() -> None:
    @tool
    async def look() -> str:
        """Look."""
        return "seen"

    async def answer(request: Any) -> Any:
        if request.output is not None:
            return X
        return "It is so." if len(request.messages) > 2 else call("look")

    engine = FunctionEngine(answer, info=ModelInfo("two", provider="test"))
    agent = Agent(engine, tools=[look], features=[Knowledge(ContextBuilder(LIBRARY))])
    response = await System(agent).handle(asking(mode=Mode.STRUCTURED, output=OutputContract(SCHEMA)))
    assert sure(response) == (pytest.approx(2 / 3), "retrieval")


async def test_a_vote_and_a_plan_have_their_own_or_none() -> None:
    def fine(ctx: RunContext[Any], output: Any) -> Any:
        return output

    system = System(Script(X), validators=[fine])
    voted = await system.handle(asking(mode=Mode.REDUNDANT, output=OutputContract(SCHEMA)))
    assert sure(voted) == (1.0, "voting")
    plan = {"steps": [{"name": "say", "type": "infer", "input": "Say."}]}
    assert sure(await system.handle(asking(mode=Mode.PLAN, plan=plan))) == (None, "")


async def test_scores_that_are_no_numbers_say_nothing_for_what_was_found() -> None:
    nan = float("nan")
    assert mean_score([Chunk("a", "a.md", nan)]) == 0.0
    builder = ContextBuilder(LIBRARY, relevance=lambda query, chunks: nan)
    response = await System(Agent(Script("At nine."), features=[Knowledge(builder)])).handle(asking())
    assert sure(response) == (0.0, "retrieval")


async def test_a_judge_without_a_verdict_is_not_the_answers_fault() -> None:
    judge = ModelSemanticValidator(ScriptedEngine("hm", "hm"))
    response = await System(Agent(ScriptedEngine("nine"), validators=[judge])).handle(asking())
    assert response.error is not None
    assert (response.error.code, sure(response)) == ("INFERENCE_MALFORMED_RESPONSE", (None, ""))
