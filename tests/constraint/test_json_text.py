"""JSON is found in what a model wrote, and mended where it is broken."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.constraint.json_text import extract_json, repair_json

OBJECTS = st.dictionaries(
    st.text(st.characters(codec="utf-8"), max_size=5),
    st.recursive(
        st.none() | st.booleans() | st.integers(-99, 99) | st.text(st.characters(codec="utf-8"), max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=6,
    ),
    max_size=4,
)

FOUND = {
    "plain": ('{"a": 1}', '{"a": 1}'),
    "white space around": ('\n  {"a": 1}\n', '{"a": 1}'),
    "thinking": ('<think>maybe {"a": 0}?</think>\n{"a": 1}', '{"a": 1}'),
    "thinking, by its other name": ('<Thinking>x</Thinking>{"a": 1}', '{"a": 1}'),
    "thinking whose beginning the template wrote": ('maybe {"a": 0}?\n</think>\n{"a": 1}', '{"a": 1}'),
    "thinking without an end": ('<think>maybe {"a": 0}', ""),
    "a fence": ('Here:\n```json\n{"a": 1}\n```\nDone.', '{"a": 1}'),
    "a fence without a name": ('```\n{"a": 1}\n```', '{"a": 1}'),
    "a fence of tildes": ('~~~json\n{"a": 1}\n~~~', '{"a": 1}'),
    "a fence without an end": ('```json\n{"a": 1}', '{"a": 1}'),
    "the fence that says json": ("```python\nx = {}\n```\n```json\n[1]\n```\n```sh\nls\n```", "[1]"),
    "the last fence": ("```\nls\n```\n```\n[1]\n```", "[1]"),
    "prose around": ('Sure! {"a": 1} I hope this helps {you}.', '{"a": 1}'),
    "the longest": ('[1] or {"a": [1, 2, 3]}', '{"a": [1, 2, 3]}'),
    "tags within a string": (
        '{"a": "<think>x</think> ```json\\n1\\n```"}',
        '{"a": "<think>x</think> ```json\\n1\\n```"}',
    ),
    "a scalar": (" 42 ", "42"),
    "nothing": ("I do not know.", "I do not know."),
}


@pytest.mark.parametrize("name", FOUND)
def test_json_is_found(name: str) -> None:
    text, found = FOUND[name]
    assert extract_json(text) == found


MENDED: dict[str, tuple[str, Any]] = {
    "single quotes, bare keys, a trailing comma": (
        "{name: 'Bern', people: 134506,}",
        {"name": "Bern", "people": 134506},
    ),
    "a cut end": ('{"a": [1, {"b": 2}', {"a": [1, {"b": 2}]}),
    "a cut string": ('{"a": {"x": 1}, "b": "long', {"a": {"x": 1}, "b": "long"}),
    "Python's words": ("{'a': True, 'b': None}", {"a": True, "b": None}),
    "in a fence, in prose": ("Here:\n```json\n{a: 1}\n```", {"a": 1}),
    "after thinking": ("<think>{</think>{a: 1}", {"a": 1}),
    "letters beyond ASCII stay": ("{'a': 'Zürich'}", {"a": "Zürich"}),
}


@pytest.mark.parametrize("name", MENDED)
def test_json_is_mended(name: str) -> None:
    text, value = MENDED[name]
    mended = repair_json(text)
    assert mended is not None
    assert json.loads(mended) == value


@pytest.mark.parametrize("text", ["", "   ", "I do not know.", "<think>hm", "[" * 100_000], ids=len)
def test_what_cannot_be_mended_is_none(text: str) -> None:
    assert repair_json(text) is None


def test_letters_are_not_escaped() -> None:
    assert repair_json("{'a': 'Zürich'}") == '{"a": "Zürich"}'


@given(OBJECTS)
def test_json_is_left_alone(value: dict[str, Any]) -> None:
    text = json.dumps(value, ensure_ascii=False)
    assert repair_json(text) == text


@given(
    OBJECTS,
    st.sampled_from(["{}", "<think>so</think>{}", "```json\n{}\n```", "Sure: {} Bye.", "x</think>\n{}"]),
)
def test_json_is_found_in_what_stands_around_it(value: dict[str, Any], around: str) -> None:
    text = json.dumps(value)
    if not any(mark in text.lower() for mark in ("think", "```", "~~~")):
        assert repair_json(around.replace("{}", text)) == text


@given(st.text(st.characters(codec="utf-8"), max_size=60))
def test_whatever_comes_out_is_json(text: str) -> None:
    mended = repair_json(text)
    if mended is not None:
        json.loads(mended)
