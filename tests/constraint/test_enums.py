"""Members of enumerations in the model's spelling become members in the schema's."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.constraint.enums import Change, nearest_member, normalise_enums
from flyball.core.errors import EnumUnrecognized

COLOUR = {"enum": ["red", "green", "dark_blue"]}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("red", "red"),
        ("Red ", "red"),
        ("RED.", "red"),
        ("dark blue", "dark_blue"),
        ("Dark-Blue", "dark_blue"),
        ("darkblue", "dark_blue"),
        ("gren", "gren"),
        ("greeen", "green"),
        ("'green'", "green"),
        ("\uff32ed", "red"),
    ],
)
def test_spellings(written: str, meant: str) -> None:
    if meant not in COLOUR["enum"]:
        assert nearest_member(written, COLOUR["enum"], likeness=0.99) == []
        return
    assert normalise_enums(COLOUR, written).value == meant


@pytest.mark.parametrize("written", ["yellow", "", "r", None, ["red"], {"a": "red"}, "rd"])
def test_what_is_near_no_member_is_refused(written: Any) -> None:
    with pytest.raises(EnumUnrecognized) as caught:
        normalise_enums(COLOUR, written)
    assert caught.value.code == "CONSTRAINT_ENUM_UNRECOGNIZED"
    assert caught.value.details["allowed"] == COLOUR["enum"]


def test_what_may_be_several_is_refused() -> None:
    with pytest.raises(EnumUnrecognized, match="it may be 'A-B' or 'a_b'"):
        normalise_enums({"enum": ["A-B", "a_b"]}, "a b")


def test_an_opposite_is_not_taken_for_a_slip() -> None:
    with pytest.raises(EnumUnrecognized):
        normalise_enums({"enum": ["inactive", "pending"]}, "active")


def test_exact_case_wins_over_folding() -> None:
    assert normalise_enums({"enum": ["a", "A"]}, "A ").value == "A"


def test_numbers_and_booleans_find_their_members() -> None:
    assert normalise_enums({"enum": [1, 2, 3]}, "2").value == 2
    assert normalise_enums({"enum": ["1", "2"]}, 2).value == "2"
    assert normalise_enums({"const": True}, "True").value is True
    assert normalise_enums({"enum": [1, 2]}, 1.0).changes == ()


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "colour": COLOUR,
        "sizes": {"type": "array", "items": {"$ref": "#/$defs/Size"}},
        "pair": {"type": "array", "prefixItems": [{"const": "x"}, {"type": "string"}]},
        "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
        "mood": {"anyOf": [{"enum": ["good", "bad"]}, {"type": "null"}]},
        "free": {"anyOf": [{"enum": ["auto"]}, {"type": "string"}]},
        "shape": {
            "oneOf": [
                {
                    "properties": {"kind": {"const": "circle"}, "r": {"type": "number"}},
                    "required": ["kind", "r"],
                },
                {
                    "properties": {"kind": {"const": "square"}, "a": {"type": "number"}},
                    "required": ["kind", "a"],
                },
            ]
        },
        "both": {"allOf": [{"type": "string"}, {"enum": ["yes", "no"]}]},
    },
    "additionalProperties": {"$ref": "#/$defs/Size"},
    "$defs": {"Size": {"enum": ["small", "large"]}},
}


def test_the_schema_is_followed_and_each_change_noted() -> None:
    value: dict[str, Any] = {
        "colour": "Red",
        "sizes": ["Small", "large"],
        "pair": ["X", "Y"],
        "next": {"colour": "GREEN", "next": None},
        "mood": "Good!",
        "free": "Auto",
        "shape": {"kind": "Square", "a": 2},
        "both": "Yes",
        "waist": "LARGE",
    }
    before = copy.deepcopy(value)
    done = normalise_enums(SCHEMA, value)
    assert value == before, "what was passed in is left alone"
    assert done.value == {
        "colour": "red",
        "sizes": ["small", "large"],
        "pair": ["x", "Y"],
        "next": {"colour": "green", "next": None},
        "mood": "good",
        "free": "Auto",
        "shape": {"kind": "square", "a": 2},
        "both": "yes",
        "waist": "large",
    }
    assert Change("sizes[0]", "Small", "small") in done.changes
    assert [change.path for change in done.changes] == [
        "colour",
        "sizes[0]",
        "pair[0]",
        "next.colour",
        "mood",
        "shape.kind",
        "both",
        "waist",
    ]


def test_alternatives_that_are_all_lists_say_what_is_wrong() -> None:
    with pytest.raises(EnumUnrecognized) as caught:
        normalise_enums(SCHEMA, {"mood": "purple"})
    assert caught.value.details["path"] == "mood"


def test_alternatives_that_do_not_fit_are_left_to_validation() -> None:
    value = {"shape": {"kind": "triangle"}}
    assert normalise_enums(SCHEMA, value).value is value


def test_alternatives_have_to_agree_on_what_is_meant() -> None:
    two = {"anyOf": [{"enum": ["a_b"]}, {"enum": ["a-b"]}]}
    assert normalise_enums(two, "A B").changes == ()
    same = {"anyOf": [{"enum": ["a_b"]}, {"enum": ["a_b", "c"]}]}
    assert normalise_enums(same, "A B").changes == (Change("", "A B", "a_b"),)


def test_references_that_lead_nowhere_change_nothing() -> None:
    schema = {
        "anyOf": [{"$ref": "#/nowhere"}],
        "allOf": [{"$ref": "http://x/y"}, {"$ref": "#/nowhere"}, True],
    }
    assert normalise_enums(schema, "x").value == "x"


def test_a_reference_into_itself_comes_to_an_end() -> None:
    assert normalise_enums({"$ref": "#"}, "x").value == "x"


WORDS = st.lists(
    st.text(st.sampled_from("abcdefgh_-XYZ"), min_size=1, max_size=9), min_size=1, max_size=6, unique=True
)


@given(WORDS, st.data())
def test_members_are_never_changed(words: list[str], data: st.DataObject) -> None:
    word = data.draw(st.sampled_from(words))
    assert normalise_enums({"enum": words}, word).changes == ()


@given(WORDS, st.text(st.sampled_from("abcdefgh_-XYZ "), max_size=9))
def test_what_comes_out_is_a_member(words: list[str], written: str) -> None:
    try:
        done = normalise_enums({"type": "string", "enum": words}, written)
    except EnumUnrecognized:
        return
    assert done.value in words
    assert normalise_enums({"enum": words}, done.value).value == done.value
