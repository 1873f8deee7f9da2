from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.context import RunContext
from flyball.core.errors import SchemaMalformed, UserError
from flyball.tool import FunctionTool, ModelRetry
from tests.tool.contexts import a_context

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"from": {"type": "string"}, "ctx": {"type": "integer"}},
    "required": ["from"],
}


async def echo(**arguments: Any) -> dict[str, Any]:
    return arguments


async def with_context(ctx: RunContext[Any], /, **arguments: Any) -> Any:
    return ctx.deps, arguments


async def test_the_function_gets_the_arguments_by_name():
    made = FunctionTool.from_schema(echo, "echo", "Says it again.", SCHEMA, timeout=3)
    assert (made.definition.parameters, made.definition.description, made.spec.timeout) == (
        SCHEMA,
        "Says it again.",
        3,
    )
    assert await made.run('{"from": "x", "other": [1]}', None) == {"from": "x", "other": [1]}


async def test_the_function_may_take_a_context_and_an_argument_of_its_name():
    made = FunctionTool.from_schema(with_context, "echo", "", SCHEMA)
    assert made.wants_context
    assert await made.run('{"from": "x", "ctx": 1}', a_context("deps")) == ("deps", {"from": "x", "ctx": 1})


async def test_the_schema_is_a_copy():
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    made = FunctionTool.from_schema(echo, "echo", "", schema)
    schema["type"] = "array"
    assert made.definition.parameters["type"] == "object"


@pytest.mark.parametrize(
    ("args_json", "message"),
    [
        ("", "from: Field required"),
        ("{}", "from: Field required"),
        ('{"from": ', "no JSON"),
        ("[]", "should be an object, not a list"),
        ('{"from": "\ud800"}', "no JSON"),
        ("[" * 5_000, "no JSON"),
    ],
)
async def test_wrong_arguments_go_back_to_the_model(args_json: str, message: str):
    made = FunctionTool.from_schema(echo, "echo", "", SCHEMA)
    with pytest.raises(ModelRetry, match=message):
        await made.run(args_json, None)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (None, "is a NoneType, not a dict"),
        ([], "is a list, not a dict"),
        ({}, "has type None"),
        ({"type": "string"}, "has type 'string'"),
        ({"type": "object", "properties": []}, "properties that are a list"),
        ({"type": "object", "properties": {"a": "string"}}, "property 'a' that is no schema"),
        ({"type": "object", "properties": {1: {}}}, "property 1 that is no schema"),
        ({"type": "object", "required": "a"}, "required 'a'"),
        ({"type": "object", "required": [1]}, "required"),
        ({"type": "object", "properties": {"a": {"default": object()}}}, "cannot be written as JSON"),
    ],
)
def test_a_malformed_schema_is_refused(schema: Any, message: str):
    with pytest.raises(SchemaMalformed, match=f"tool 'echo'.*{message}"):
        FunctionTool.from_schema(echo, "echo", "", schema)


def test_the_name_is_checked():
    with pytest.raises(UserError, match="cannot be a tool's name"):
        FunctionTool.from_schema(echo, "two words", "", SCHEMA)


@given(st.text(max_size=40))
async def test_any_text_is_taken_or_goes_back(args_json: str):
    made = FunctionTool.from_schema(echo, "echo", "", {"type": "object"})
    try:
        assert isinstance(await made.run(args_json, None), dict)
    except ModelRetry as retry:
        str(retry).encode("utf-8")
