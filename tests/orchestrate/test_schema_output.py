"""A JSON Schema as an output: an answer counts if it follows the schema; what is wrong with it is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball import Agent, ModelRetry
from flyball.core.errors import (
    ConstraintFailure,
    EnumUnrecognized,
    JSONInvalid,
    SchemaInvalid,
    SchemaMalformed,
)
from flyball.core.spec import OutputMode, OutputSpec
from flyball.inference.answers import tool_call_answer
from flyball.inference.scripted import ScriptedEngine
from flyball.orchestrate.schema_output import SchemaOutput, SchemaReader
from flyball.orchestrate.wrapped_schema import wrapped

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "mood": {"enum": ["good", "bad"]}},
    "required": ["a"],
}

# Schemas that say something about themselves, and values that some follow and some do not.
SCHEMAS: list[dict[str, Any]] = [
    {},
    {"type": "integer"},
    {"type": "array", "items": {"$ref": "#"}},
    {"type": "array", "items": {"$ref": "#/$defs/leaf"}, "$defs": {"leaf": {"type": "integer"}}},
    {"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}},
    {"anyOf": [{"type": "null"}, {"type": "array", "prefixItems": [{"$ref": "#/anyOf/0"}]}]},
    {"type": "array", "items": {"$ref": "#/definitions/any"}, "definitions": {"any": {"$ref": "#"}}},
    {"$id": "https://example.com/tree", "type": "array", "items": {"$ref": "#"}},
    {"enum": [{"$ref": "#"}, [], 3]},
    {"properties": {"enum": {"$ref": "#"}, "$ref": {"type": "integer"}}},
    {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "array", "maxItems": 1},
]

values = st.recursive(
    st.none() | st.integers(0, 3) | st.just({"$ref": "#"}),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["enum", "$ref", "a"]), inner, max_size=2)
    ),
    max_leaves=5,
)


def reader(schema: dict[str, Any], *, outer: str | None = None, **options: bool) -> SchemaReader:
    return SchemaReader(SchemaOutput(schema, **options), OutputSpec(outer_key=outer))


def encoded(value: Any) -> str:
    return msgspec.json.encode(value).decode()


@given(st.sampled_from(SCHEMAS), values)
def test_what_follows_a_schema_follows_the_wrapped_one(schema: dict[str, Any], value: Any) -> None:
    valid = jsonschema_rs.validator_for(schema, offline=True).is_valid(value)
    outer = jsonschema_rs.validator_for(wrapped(schema, "result"), offline=True)
    assert outer.is_valid({"result": value}) is valid
    assert not outer.is_valid({})


@given(st.sampled_from(SCHEMAS), values, st.booleans())
def test_an_answer_is_read_if_it_follows_the_schema(schema: dict[str, Any], value: Any, inside: bool) -> None:
    valid = jsonschema_rs.validator_for(schema, offline=True).is_valid(value)
    raw = encoded({"result": value} if inside else value)
    look = reader(schema, outer="result" if inside else None).look(raw)
    assert (look.value, look.repairs) == (value, ())
    assert (not look.faults) is valid


@given(st.text(max_size=30))
def test_whatever_the_answer_is_looking_does_not_raise(raw: str) -> None:
    for repair in (True, False):
        look = reader(SCHEMA, repair=repair).look(raw)
        value: Any = look.value
        assert look.faults or value["a"] == int(value["a"])


def test_deep_nesting_is_a_fault() -> None:
    look = reader({}).look("[" * 100_000)
    assert [fault.keyword for fault in look.faults] == ["json"]


def test_formats_count() -> None:
    day = reader({"type": "string", "format": "date"})
    assert day.look('"2024-02-29"').faults == ()
    (fault,) = day.look('"2023-02-29"').faults
    assert fault.keyword == "format"


def test_broken_json_is_put_right() -> None:
    assert reader(SCHEMA).read("Sure: ```json\n{'a': 1,}\n```") == ({"a": 1}, ("json",))
    with pytest.raises(ModelRetry, match="no JSON"):
        reader(SCHEMA, repair=False).read("{'a': 1,}")


@pytest.mark.parametrize(
    ("raw", "repairs"),
    [
        ('{"a": 1, "mood": "good"}', ()),
        ('{"a": 1, "mood": "Good"}', ('enum mood: "Good" is taken for "good"',)),
        ('{"a": 1, "mood": " good "}', ('enum mood: " good " is taken for "good"',)),
        ("{'a': 1, 'mood': 'GOOD',}", ("json", 'enum mood: "GOOD" is taken for "good"')),
    ],
)
def test_members_of_enumerations_are_put_right_and_that_is_told(raw: str, repairs: tuple[str, ...]) -> None:
    assert reader(SCHEMA).read(raw) == ({"a": 1, "mood": "good"}, repairs)


def test_members_are_put_right_also_where_a_value_is_wrapped() -> None:
    look = reader({"enum": ["yes", "no"]}, outer="result").look('{"result": "Yes"}')
    assert (look.value, look.repairs, look.faults) == ("yes", ('enum: "Yes" is taken for "yes"',), ())


def test_what_may_be_two_members_is_asked_for_again() -> None:
    with pytest.raises(ModelRetry, match="is not one of"):
        reader({"enum": ["a_b", "a-b"]}).read('"A B"')
    either = {"anyOf": [{"enum": ["a_b"]}, {"enum": ["a-b"]}]}
    with pytest.raises(ModelRetry, match="is not valid under any"):
        reader(either).read('"A B"')


def test_where_repair_is_off_members_are_not_put_right_either() -> None:
    with pytest.raises(EnumUnrecognized):
        reader(SCHEMA, repair=False, retry=False).read('{"a": 1, "mood": "Good"}')


def test_what_is_wrong_besides_is_told_of_the_value_that_was_put_right() -> None:
    look = reader(SCHEMA).look('{"mood": "Good"}')
    assert (look.value, look.repairs) == ({"mood": "good"}, ('enum mood: "Good" is taken for "good"',))
    assert [fault.keyword for fault in look.faults] == ["required"]


def test_the_model_reads_what_is_wrong_and_where() -> None:
    with pytest.raises(ModelRetry) as caught:
        reader(SCHEMA).read('{"mood": "so so"}')
    told = str(caught.value)
    assert told.startswith("The answer does not follow its schema:\n- ")
    assert '- mood: "so so" is not one of' in told
    assert '"a" is a required property' in told


@pytest.mark.parametrize(
    ("raw", "kind", "path"),
    [
        ("no", JSONInvalid, ""),
        ('{"a": "x"}', SchemaInvalid, "a"),
        ('{"a": 1, "mood": "so so"}', EnumUnrecognized, "mood"),
        ("[]", SchemaInvalid, ""),
    ],
)
def test_without_a_retry_the_first_fault_is_the_end(
    raw: str, kind: type[ConstraintFailure], path: str
) -> None:
    with pytest.raises(kind) as caught:
        reader(SCHEMA, repair=False, retry=False).read(raw)
    assert type(caught.value) is kind
    assert caught.value.details["path"] == path
    assert caught.value.details["violation"]
    assert caught.value.category == "constraint_failure"


def test_a_long_list_of_faults_is_capped() -> None:
    look = reader({"type": "array", "items": {"type": "integer"}}).look(encoded(["x" * 9000] * 500))
    assert len(look.faults) == 20
    assert len(look.faults[0].message) <= 300
    assert look.faults[3].path == "[3]"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "thing"},
        {"$ref": "https://example.com/schema.json"},
        {"$ref": "file:///etc/hostname"},
        {"$ref": "#/$defs/missing"},
        {"$schema": "https://example.com/dialect"},
        {"pattern": "("},
        {"properties": 3},
    ],
)
def test_a_schema_that_cannot_be_used(schema: dict[str, Any]) -> None:
    with pytest.raises(SchemaMalformed) as caught:
        reader(schema)
    assert caught.value.code == "CONFIG_SCHEMA_MALFORMED"
    assert "\n" not in caught.value.message


def test_nothing_is_fetched_for_a_schema(tmp_path: Path) -> None:
    there = tmp_path / "schema.json"
    there.write_text('{"type": "integer"}')
    assert jsonschema_rs.validator_for({"$ref": there.as_uri()}).is_valid(3), "it could be"
    with pytest.raises(SchemaMalformed, match="cannot be used"):
        reader({"$ref": there.as_uri()})


# As an agent's output


async def test_an_agent_takes_a_schema_for_its_output() -> None:
    engine = ScriptedEngine(
        tool_call_answer("final_result", {"a": "x"}), tool_call_answer("final_result", {"a": 1})
    )
    agent: Agent[Any, Any] = Agent(engine).clone(output=SCHEMA)
    result = await agent.run("hi")
    assert result.output == {"a": 1}
    assert engine.calls[0].tools[0].parameters == SCHEMA
    assert (await agent.replay(result.loop_id, result.journal)).output == {"a": 1}


async def test_a_schema_that_is_no_objects_is_wrapped() -> None:
    engine = ScriptedEngine(tool_call_answer("final_result", {"result": [[], [[]]]}))
    result = await Agent(engine).clone(output={"type": "array", "items": {"$ref": "#"}}).run("hi")
    assert result.output == [[], [[]]]
    assert engine.calls[0].tools[0].outer_key == "result"


async def test_the_schema_may_be_the_engines_business() -> None:
    engine = ScriptedEngine('{"a": 1}')
    result = await Agent(engine).clone(output=SCHEMA, output_mode=OutputMode.NATIVE).run("hi")
    assert result.output == {"a": 1}
    assert engine.calls[0].output is not None
    assert engine.calls[0].output.schema == SCHEMA


async def test_validators_see_the_value_and_may_change_it() -> None:
    agent: Agent[Any, Any] = Agent(ScriptedEngine('{"a": 1}')).clone(output=SCHEMA, output_mode="native")

    @agent.output_validator
    def more(_: object, output: Any) -> Any:
        return {"a": output["a"] + 1}

    result = await agent.run("hi")
    assert result.output == {"a": 2}
    assert (await agent.replay(result.loop_id, result.journal)).output == {"a": 2}


async def test_without_a_retry_the_run_ends_with_the_fault() -> None:
    output = SchemaOutput(SCHEMA, retry=False)
    agent: Agent[Any, Any] = Agent(ScriptedEngine('{"a": "x"}'), retries=5).clone(
        output=output, output_mode="native"
    )
    with pytest.raises(SchemaInvalid, match='a: "x" is not of type "integer"'):
        await agent.run("hi")


@pytest.mark.parametrize("given_output", [{"type": "thing"}, {"a": object()}])
def test_a_dict_that_is_no_schema(given_output: dict[str, Any]) -> None:
    with pytest.raises(SchemaMalformed):
        _ = Agent(ScriptedEngine()).clone(output=given_output).spec
