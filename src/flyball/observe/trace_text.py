"""A trace as text for people: a line a step, short enough to be read at a glance."""

from __future__ import annotations

from typing import Any

from flyball.observe.trace import RunTrace, TraceStep, TraceStepKind

_WIDTH = 72
"""How much is shown of what somebody said."""
_BOLD, _DIM, _RED, _GREEN, _CYAN = "1", "2", "31", "32", "36"


def trace_text(trace: RunTrace, *, colour: bool = False) -> str:
    """A trace as lines, the last one ended: the run, its steps with the time since it began, what it used."""

    def painted(text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if colour and text else text

    how = painted("ok", _GREEN) if trace.success else painted("failed", _RED)
    asked = f"  {one_line(trace.prompt)}" if trace.prompt else ""
    lines = [f"{painted('run', _BOLD)} {one_line(trace.run_id)}{asked}"]
    began = trace.start_time or 0.0
    for step in trace.steps:
        since = painted(f"{max(0.0, step.timestamp - began):9.3f}s", _DIM)
        kind = painted(f"{step.kind:<14}", _RED if "error" in (step.data or ()) else _CYAN)
        lines.append(f"  {since}  {kind}  {_told(step)}".rstrip())
    if trace.error:
        lines.append(f"  {painted(one_line(trace.error), _RED)}")
    used, requests, calls = trace.usage, trace.usage.requests, trace.usage.tool_calls
    lines.append(
        f"  {how} in {_duration(trace.duration)}: {requests} model call{'s' * (requests != 1)}, "
        f"{calls} tool call{'s' * (calls != 1)}, {used.input_tokens} tokens in, {used.output_tokens} out"
    )
    return "\n".join(lines) + "\n"


def one_line(text: str, width: int = _WIDTH) -> str:
    """Text on one line, cut where it is too long; what could steer a terminal is written out."""
    text = " ".join(text[: 4 * width].split())
    shown = "".join([char if char.isprintable() else char.encode("unicode_escape").decode() for char in text])
    return shown if len(shown) <= width else shown[: width - 1] + "…"


def _told(step: TraceStep) -> str:
    data: dict[str, Any] = step.data or {}
    if step.kind is TraceStepKind.MODEL_REQUEST:
        return f"turn {data.get('turn')}, {data.get('messages')} messages"
    if step.kind is TraceStepKind.TOOL_CALL:
        return one_line(f"{data.get('tool_name')} {data.get('args_json')}")
    if step.kind is TraceStepKind.GUARDRAIL:
        verdict = "passed" if data.get("passed") else f"refused: {data.get('error')}"
        return one_line(f"{data.get('name')} {verdict}")
    return f"{_duration(step.duration)}  {one_line(_outcome(step, data))}".rstrip()


def _outcome(step: TraceStep, data: dict[str, Any]) -> str:
    """What came of a model call or a tool call."""
    if error := data.get("error"):
        return f"error: {error}"
    if step.kind is TraceStepKind.TOOL_RESULT:
        return f"{data.get('tool_name')} {data.get('result')}"
    calls = [call["name"] for call in data.get("tool_calls", [])]
    said = data.get("text") or ""
    return " ".join([part for part in (said, f"calls {', '.join(calls)}" if calls else "") if part])


def _duration(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"
