from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from flyball.core.messages import Image, ResultKind, ToolResult
from flyball.tool import MAX_RESULT_BYTES, execute, tool
from tests.tool.contexts import a_call


async def result_for(value: object, **options: Any) -> ToolResult:
    @tool
    async def give() -> object:
        return value

    result = await execute(give, a_call(), None, **options)
    # Whatever it is, it can be journaled and read back.
    assert msgspec.json.decode(msgspec.json.encode(result), type=ToolResult) == result
    assert (result.call_id, result.name) == ("call-1", "it")
    return result


plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(plain_values)
async def test_every_json_value_survives(value: Any):
    result = await result_for(value)
    assert result == ToolResult("call-1", "it", value)
    assert type(result.content) is type(value)


odd_leaves = (
    st.floats()
    | st.text(st.characters(), max_size=5)
    | st.binary(max_size=5)
    | st.datetimes()
    | st.uuids()
    | st.decimals()
    | st.complex_numbers()
    | st.integers(-(10**6_000), 10**6_000)
    | st.builds(object)
    | st.just(int)
)
odd_values = st.recursive(
    odd_leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner)
        | st.dictionaries(st.integers() | st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(odd_values)
async def test_every_value_gives_a_result_or_says_why_not(value: Any):
    result = await result_for(value)
    assert result.status is ResultKind.RETURN
    if result.is_error:
        assert result.content is None
        assert result.metadata == {"code": "TOOL_EXECUTION_FAILED"}


class Model(BaseModel):
    x: int


@dataclass
class Data:
    inner: Model
    seen: set[int]


async def test_models_and_dataclasses_become_json():
    assert (await result_for(Data(Model(x=1), {2, 1}))).content == {"inner": {"x": 1}, "seen": [1, 2]}


async def test_what_json_has_no_word_for_is_text():
    assert (await result_for(math.nan)).content == "nan"
    assert (await result_for("\ud800")).content == "\ufffd"


async def test_a_value_without_json_form_is_named_with_its_path():
    result = await result_for({"a": [1, object()]})
    assert (result.error or "").startswith("result['a'][1] is a object, which has no JSON form")


async def test_a_value_that_contains_itself_is_refused():
    loop: list[Any] = []
    loop.append(loop)
    assert "contains itself" in ((await result_for(loop)).error or "")


class TestSize:
    @pytest.mark.parametrize(
        "value",
        [
            "x" * 50_000_000,
            "é" * 25_000_000,
            b"x" * 50_000_000,
            ["x" * 1_000_000] * 50,
            [[0] * 1_000_000] * 25,
            {"all": "x" * 50_000_000},
        ],
        ids=["text", "wide text", "bytes", "list", "many", "dict"],
    )
    async def test_fifty_megabytes_are_refused(self, value: object):
        result = await result_for(value)
        assert "50,0" in (result.error or "")
        assert "more than the 4,194,304 allowed" in (result.error or "")
        assert result.content is None

    @given(st.text(max_size=40) | st.lists(st.integers(), max_size=10), st.integers(0, 60))
    async def test_the_limit_is_exact(self, value: Any, limit: int):
        plain = (await result_for(value)).content
        size = len(plain.encode()) if isinstance(plain, str) else len(msgspec.json.encode(plain))
        assert (await result_for(value, max_result_bytes=limit)).is_error == (size > limit)

    async def test_as_much_as_allowed_passes(self):
        assert not (await result_for("x" * MAX_RESULT_BYTES)).is_error
        assert (await result_for("x" * (MAX_RESULT_BYTES + 1))).is_error

    async def test_images_count(self):
        heavy = Image("data:image/png;base64," + "A" * 5_000_000)
        assert "5,000," in ((await result_for(heavy)).error or "")
        given = ToolResult("", "", "x", images=(heavy,))
        assert (await result_for(given)).is_error


class TestImages:
    one, two = Image("https://a.example/1.png"), Image("https://a.example/2.png")

    @pytest.mark.parametrize(
        ("value", "content", "images"),
        [
            (one, "1 image", (one,)),
            ([one, two], "2 images", (one, two)),
            (("the chart", one), "the chart", (one,)),
            ([one, {"a": 1}], {"a": 1}, (one,)),
            (["from", one, "to", two], ["from", "to"], (one, two)),
        ],
    )
    async def test_images_are_set_apart(self, value: object, content: Any, images: tuple[Image, ...]):
        assert await result_for(value) == ToolResult("call-1", "it", content, images=images)

    async def test_an_image_that_utf8_cannot_hold_is_cleaned(self):
        assert (await result_for(Image("https://a/\ud800"))).images == (Image("https://a/\ufffd"),)


class TestOwnResults:
    async def test_it_answers_this_call_and_no_other(self):
        given = ToolResult(
            "other", "other", "done", status=ResultKind.RETRY, metadata={"a": 1}, stop_loop=True
        )
        assert await result_for(given) == ToolResult(
            "call-1", "it", "done", status=ResultKind.RETRY, metadata={"a": 1}, stop_loop=True
        )

    async def test_what_is_in_it_is_made_encodable(self):
        given = ToolResult("", "", {1, 2}, error="\ud800", metadata={"when": (1, 2)})
        assert await result_for(given) == ToolResult(
            "call-1", "it", [1, 2], error="\ufffd", metadata={"when": [1, 2]}
        )

    @pytest.mark.parametrize(
        "given",
        [
            ToolResult("", "", object()),
            ToolResult("", "", "x" * 5_000_000),
            ToolResult("", "", error=3),  # pyright: ignore[reportArgumentType]
            ToolResult("", "", trace_id="\ud800"),
            ToolResult("", "", metadata={"a": object()}),
        ],
    )
    async def test_what_cannot_be_written_is_refused(self, given: ToolResult):
        result = await result_for(given)
        assert result.is_error
        assert result.metadata == {"code": "TOOL_EXECUTION_FAILED"}


async def test_a_list_with_code_of_its_own_cannot_break_it():
    class Trap(list[int]):
        def __iter__(self) -> Any:
            raise RuntimeError("trap")

    assert "trap" in ((await result_for(Trap([1]))).error or "")
