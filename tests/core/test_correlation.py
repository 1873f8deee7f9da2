"""The ids of one piece of work: what W3C's header says of them, and what is no such header."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball import Correlation, CorrelationContext

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def test_pagantics_name_and_fields() -> None:
    assert CorrelationContext is Correlation
    pagantics = {"request_id", "session_id", "trace_id", "span_id", "parent_span_id", "caused_by"}
    assert pagantics | {"step_name", "tool_call_id"} < set(Correlation.__struct_fields__)


def test_a_header_goes_on() -> None:
    header = f"00-{TRACE}-{SPAN}-01"
    ids = Correlation.from_traceparent(header, request_id="r", session_id="s", task_id="t")
    assert ids == Correlation("r", "s", TRACE, SPAN, task_id="t")
    assert ids.traceparent == header
    assert Correlation("r").traceparent == ""


@given(st.integers(1, 2**128 - 1), st.integers(1, 2**64 - 1))
def test_what_is_written_is_read(trace: int, span: int) -> None:
    ids = Correlation(trace_id=f"{trace:032x}", span_id=f"{span:016x}")
    assert Correlation.from_traceparent(ids.traceparent) == ids


@pytest.mark.parametrize(
    "header",
    [
        "",
        "-",
        "00",
        "nonsense",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE}-{SPAN}-01-more",
        f"ff-{TRACE}-{SPAN}-01",
        f"0-{TRACE}-{SPAN}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE[1:]}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
    ],
)
def test_a_header_that_is_none_is_left_aside(header: str) -> None:
    assert Correlation.from_traceparent(header, request_id="r") == Correlation("r")


def test_a_later_version_may_say_more() -> None:
    assert Correlation.from_traceparent(f"cc-{TRACE}-{SPAN}-01-what-else").trace_id == TRACE
