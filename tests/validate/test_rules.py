"""Rules: all are asked, and what they have against an output is told with their names."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball import Agent, Rule, RuleValidator, System, SystemRequest
from flyball.core.errors import FailureCategory, RuleFailed, UserError
from flyball.core.events import TurnSettled
from flyball.core.messages import Retry, user
from flyball.orchestrate.contracts import OutputContract
from tests.orchestrate.models import Script


def short(output: str) -> str | None:
    return None if len(output) < 20 else f"{len(output)} characters are too many"


async def polite(output: str) -> bool:
    return "please" in output


def broken(output: str) -> None:
    raise LookupError("no such word")


RULES = [Rule("short", short), Rule("polite", polite), Rule("nothing"), Rule("broken", broken)]


async def test_all_rules_are_asked_also_after_one_that_failed() -> None:
    found = await RuleValidator(RULES).violations("x" * 30)
    assert [str(one) for one in found] == [
        "short: 30 characters are too many",
        "polite: it does not hold",
        "broken: no such word",
    ]


async def test_what_failed_is_in_the_error() -> None:
    with pytest.raises(RuleFailed) as failed:
        await RuleValidator(RULES[:2]).validate("hello")
    assert failed.value.code == "VALIDATION_RULE_FAILED"
    assert failed.value.category is FailureCategory.VALIDATION
    assert failed.value.details["rules"] == [{"name": "polite", "reason": "it does not hold"}]
    assert failed.value.record().exception().details == failed.value.details


async def test_an_output_that_follows_the_rules_passes_as_it_is() -> None:
    await RuleValidator(RULES[:3]).validate("please")
    await RuleValidator([]).validate(object())


async def test_the_rules_are_those_that_were_given() -> None:
    rules = RULES[:1]
    validator = RuleValidator(rules)
    rules.append(Rule("never", lambda _: False))
    await validator.validate("hello")


async def test_a_check_that_gives_something_odd_refuses() -> None:
    odd: Any = [3]
    (found,) = await RuleValidator([Rule("odd", lambda _: odd)]).violations("hello")
    assert found.reason == "it gave [3]: a check gives what is wrong, True or False, or None"


async def test_an_error_without_words_is_told_by_its_name() -> None:
    def mute(_: Any) -> None:
        raise ValueError

    (found,) = await RuleValidator([Rule("mute", mute)]).violations("hello")
    assert found.reason == "ValueError"


TEXT: Any = "y"


@pytest.mark.parametrize(
    "rules", [[short], [Rule("")], [Rule("x", TEXT)]], ids=["function", "no name", "text"]
)
def test_what_is_no_rule_is_refused(rules: Any) -> None:
    with pytest.raises(UserError):
        RuleValidator(rules)


@given(st.lists(st.sampled_from([True, False, None, "", "no"]), max_size=8))
async def test_exactly_those_that_refuse_are_told_in_their_order(answers: list[Any]) -> None:
    rules = [Rule(f"r{n}", lambda _, said=said: said) for n, said in enumerate(answers)]
    found = await RuleValidator(rules).violations("output")
    assert [one.name for one in found] == [f"r{n}" for n, said in enumerate(answers) if said in (False, "no")]


async def test_the_model_is_told_all_and_answers_again() -> None:
    model = Script("x" * 30, "please")
    result = await Agent(model, validators=[RuleValidator(RULES[:2])]).run("go")
    assert result.output == "please"
    assert model.last.messages[-1].parts[0] == Retry(
        "The output breaks 2 rules:\n- short: 30 characters are too many\n- polite: it does not hold\n"
        "Answer again with this put right."
    )


async def test_when_the_retries_are_used_up_the_run_fails_with_the_rules() -> None:
    model = Script("rude", "rude")
    with pytest.raises(RuleFailed) as failed:
        await Agent(model, validators=[RuleValidator(RULES[:2])]).run("go")
    assert model.calls == 2
    assert failed.value.details["rules"] == [{"name": "polite", "reason": "it does not hold"}]
    settled = [e for e in await failed.value.partial.events() if isinstance(e, TurnSettled)]
    assert [bool(event.feedback) for event in settled] == [True, True]
    assert all(event.error is not None and event.error.code == "VALIDATION_RULE_FAILED" for event in settled)


async def test_outputs_that_tools_carry_are_held_to_rules_too() -> None:
    model = Script('{"n": 1}', '{"n": 5}')
    rules = RuleValidator([Rule("large", lambda output: output["n"] > 3)])
    agent = Agent(model, output={"type": "object"}, output_mode="native", validators=[rules])
    assert (await agent.run("go")).output == {"n": 5}


async def test_a_strict_request_asks_no_second_time() -> None:
    model = Script('{"n": 1}')
    rules = RuleValidator([Rule("large", lambda output: output["n"] > 3)])
    contract = OutputContract(schema={"type": "object"}, strict_validation=True)
    request = SystemRequest(mode="structured", messages=(user("go"),), output=contract)  # pyright: ignore[reportArgumentType]
    response = await System(Agent(model, validators=[rules])).handle(request)
    assert model.calls == 1
    assert response.error is not None
    assert response.error.code == "VALIDATION_RULE_FAILED"
    assert not response.error.retryable
    assert response.error.details is not None
    assert response.error.details["rules"] == [{"name": "large", "reason": "it does not hold"}]
