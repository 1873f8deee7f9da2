"""Semantic validation: a verdict decides, and who gives it is behind one method."""

from __future__ import annotations

from typing import Any

import pytest

from flyball import Agent, MemoryJournal, ModelSemanticValidator, SemanticCheck, SemanticValidator, Verdict
from flyball.core.errors import EngineError, SemanticFailed, UserError
from flyball.core.events import ChildEnded, ChildStarted
from flyball.core.messages import Retry
from flyball.testing import ScriptedEngine, tool_call
from flyball.testing.split import SplitDriver
from flyball.validate.semantic import verdict_of
from tests.orchestrate.models import Script
from tests.orchestrate.validation_scenarios import judged

NO = tool_call("final_result", {"reason": "It is about cats.", "valid": False})
YES = tool_call("final_result", {"reason": "It is about dogs.", "valid": True})


class AboutDogs:
    def __init__(self) -> None:
        self.asked: list[tuple[Any, str]] = []

    def validate(self, output: Any, intent: str) -> Verdict:
        self.asked.append((output, intent))
        return Verdict("dog" in output, "it should be about dogs")


class Later(AboutDogs):
    async def validate(self, output: Any, intent: str) -> Verdict:  # pyright: ignore[reportIncompatibleMethodOverride]
        return super().validate(output, intent)


@pytest.mark.parametrize("kind", [AboutDogs, Later])
async def test_an_agent_asks_again_for_what_is_not_meant(kind: type[AboutDogs]) -> None:
    judge = kind()
    assert isinstance(judge, SemanticValidator)
    model = Script("a cat", "a dog")
    result = await Agent(model, validators=[SemanticCheck(judge)]).run("Name a barking animal.")
    assert result.output == "a dog"
    assert judge.asked == [("a cat", "Name a barking animal."), ("a dog", "Name a barking animal.")]
    (told,) = model.last.messages[-1].parts
    assert isinstance(told, Retry)
    assert "not what was asked for: it should be about dogs" in told.text


async def test_in_the_end_the_run_fails_with_the_reason() -> None:
    agent = Agent(Script("a cat"), validators=[SemanticCheck(AboutDogs(), intent="dogs")], retries=0)
    with pytest.raises(SemanticFailed) as failed:
        await agent.run("go")
    assert failed.value.code == "VALIDATION_SEMANTIC_FAILED"
    assert failed.value.details == {"reason": "it should be about dogs", "intent": "dogs"}


async def test_what_is_no_verdict_and_what_is_no_validator_is_refused() -> None:
    class Odd:
        def validate(self, output: Any, intent: str) -> Any:
            return True

    with pytest.raises(UserError, match=r"gives a Verdict\(valid, reason\), not True"):
        await verdict_of(Odd(), "x", "y")
    with pytest.raises(UserError, match="takes what has validate"):
        SemanticCheck(object())  # pyright: ignore[reportArgumentType]
    with pytest.raises(UserError, match="an intent is text"):
        SemanticCheck(AboutDogs(), 3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(UserError, match="instructions are text"):
        ModelSemanticValidator(Script(), instructions="")


async def test_a_model_judges_under_a_schema() -> None:
    judge = ScriptedEngine(NO)
    verdict = await ModelSemanticValidator(judge).validate({"animal": "cat"}, "Name a dog.")
    assert verdict == Verdict(valid=False, reason="It is about cats.")
    request = judge.calls[-1]
    assert request.messages[1].text == 'What was asked for:\nName a dog.\n\nThe output:\n{"animal":"cat"}'
    assert request.settings.temperature == 0.3
    assert request.settings.thinking is False


@pytest.mark.parametrize("checks", [False, True], ids=["itself", "check"])
async def test_in_an_agent_the_judge_is_a_child_of_the_run(checks: bool) -> None:
    journal = MemoryJournal()
    model, judge = Script("a cat", "a dog"), ScriptedEngine(NO, YES)
    validator = ModelSemanticValidator(judge)
    agent = Agent(model, validators=[SemanticCheck(validator) if checks else validator])
    result = await agent.run("Name a dog.", journal=journal, loop_id="one")
    assert result.output == "a dog"
    events = await journal.read("one")
    assert len([event for event in events if isinstance(event, ChildStarted)]) == 2
    assert len([event for event in events if isinstance(event, ChildEnded)]) == 2
    assert result.usage.requests == 4, "what the judge used counts for the run"


@pytest.mark.parametrize("seed", range(5))
async def test_split_apart_the_judge_is_a_child_too(seed: int) -> None:
    driver = SplitDriver(seed=seed)
    agent = Agent(Script("a cat", "a dog"), validators=[ModelSemanticValidator(Script(judged))])
    result = await agent.run("Bark.", runtime=driver)
    assert (result.output, result.usage.requests) == ("a dog", 4)


async def test_a_run_fails_with_what_the_judge_fails_with() -> None:
    judge = ScriptedEngine(EngineError("gone"))
    with pytest.raises(EngineError, match="gone"):
        await Agent(Script("a cat"), validators=[ModelSemanticValidator(judge)]).run("Name a dog.")


async def test_what_is_too_long_is_shown_without_its_middle() -> None:
    judge = ScriptedEngine(YES)
    await ModelSemanticValidator(judge).validate("word " * 50_000, "Say it.")
    said = judge.calls[-1].messages[1].text
    assert len(said) < 20_000
    assert "truncated" in said
