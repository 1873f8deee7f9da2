"""Making values encodable: the outcome always encodes, a second pass changes nothing, the rest is refused."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.encodable import MAX_DEPTH, MAX_INT_BITS, NotEncodable, as_text, clean_text, to_json
from tests.strategies import json_values

wild_texts = st.text(st.characters())  # lone surrogates included
wild_scalars: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | wild_texts
    | st.binary(max_size=6)
    | st.datetimes()
    | st.dates()
    | st.timedeltas()
    | st.uuids()
    | st.decimals(allow_nan=False)
    | st.fractions()
)
wild_keys = (
    wild_texts
    | st.integers()
    | st.floats()
    | st.booleans()
    | st.none()
    | st.tuples(st.integers(), wild_texts)
)
wild_values: st.SearchStrategy[Any] = st.recursive(
    wild_scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.lists(inner, max_size=3).map(collections.deque)
        | st.dictionaries(wild_keys, inner, max_size=3)
        | st.sets(wild_texts | st.integers(), max_size=3)
    ),
    max_leaves=8,
)


class Colour(enum.Enum):
    RED = "red"
    PAIR = (1, {2})


class Word(str, enum.Enum):  # noqa: UP042 - people still write it so
    YES = "yes"


class Number(enum.IntEnum):
    THREE = 3


class Odd(enum.Enum):
    THING = object()


@dataclasses.dataclass
class Point:
    x: float
    tags: set[str]


class Model(pydantic.BaseModel):
    tags: set[str]
    when: datetime.date


class Record(msgspec.Struct):
    a: int
    b: int | msgspec.UnsetType = msgspec.UNSET


@given(wild_values)
def test_the_outcome_encodes_and_comes_back_and_a_second_pass_changes_nothing(value: Any) -> None:
    plain = to_json(value)
    assert msgspec.json.decode(msgspec.json.encode(plain)) == plain
    assert to_json(plain) == plain


@given(json_values)
def test_json_stays_as_it_is(value: Any) -> None:
    assert to_json(value) == value


@given(wild_texts)
def test_clean_text_can_be_encoded_and_loses_only_lone_surrogates(text: str) -> None:
    clean = clean_text(text)
    clean.encode("utf-8")
    assert clean_text(clean) == clean
    kept = [char for char in text if not "\ud800" <= char <= "\udfff"]
    rest = iter(clean)
    assert all(char in rest for char in kept)  # all others are there, in their order


@pytest.mark.parametrize(
    ("text", "clean"),
    [("plain", "plain"), ("é", "é"), ("\ud800a", "\ufffda"), ("a\udc00", "a\ufffd"), ("\ud83d\ude00", "😀")],
)
def test_lone_surrogates_are_replaced_and_pairs_joined(text: str, clean: str) -> None:
    assert clean_text(text) == clean


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (float("nan"), "nan"),
        ([float("inf"), float("-inf")], ["inf", "-inf"]),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset({"b", "a"}), ["a", "b"]),
        ({"1", 1}, ["1", 1]),
        (b"text", "text"),
        (b"\xff\xfe", "//4="),
        (bytearray(b"x"), "x"),
        (memoryview(b"x"), "x"),
        (Colour.RED, "red"),
        (Colour.PAIR, [1, [2]]),
        (Word.YES, "yes"),
        (Number.THREE, 3),
        ({Word.YES: Number.THREE, Number.THREE: 1}, {"yes": 3, "3": 1}),
        ({None: 0, True: 1, 1.5: 2}, {"null": 0, "true": 1, "1.5": 2}),
        ({(1, 2): 3, b"k": 4}, {"[1,2]": 3, "k": 4}),
        ({float("inf"): 1}, {"inf": 1}),
        (Point(1.5, {"b", "a"}), {"x": 1.5, "tags": ["a", "b"]}),
        (Model(tags={"t"}, when=datetime.date(2025, 1, 2)), {"tags": ["t"], "when": "2025-01-02"}),
        (Record(1), {"a": 1}),
        ([Record(1, 2)], [{"a": 1, "b": 2}]),
        (datetime.datetime(2025, 1, 2, 3), "2025-01-02T03:00:00"),
        (decimal.Decimal("1.50"), "1.50"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (fractions.Fraction(1, 4), 0.25),
        (collections.deque([1]), [1]),
        (range(3), [0, 1, 2]),
        ({"a": 1}.keys(), ["a"]),
    ],
    ids=lambda value: type(value).__name__,  # a set's repr differs from one process to the next
)
def test_what_becomes_what(value: Any, plain: Any) -> None:
    assert to_json(value) == plain


def test_the_types_are_plain_too() -> None:
    class Text(str):
        __slots__ = ()

        def __str__(self) -> str:
            return "another"

    plain = to_json([Text("a"), Number.THREE, Word.YES])
    assert [type(item) for item in plain] == [str, int, str]
    assert plain == ["a", 3, "yes"]


@pytest.mark.integration
@pytest.mark.parametrize("hash_seed", ["0", "1", "2", "3"])
def test_sets_have_one_order_in_every_process(hash_seed: str) -> None:
    import subprocess
    import sys
    from pathlib import Path

    source = str(Path(__file__).parents[2] / "src")
    code = f"import sys; sys.path.insert(0, {source!r}); from flyball.core.encodable import to_json; "
    code += "print(to_json({'1', 1, '2', 2, 'a', 'b', (1, 'x'), 2.5, None}))"
    said = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.strip() == "['1', '2', 'a', 'b', 1, 2, 2.5, [1, 'x'], None]"


class Broken:
    def model_dump(self, mode: str) -> Any:
        raise KeyError(mode)


class Grumpy(Mapping[str, int]):
    def __getitem__(self, key: str) -> int:
        raise OSError("no")

    def __iter__(self) -> Iterator[str]:
        return iter(["a"])

    def __len__(self) -> int:
        return 1


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (object(), "result is a object"),
        ({"rows": [1, {"x": object()}]}, "result['rows'][1]['x'] is a object"),
        ([lambda: 1], "result[0] is a function"),
        ((n for n in range(3)), "generator"),
        (Broken(), "Broken"),
        (Model, "the class Model"),
        (Grumpy(), "OSError"),
        (Odd.THING, "object"),
        ({object(): 1}, "object"),
        (1 << MAX_INT_BITS, "whole number"),
        (collections.UserString("abc"), "nested"),
    ],
    ids=[
        "object",
        "path",
        "function",
        "generator",
        "raising",
        "class",
        "mapping",
        "enum",
        "key",
        "int",
        "endless",
    ],
)
def test_what_has_no_json_form_is_refused_with_its_place(value: Any, said: str) -> None:
    with pytest.raises(NotEncodable) as caught:
        to_json(value)
    assert said in str(caught.value)


def test_what_contains_itself_is_refused() -> None:
    mine: dict[str, Any] = {}
    mine["deeper"] = [mine]
    with pytest.raises(NotEncodable, match="contains itself"):
        to_json(mine)


def test_what_is_shared_is_no_circle() -> None:
    shared = [1]
    assert to_json([shared, {"a": shared}, shared]) == [[1], {"a": [1]}, [1]]


def nested(depth: int) -> Any:
    value: Any = "core"
    for n in range(depth):
        value = [value] if n % 2 else {"k": value}
    return value


@given(st.integers(0, 3 * MAX_DEPTH))
def test_depth_is_bounded(depth: int) -> None:
    value = nested(depth)
    if depth <= MAX_DEPTH:
        assert msgspec.json.decode(msgspec.json.encode(to_json(value))) == value
    else:
        with pytest.raises(NotEncodable, match="nested"):
            to_json(value)


def test_depth_without_end_does_not_reach_the_end_of_the_stack() -> None:
    with pytest.raises(NotEncodable) as caught:
        to_json(nested(100_000))
    assert len(str(caught.value)) < 300


def test_a_stack_that_is_nearly_full_gives_the_same_error() -> None:
    def dive(value: Any) -> Any:
        try:
            return dive(value)
        except RecursionError:
            return to_json(value)

    with pytest.raises(NotEncodable):
        dive(nested(MAX_DEPTH))


def test_another_name_for_the_value() -> None:
    with pytest.raises(NotEncodable, match=r"^document\[0\]"):
        to_json([object()], "document")


@pytest.mark.parametrize(
    ("value", "text"), [("a", "a"), (None, "null"), ({"a": [1.5]}, '{"a":[1.5]}'), (True, "true")]
)
def test_as_text(value: Any, text: str) -> None:
    assert as_text(value) == text
