"""SessionState: values by name, whole and apart from whoever has them, from any thread."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball import SessionState
from flyball.core.errors import UserError
from tests.strategies import json_objects, json_values


def test_values_are_set_got_and_deleted() -> None:
    state = SessionState({"a": 1})
    state.set("b", [1, 2])
    assert (state.get("a"), state.get("b"), state.get("c"), state.get("c", 3)) == (1, [1, 2], None, 3)
    assert state.items() == [("a", 1), ("b", [1, 2])]
    assert ("a" in state, "c" in state, len(state)) == (True, False, 2)
    assert state.delete("a")
    assert not state.delete("a")
    assert repr(state) == "<SessionState b>"
    state.clear()
    assert repr(state) == "<SessionState empty>"


def test_nobody_changes_a_value_from_outside() -> None:
    given: dict[str, Any] = {"list": [1]}
    state = SessionState(given)
    given["list"].append(2)
    state.get("list").append(3)
    state.items()[0][1].append(4)
    state.snapshot()["list"].append(5)
    assert state.get("list") == [1]


@given(json_objects, json_objects)
def test_a_snapshot_is_json_and_comes_back(one: dict[str, Any], other: dict[str, Any]) -> None:
    state = SessionState(one)
    snapshot = state.snapshot()
    written = msgspec.json.encode(snapshot)
    state.update(other)
    state.restore(msgspec.json.decode(written))
    assert msgspec.json.encode(state.snapshot()) == written


@given(st.lists(st.tuples(st.sampled_from("abc"), st.none() | json_values), max_size=8))
def test_it_is_a_dict(changes: list[tuple[str, Any]]) -> None:
    state, plain = SessionState(), dict[str, Any]()
    for key, value in changes:
        if value is None:
            assert state.delete(key) == (key in plain)
            plain.pop(key, None)
        else:
            state.set(key, value)
            plain[key] = value
    assert [key for key, _ in state.items()] == list(plain)


def test_what_has_no_json_form_is_refused_and_changes_nothing() -> None:
    state = SessionState({"a": 1})
    wrong: Any
    for wrong in ({"b": object()}, {3: 1}, 3, {"c": 1, "b": {"x": object()}}):
        with pytest.raises(UserError):
            state.update(wrong)
        with pytest.raises(UserError):
            state.restore(wrong)
    with pytest.raises(UserError):
        state.change("a", lambda _: object())
    assert state.snapshot() == {"a": 1}


def test_changes_from_several_threads_are_all_there() -> None:
    state = SessionState()

    def more(_: int) -> None:
        state.change("n", lambda n: n + 1, 0)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(more, range(500)))
    assert state.get("n") == 500
