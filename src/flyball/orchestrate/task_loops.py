"""A loop that is asked for by a task, in SemStreams' words: what it says, laid over an agent's policy.

    tools, tool_choice      in the place of the agent's own, for the whole loop
    context                 taken as it is, after the instructions; no knowledge base is asked then
    model                   another one than the agent's; `default` is the agent's
    max_depth, metadata     how deep its children may be; what goes with every tool call

A task has the id of the loop that it begins, unless it names one. That makes a task safe to send twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from flyball.core.correlation import Correlation
from flyball.core.events import VERSION, Started
from flyball.core.forms.semstreams import TaskMessage
from flyball.core.messages import Message, Role, Text
from flyball.core.spec import LoopSpec
from flyball.core.task import ABOUT_A_TASK
from flyball.core.tools import ToolSpec
from flyball.orchestrate.lineage import limited

DEFAULT_MODEL = "default"
"""The model of whichever agent takes the task."""


def loop_of_task(task: TaskMessage) -> str:
    """The id of the loop that a task begins, or goes on with."""
    return task.loop_id or task.task_id


def task_started(
    task: TaskMessage,
    spec: LoopSpec,
    at: float,
    *,
    loop_id: str | None = None,
    history: Iterable[Message] = (),
    identity: dict[str, Any] | None = None,
) -> Started:
    """The beginning of the loop that a task asks for, under an agent's spec.

    `history` is the conversation that it goes on with, if any; then it is a loop of its own, `loop_id`.
    `identity` is as whom the agent acts.
    """
    return Started(
        at,
        VERSION,
        loop_id or loop_of_task(task),
        spec_of_task(task, spec),
        Message(Role.USER, (Text(task.prompt),)),
        tuple(history),
        Correlation(task_id=task.task_id),
        task.loop_metadata(),
        task.parent_loop_id,
        task.depth,
        identity=identity,
    )


def spec_of_task(task: TaskMessage, spec: LoopSpec) -> LoopSpec:
    """An agent's spec with what a task says instead."""
    changed: dict[str, Any] = {}
    if task.tools:
        changed["tools"] = {
            tool.name: replace(spec.tools[tool.name], definition=tool)
            if tool.name in spec.tools
            else ToolSpec(tool, elsewhere=True)
            for tool in task.tools
        }
    if task.tool_choice is not None:
        changed["tool_choice"] = task.tool_choice
    if task.model not in ("", DEFAULT_MODEL, spec.model):
        changed["model"] = task.model
    if task.context is not None and task.context.content:
        changed["instructions"] = "\n\n".join(
            [text for text in (spec.instructions, f"Context:\n{task.context.content}") if text]
        )
        changed["briefed"] = True
    return limited(replace(spec, **changed) if changed else spec, task.max_depth or None)


def task_of(started: Started, role: str) -> TaskMessage:
    """The task that asks for a loop, as others may read it: what it has no words for is left out."""
    metadata = dict(started.metadata or {})
    about: dict[str, Any] = {
        name: metadata.pop(name)
        for name in ABOUT_A_TASK
        if type(metadata.get(name)) is (int if name == "max_depth" else str)
    }
    about["role"] = about.get("role") or role
    return TaskMessage(
        loop_id=started.loop_id,
        task_id=started.correlation.task_id or started.loop_id,
        model=started.spec.model or DEFAULT_MODEL,
        prompt=started.prompt.text if started.prompt is not None else "",
        parent_loop_id=started.parent_loop_id,
        depth=started.depth,
        tools=tuple([tool.definition for tool in started.spec.tools.values()]),
        tool_choice=started.spec.tool_choice,
        metadata=metadata or None,
        **about,
    )
