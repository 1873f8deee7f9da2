"""gollem's tools, choices, counts and snapshots."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from flyball.core.errors import InvalidMessage
from flyball.core.forms import gollem
from flyball.core.messages import Message
from flyball.core.tools import ToolChoice, ToolDefinition, ToolKind
from flyball.core.usage import RunUsage, Usage
from tests.core.forms.documents import filled_objects, filled_texts, json_objects, texts
from tests.core.forms.ours import extras, gollem_histories
from tests.strategies import counts, maybe, moments, names

details = maybe(st.dictionaries(names, counts, min_size=1, max_size=2))


@given(
    st.builds(
        ToolDefinition,
        name=texts,
        parameters=json_objects,
        description=texts,
        kind=st.sampled_from(ToolKind),
        strict=maybe(st.booleans()),
        sequential=st.booleans(),
        outer_key=maybe(filled_texts),
        extra=extras,
    )
)
def test_our_definitions_come_back(tool: ToolDefinition) -> None:
    assert gollem.read_tool_definition(gollem.write_tool_definition(tool)) == tool


def test_what_a_definition_leaves_out() -> None:
    bare = ToolDefinition("f", {"type": "object"})
    assert gollem.write_tool_definition(bare) == {
        "name": "f",
        "parameters_schema": {"type": "object"},
        "kind": "function",
    }
    full = replace(
        bare, description="d", kind=ToolKind.OUTPUT, strict=False, sequential=True, outer_key="result"
    )
    assert gollem.write_tool_definition(full) == {
        "name": "f",
        "description": "d",
        "parameters_schema": {"type": "object"},
        "kind": "output",
        "strict": False,
        "sequential": True,
        "outer_typed_dict_key": "result",
    }


@pytest.mark.parametrize(
    "document", [{"kind": "strange"}, {"strict": "yes"}, {"parameters_schema": []}, {"name": 1}]
)
def test_wrong_definitions(document: dict[str, Any]) -> None:
    with pytest.raises(InvalidMessage):
        gollem.read_tool_definition(document)


@pytest.mark.parametrize(
    ("document", "choice", "written"),
    [
        ({"mode": "auto"}, ToolChoice(), None),
        ({}, ToolChoice(), {"mode": "auto"}),
        ({"mode": "required"}, ToolChoice("required"), None),
        ({"mode": "none"}, ToolChoice("none"), None),
        ({"tool_name": "f"}, ToolChoice("function", "f"), None),
        ({"mode": "auto", "tool_name": "f"}, ToolChoice("function", "f"), {"tool_name": "f"}),
        ({"mode": "required", "tool_name": "f"}, ToolChoice("required", "f"), None),
    ],
)
def test_tool_choices(document: dict[str, Any], choice: ToolChoice, written: dict[str, Any] | None) -> None:
    assert gollem.read_tool_choice(document) == choice
    assert gollem.write_tool_choice(choice) == (document if written is None else written)


def test_a_name_beside_auto_is_written_alone() -> None:
    assert gollem.write_tool_choice(ToolChoice("auto", "f")) == {"tool_name": "f"}


@pytest.mark.parametrize("document", [{"mode": "function"}, {"mode": "x"}, {"tool_name": 3}])
def test_wrong_choices(document: dict[str, Any]) -> None:
    with pytest.raises(InvalidMessage):
        gollem.read_tool_choice(document)


_usage = {
    "input_tokens": counts,
    "output_tokens": counts,
    "cache_write_tokens": counts,
    "cache_read_tokens": counts,
    "details": details,
    "extra": extras,
}


@given(st.builds(Usage, **_usage))
def test_our_usage_comes_back(usage: Usage) -> None:
    assert gollem.read_usage(gollem.write_usage(usage)) == usage


@given(st.builds(RunUsage, **_usage, requests=counts, tool_calls=counts))
def test_our_run_usage_comes_back(usage: RunUsage) -> None:
    assert gollem.read_run_usage(gollem.write_run_usage(usage)) == usage


def test_zeros_are_left_out_but_for_a_run_s_counts() -> None:
    assert gollem.write_usage(Usage(0, 5)) == {"output_tokens": 5}
    assert gollem.write_run_usage(RunUsage()) == {"requests": 0, "tool_calls": 0}


@pytest.mark.parametrize("document", [{"details": {"a": "b"}}, {"details": []}, {"input_tokens": 1.5}])
def test_wrong_usage(document: dict[str, Any]) -> None:
    with pytest.raises(InvalidMessage):
        gollem.read_usage(document)


@given(
    gollem_histories,
    st.builds(
        gollem.RunSnapshot,
        usage=st.builds(RunUsage, **_usage, requests=counts, tool_calls=counts),
        last_input_tokens=counts,
        retries=counts,
        tool_retries=details,
        run_id=texts,
        parent_run_id=texts,
        run_step=counts,
        run_start_time=maybe(moments),
        prompt=texts,
        tool_state=maybe(filled_objects),
        timestamp=maybe(moments),
        extra=extras,
    ),
)
def test_our_snapshots_come_back(history: list[Message], snapshot: gollem.RunSnapshot) -> None:
    snapshot = replace(snapshot, messages=tuple(history))
    assert gollem.decode_run_snapshot(gollem.encode_run_snapshot(snapshot)) == snapshot
    assert gollem.unmarshal_snapshot(gollem.marshal_snapshot(snapshot)) == snapshot


def test_the_bare_snapshot_has_the_keys_that_go_always_writes() -> None:
    zero = "0001-01-01T00:00:00Z"
    assert gollem.encode_run_snapshot(gollem.RunSnapshot()) == {
        "messages": [],
        "usage": {"requests": 0, "tool_calls": 0},
        "last_input_tokens": 0,
        "retries": 0,
        "run_id": "",
        "run_step": 0,
        "run_start_time": zero,
        "prompt": "",
        "timestamp": zero,
    }


@pytest.mark.parametrize(
    ("document", "where"),
    [
        ({"messages": 3}, "snapshot.messages"),
        ({"messages": [{"kind": "x"}]}, "snapshot.messages[0].kind"),
        ({"usage": []}, "snapshot.usage"),
        ({"tool_retries": {"f": "x"}}, "snapshot.tool_retries.f"),
        ({"run_start_time": "x"}, "snapshot.run_start_time"),
        ({"tool_state": []}, "snapshot.tool_state"),
    ],
)
def test_wrong_snapshots_are_placed(document: dict[str, Any], where: str) -> None:
    with pytest.raises(InvalidMessage) as caught:
        gollem.decode_run_snapshot(document)
    assert caught.value.details["where"] == where
