"""Snapshots as data: their JSON, and branches of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json

from flyball.core.carried import Carried
from flyball.core.errors import InvalidMessage
from flyball.core.messages import Message, Role, Text, ToolCall, assistant, system, tool_result, user
from flyball.core.snapshot import RunSnapshot, answered, last_input_tokens, taken
from flyball.core.usage import RunUsage, Usage
from tests.strategies import (
    extras,
    filled_objects,
    maybe,
    messages,
    moments,
    names,
    run_usages,
    texts,
)

HISTORY = (system("Be brief."), user("hi"), assistant("hello"), user("and?"), assistant("that is all"))

snapshots = st.builds(
    RunSnapshot,
    messages=st.lists(messages, max_size=3).map(tuple),
    usage=run_usages,
    last_input_tokens=st.integers(0, 99),
    retries=st.integers(0, 3),
    tool_retries=maybe(st.dictionaries(names, st.integers(0, 3), min_size=1, max_size=2)),
    run_id=texts,
    parent_run_id=texts,
    run_step=st.integers(0, 99),
    run_start_time=maybe(moments),
    prompt=texts,
    tool_state=maybe(filled_objects),
    timestamp=maybe(moments),
    extra=extras,
)


@given(snapshots)
def test_json_loses_nothing(snapshot: RunSnapshot) -> None:
    assert RunSnapshot.from_json(snapshot.to_json()) == snapshot
    assert RunSnapshot.from_json(snapshot.to_json().decode()) == snapshot


def test_the_keys_are_gollems() -> None:
    whole = RunSnapshot(
        (user("hi"),), RunUsage(1), 1, 1, {"f": 1}, "run", "above", 1, 1.0, "hi", {"counter": 1}, 2.0
    )
    assert set(json.decode(whole.to_json())) == {
        "messages", "usage", "last_input_tokens", "retries", "tool_retries", "run_id", "parent_run_id",
        "run_step", "run_start_time", "prompt", "tool_state", "timestamp",
    }  # fmt: skip


@pytest.mark.parametrize(
    "data", [b"", b"[]", b'{"usage": 3}', b'{"messages": [{"kind": "request"}]}', b"\xff"]
)
def test_what_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidMessage, match=r"cannot be read .*to_json\(\)"):
        RunSnapshot.from_json(data)


def without_the_last(messages: list[Message]) -> list[Message]:
    return messages[:-2]


def in_place(messages: list[Message]) -> None:
    del messages[-2:]


@pytest.mark.parametrize("modify", [without_the_last, in_place])
def test_a_branch_has_other_messages_and_leaves_the_original(modify: Any) -> None:
    snapshot = RunSnapshot(HISTORY, RunUsage(requests=2), run_step=2, tool_state={"f": {"n": [1]}})
    other = snapshot.branch(modify)
    assert other.messages == HISTORY[:-2]
    assert (other.usage, other.run_step) == (snapshot.usage, 2)
    assert other.tool_state == {"f": {"n": [1]}}
    assert other.tool_state is not None
    assert snapshot.tool_state is not None
    other.tool_state["f"]["n"].append(2)
    assert (snapshot.messages, snapshot.tool_state) == (HISTORY, {"f": {"n": [1]}})


def test_a_branch_that_no_provider_takes_is_refused() -> None:
    snapshot = RunSnapshot((user("hi"), assistant("", ToolCall("a", "f")), tool_result("a", "f", 1)))
    with pytest.raises(InvalidMessage, match="unanswered tool calls: a"):
        snapshot.branch(lambda messages: messages[:-1])
    with pytest.raises(InvalidMessage, match="message 0 of the history"):
        snapshot.branch(lambda messages: messages[1:])
    with pytest.raises(InvalidMessage, match="no Message with a Role"):
        snapshot.branch(lambda _: ["hi"])  # pyright: ignore[reportReturnType, reportArgumentType]
    with pytest.raises(InvalidMessage, match=r"gives messages, or None .* not 'hi'"):
        snapshot.branch(lambda _: "hi")  # pyright: ignore[reportReturnType, reportArgumentType]


def test_an_answer_whose_calls_are_open_is_not_in_a_snapshot() -> None:
    asked = Message(Role.ASSISTANT, (Text("hm"), ToolCall("a", "f")), usage=Usage(9))
    assert answered((user("hi"), asked)) == (user("hi"),)
    closed = (user("hi"), asked, tool_result("a", "f", 1))
    assert answered(closed) == closed
    assert answered(()) == ()
    snapshot = taken((*closed, assistant("", ToolCall("b", "f"))), Carried("run"), started_at=1.0, at=None)
    assert snapshot.messages == closed
    assert snapshot.last_input_tokens == 9
    assert last_input_tokens((user("hi"),)) == last_input_tokens(HISTORY) == 0


@given(snapshots)
def test_what_is_carried_comes_back(snapshot: RunSnapshot) -> None:
    again = taken(snapshot.messages, snapshot.carried, started_at=0.0, at=None)
    assert again.carried == snapshot.carried
