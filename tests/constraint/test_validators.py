"""Validators of form: what they give, and what they raise."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from flyball import Agent, JSONRepairStrategy, JSONValidator, OutputRepair, RepairStrategy, SchemaValidator
from flyball.constraint.validation import is_valid
from flyball.core.errors import EnumUnrecognized, JSONInvalid, SchemaInvalid, SchemaMalformed, UserError
from tests.orchestrate.models import Script
from tests.strategies import json_values

CITY: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "size": {"enum": ["small", "large"]},
        "streets": {"type": "array", "items": {"type": "object", "required": ["name"]}},
    },
    "required": ["name"],
}


def test_with_repair_off_invalid_json_fails_at_once() -> None:
    off, on = JSONValidator(), JSONValidator(attempt_repair=True)
    assert off.validate('{"a": 1}').output == {"a": 1}
    assert off.require("[1]") == [1]
    result = off.validate('{"a": 1')
    assert not result.valid
    assert "it is no JSON" in result.errors[0]
    with pytest.raises(JSONInvalid) as invalid:
        off.require('{"a": 1')
    assert invalid.value.code == "CONSTRAINT_JSON_INVALID"
    assert on.validate('{"a": 1').output == {"a": 1}
    assert on.validate('{"a": 1').repaired
    assert not on.validate('{"a": 1}').repaired
    assert not on.validate("no JSON at all").valid


@pytest.mark.parametrize(
    ("text", "error", "path"),
    [
        ('{"size": "small"}', SchemaInvalid, ""),
        ('{"name": 3}', SchemaInvalid, "name"),
        ('{"name": "Rome", "size": "Large"}', EnumUnrecognized, "size"),
        ('{"name": "Rome", "streets": [{"name": "Via"}, {}]}', SchemaInvalid, "streets[1]"),
        ("[]", SchemaInvalid, ""),
        ("nothing", JSONInvalid, ""),
    ],
)
def test_what_breaks_a_schema(text: str, error: type[Any], path: str) -> None:
    validator = SchemaValidator(CITY)
    result = validator.validate(text)
    assert not result.valid
    assert result.errors
    with pytest.raises(error) as raised:
        validator.require(text)
    assert type(raised.value) is error
    assert raised.value.details["path"] == path


def test_what_follows_it_passes() -> None:
    result = SchemaValidator(CITY).validate('{"name": "Rome", "size": "large", "streets": []}')
    assert (result.valid, result.errors) == (True, ())
    assert result.output == {"name": "Rome", "size": "large", "streets": []}
    assert SchemaValidator(CITY).require('{"name": "Rome"}') == {"name": "Rome"}
    with pytest.raises(SchemaMalformed):
        SchemaValidator({"type": "thing"})


def test_an_empty_schema_lets_everything_pass() -> None:
    passed: list[tuple[str, Any]] = [("{}", {}), ("3", 3), ("no JSON", "no JSON"), ("", "")]
    for text, output in passed:
        assert SchemaValidator({}).validate(text).output == output
        assert SchemaValidator({}).require(text) == output


@given(json_values)
def test_values_are_judged_as_by_the_schema(value: Any) -> None:
    assert SchemaValidator(CITY).validate_value(value).valid == is_valid(CITY, value)


def test_a_strategy_puts_json_right_or_says_that_it_cannot() -> None:
    strategy = JSONRepairStrategy()
    assert isinstance(strategy, RepairStrategy)
    assert strategy.repair("Here: {'a': [1, 2,", ["it is cut"]) == '{"a":[1,2]}'
    with pytest.raises(JSONInvalid, match=r"cannot be made JSON \(it is none\)"):
        strategy.repair("no", ["it is none"])
    with pytest.raises(JSONInvalid):
        strategy.repair("")


class Upwards:
    async def repair(self, output: str, errors: Any) -> str:
        assert errors
        return output.replace("minus", "")


async def test_a_strategy_puts_an_agents_answers_right() -> None:
    model = Script("minus3")
    agent = Agent(model, output=int, output_mode="native", features=[OutputRepair.by(Upwards())])
    assert (await agent.run("go")).output == 3
    with pytest.raises(UserError, match="takes what has repair"):
        OutputRepair.by(object())  # pyright: ignore[reportArgumentType]
