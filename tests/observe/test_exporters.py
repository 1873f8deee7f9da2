"""Exporters: where traces go, and what stays out."""

from __future__ import annotations

import io
import json
import os
import pty
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball import Agent, ConsoleExporter, JSONFileExporter, MultiExporter, RunTrace, Tracing
from flyball.core.errors import InvalidMessage, UserError
from flyball.core.usage import RunUsage
from flyball.observe.trace import TraceStep, TraceStepKind
from flyball.observe.trace_text import one_line, trace_text
from flyball.testing import ScriptedEngine
from tests.observe.logged import logged

TRACE = RunTrace(
    run_id="run-1",
    prompt="What is\n6 times 7?",
    start_time=1000.0,
    end_time=1002.5,
    duration=2.5,
    steps=(
        TraceStep(TraceStepKind.GUARDRAIL, 1000.0, data={"name": "max_turns", "passed": True}),
        TraceStep(TraceStepKind.GUARDRAIL, 1000.0, data={"name": "rude", "passed": False, "error": "no"}),
        TraceStep(TraceStepKind.MODEL_REQUEST, 1000.0, data={"turn": 1, "messages": 1}),
        TraceStep(
            TraceStepKind.MODEL_RESPONSE,
            1001.25,
            1.25,
            {"text": "Well,", "tool_calls": [{"name": "multiply"}]},
        ),
        TraceStep(TraceStepKind.TOOL_CALL, 1001.25, data={"tool_name": "multiply", "args_json": '{"x":6}'}),
        TraceStep(
            TraceStepKind.TOOL_RESULT,
            1001.5,
            0.25,
            {"tool_name": "multiply", "result": "42\x1b[2J\u202e"},
        ),
        TraceStep(TraceStepKind.MODEL_RESPONSE, 1002.5, 1.0, {"error": "it is down"}),
    ),
    usage=RunUsage(20, 5, requests=2, tool_calls=1),
    error="it is down",
)
TEXT = """\
run run-1  What is 6 times 7?
      0.000s  guardrail       max_turns passed
      0.000s  guardrail       rude refused: no
      0.000s  model_request   turn 1, 1 messages
      1.250s  model_response  1.25 s  Well, calls multiply
      1.250s  tool_call       multiply {"x":6}
      1.500s  tool_result     250 ms  multiply 42\\x1b[2J\\u202e
      2.500s  model_response  1.00 s  error: it is down
  it is down
  failed in 2.50 s: 2 model calls, 1 tool call, 20 tokens in, 5 out
"""


def test_for_people_to_read() -> None:
    file = io.StringIO()
    ConsoleExporter(file).export(TRACE)
    assert file.getvalue() == trace_text(TRACE) == TEXT


def test_to_where_errors_go_without_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    ConsoleExporter().export(TRACE)
    assert capsys.readouterr() == ("", TEXT)


@pytest.mark.parametrize("plain", ["", "1"])
def test_in_colour_on_a_terminal(plain: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", plain)
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w", encoding="utf-8") as terminal:
        ConsoleExporter(terminal).export(TRACE)
        shown = os.read(ours, 10_000).decode()
    os.close(ours)
    assert ("\x1b[36mmodel_request" in shown) is not bool(plain)
    assert ("\x1b[31mfailed\x1b[0m" in shown) is not bool(plain)
    assert "\x1b[2J" not in shown, "what a tool said cannot steer it"


def test_what_the_console_cannot_write_is_left_out() -> None:
    raw = io.BytesIO()
    with io.TextIOWrapper(raw, encoding="ascii") as file:
        ConsoleExporter(file).export(RunTrace(run_id="é" * 100))
        assert b"run ???" in raw.getvalue()


@given(st.text())
def test_one_line_is_one_line(text: str) -> None:
    shown = one_line(text, 20)
    assert len(shown) <= 20
    assert shown.isprintable()


async def test_one_file_a_run(tmp_path: Path) -> None:
    exporter = JSONFileExporter(tmp_path / "a" / "traces")
    await exporter.export(TRACE)
    await exporter.export(TRACE)
    (file,) = exporter.directory.iterdir()
    assert file == exporter.path_of("run-1")
    document = json.loads(file.read_text())
    assert list(document) == [
        "run_id",
        "prompt",
        "start_time",
        "end_time",
        "duration",
        "steps",
        "usage",
        "success",
        "error",
    ]
    assert (document["start_time"], document["duration"]) == ("1970-01-01T00:16:40Z", 2_500_000_000)
    assert document["steps"][2] == {
        "kind": "model_request",
        "timestamp": "1970-01-01T00:16:40Z",
        "duration": 0,
        "data": {"turn": 1, "messages": 1},
    }
    assert document["usage"]["requests"] == 2
    assert RunTrace.from_json(file.read_bytes()) == TRACE


@given(
    st.text() | st.sampled_from(["", ".", "..", "../x", "/etc/passwd", "a/b", "a\\b", "~", "x" * 300, "\0"])
)
def test_no_id_leads_out_of_the_folder(run_id: str) -> None:
    folder = Path("/traces")
    path = JSONFileExporter(folder).path_of(run_id)
    assert path.parent == folder
    assert len(path.name) <= 255
    assert path.name.isascii()
    assert not path.name.startswith((".", "~"))
    assert not set(path.name) & set("/\\\0 ")


@given(st.lists(st.text(), min_size=2, max_size=2, unique=True))
def test_two_runs_have_two_files(ids: list[str]) -> None:
    paths = [JSONFileExporter("traces").path_of(run_id) for run_id in ids]
    assert paths[0] != paths[1]


async def test_what_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    exporter = JSONFileExporter(tmp_path)
    exporter.path_of("run-1").mkdir()
    with pytest.raises(OSError):  # noqa: PT011 - which one depends on the system
        await exporter.export(TRACE)
    assert os.listdir(tmp_path) == ["run-1.json"]


async def test_one_that_fails_is_logged_and_the_others_are_called() -> None:
    traces: list[RunTrace] = []

    class Breaks:
        async def export(self, trace: RunTrace) -> None:
            raise OSError("the disk is full")

    class Keeps:
        def export(self, trace: RunTrace) -> None:
            traces.append(trace)

    agent = Agent(
        ScriptedEngine("hi"), features=[Tracing(Breaks(), MultiExporter(Breaks(), Keeps())), Tracing(Keeps())]
    )
    with logged() as records:
        result = await agent.run("go")
    assert result.output == "hi"
    assert traces == [result.trace, result.trace]
    assert [record.getMessage() for record in records] == [
        f"the exporter Breaks failed when it was told the trace of run {result.run_id!r}; the run goes on"
    ] * 2


@pytest.mark.parametrize(
    ("data", "where"),
    [
        (b"[]", "trace"),
        (b'{"steps": 1}', "trace.steps"),
        (b'{"steps": [{"kind": "nap"}]}', "kind"),
        (b'{"start_time": "today"}', "start_time"),
        (b"{", "JSON"),
    ],
)
def test_what_is_no_trace(data: bytes, where: str) -> None:
    with pytest.raises(InvalidMessage, match=where):
        RunTrace.from_json(data)


def test_what_gollem_leaves_out_is_nothing() -> None:
    assert RunTrace.from_json(b'{"run_id": "one", "steps": null}') == RunTrace(run_id="one")
    step: Any = RunTrace.from_json(b'{"steps": [{"kind": "guardrail", "data": [1]}]}').steps[0]
    assert (step.data, step.timestamp) == ([1], 0.0)


def test_what_is_no_exporter() -> None:
    with pytest.raises(UserError, match=r"Tracing takes objects with export\(trace\)"):
        Tracing(sys.stderr)  # pyright: ignore[reportArgumentType]
    assert repr(Tracing(ConsoleExporter())) == "<Tracing ConsoleExporter>"
