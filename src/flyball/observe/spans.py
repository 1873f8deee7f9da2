"""Which span a runtime event begins or ends, and what is said of it."""

from __future__ import annotations

from typing import Any, NamedTuple

from flyball.core.errors import FailureCategory, SystemError  # noqa: A004 - pagantic's name for it
from flyball.observe import genai, genai_content
from flyball.observe.events import (
    ModelRequestedEvent,
    ModelRespondedEvent,
    RunCompletedEvent,
    RunStartedEvent,
    RuntimeEvent,
    StepEndedEvent,
    StepStartedEvent,
    ToolCalledEvent,
    ToolEndedEvent,
)
from flyball.observe.timeline import succeeded
from flyball.observe.tool_outcome import code_of


class Begun(NamedTuple):
    """A span that begins: its name, when, and what is said of it."""

    name: str
    at: float
    attributes: dict[str, Any]


class Over(NamedTuple):
    """A span that is over: when, what is said of it now, and what went wrong.

    `begun` is how it began, for whoever did not see that.
    """

    at: float
    attributes: dict[str, Any]
    failure: SystemError | str | None
    begun: Begun


def begun(event: RuntimeEvent, *, content: bool) -> Begun | None:
    """The span that an event begins, if it begins one."""
    if isinstance(event, RunStartedEvent):
        return Begun(genai.run_name(event), event.started_at, genai.run_attributes(event))
    if isinstance(event, ModelRequestedEvent):
        said = genai_content.asked_content(event) if content else {}
        return Begun(genai.call_name(event), event.at, {**genai.call_attributes(event), **said})
    if isinstance(event, ToolCalledEvent):
        said = genai_content.called_content(event) if content else {}
        return Begun(_tool(event), event.called_at, {**genai.tool_attributes(event), **said})
    if isinstance(event, StepStartedEvent):
        return Begun(_step(event), event.at, genai.step_attributes(event))
    return None


def over(event: RuntimeEvent, *, content: bool) -> Over | None:
    """The span that an event ends, if it ends one."""
    if isinstance(event, RunCompletedEvent):
        first = Begun(genai.run_name(event), event.started_at, genai.run_attributes(event))
        used = genai.usage_attributes(event.usage)
        return Over(event.completed_at, used, event.failure or (event.error or None), first)
    if isinstance(event, ModelRespondedEvent):
        told = genai.answer_attributes(event)
        said = genai_content.answer_content(event) if content else {}
        first = Begun(genai.call_name(event), event.at - event.duration, {genai.AGENT_NAME: event.agent})
        return Over(event.at, {**told, **said}, event.failure or (event.error or None), first)
    if isinstance(event, ToolEndedEvent):
        told = genai.tool_attributes(event)
        said = genai_content.result_content(event) if content else {}
        first = Begun(_tool(event), event.at - event.duration, told)
        return Over(event.at, said, None if succeeded(event) else _tool_failure(event), first)
    if isinstance(event, StepEndedEvent):
        told = genai.step_attributes(event)
        first = Begun(_step(event), event.at - event.duration, told)
        used = genai.usage_attributes(event.usage)
        return Over(event.at, used, event.failure or (event.error or None), first)
    return None


def _tool(event: ToolCalledEvent | ToolEndedEvent) -> str:
    return f"{genai.EXECUTE_TOOL} {event.tool_name}"


def _step(event: StepStartedEvent | StepEndedEvent) -> str:
    return f"step {event.name}"


def _tool_failure(event: ToolEndedEvent) -> SystemError:
    """What went wrong in a tool call: by its code, or by its status where it is no error."""
    result = event.result
    code = code_of(result) or str(result.status)
    return SystemError(code, FailureCategory.TOOL, result.error or code)
