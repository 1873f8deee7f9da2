from __future__ import annotations

from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from pydantic import BaseModel, BeforeValidator, Field

from flyball.tool import ModelRetry, tool


class Place(BaseModel):
    name: str
    height: int = 0


@tool
async def travel(
    to: list[Place], days: Annotated[int, Field(ge=1)], by: Literal["train", "boat"] = "train"
) -> str:
    return "went"


async def told(args_json: str) -> str:
    with pytest.raises(ModelRetry) as caught:
        await travel.run(args_json, None)
    assert caught.value.message == str(caught.value)
    return caught.value.message


async def test_each_field_is_named_with_what_it_was_given():
    text = await told('{"to": [{"name": "A", "height": "high"}], "days": 0, "by": "car", "why": 1}')
    assert text == snapshot("""\
The arguments are wrong:
- to.0.height: Input should be a valid integer, unable to parse string as an integer, got "high"
- days: Input should be greater than or equal to 1, got 0
- by: Input should be 'train' or 'boat', got "car"
- why: Extra inputs are not permitted
Call again with this put right.\
""")


async def test_what_is_missing_is_named():
    assert await told("{}") == snapshot("""\
The arguments are wrong:
- to: Field required
- days: Field required
Call again with this put right.\
""")


async def test_what_is_no_object_is_said():
    assert await told("[1, 2]") == snapshot("""\
The arguments are wrong:
- Input should be an object, got [1,2]
Call again with this put right.\
""")


async def test_cut_json_shows_where_it_ends():
    assert await told('{"to": ["') == snapshot("""\
The arguments are wrong:
- no JSON (EOF while parsing a string at line 1 column 9), perhaps cut short; it ends with: {"to": ["
Call again with this put right.\
""")
    assert (await told('{"to": "' + "x" * 500 + "end")).count("x") == 97


async def test_a_lone_surrogate_is_told_as_clean_text():
    assert "\ufffd" in await told('{"to": "\ud800"}')


async def test_many_faults_and_long_values_are_capped():
    text = await told('{"to": [' + ",".join(['{"name": 1}'] * 50) + '], "days": "' + "9x" * 9_000 + '"}')
    assert "and 41 more" in text
    assert len(text) < 2_200
    assert len(await told('{"days": "' + "9x" * 9_000 + '"}')) < 400


async def test_a_number_too_large_is_said_to_be():
    assert "number out of range" in await told('{"to": ' + "9" * 5_000 + "}")


async def test_a_value_that_cannot_be_shown_is_told_by_its_type():
    @tool
    async def count(n: Annotated[int, BeforeValidator(lambda given: {given})]) -> int: ...

    @tool
    async def hide(n: Annotated[int, BeforeValidator(lambda given: Place)]) -> int: ...

    with pytest.raises(ModelRetry, match=r"n: .*, got \[1\]"):
        await count.run('{"n": 1}', None)
    with pytest.raises(ModelRetry, match=r"n: .*, got a ModelMetaclass"):
        await hide.run('{"n": 1}', None)


@given(st.text(max_size=60))
async def test_any_text_gives_a_retry_that_can_be_written(args_json: str):
    (await told(args_json)).encode("utf-8")
