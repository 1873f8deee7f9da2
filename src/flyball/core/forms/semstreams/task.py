"""TaskMessage: what a loop is asked to do."""

from __future__ import annotations

from typing import ClassVar

from flyball.core.errors import InvalidMessage
from flyball.core.forms.fields import filled
from flyball.core.forms.semstreams.context import ConstructedContext
from flyball.core.forms.semstreams.keyed import Always, Payload
from flyball.core.forms.semstreams.kinds import Choice, Object, Tools
from flyball.core.forms.semstreams.types import Category
from flyball.core.forms.semstreams.validation import validate_tool_choice, validate_tool_definition
from flyball.core.messages import JSON
from flyball.core.task import ABOUT_A_TASK


class TaskMessage(Payload, frozen=True, kw_only=True):
    """A task. Without a `loop_id` it begins a new loop.

    `context` is taken instead of gathering any, `tools` are offered instead of the agent's own, and
    `metadata` goes with every tool call of the loop.
    """

    NAME: ClassVar[str] = Category.TASK

    loop_id: str = ""
    task_id: Always[str] = ""
    role: Always[str] = ""
    model: Always[str] = ""
    prompt: Always[str] = ""
    workflow_slug: str = ""
    workflow_step: str = ""
    channel_type: str = ""
    channel_id: str = ""
    user_id: str = ""
    parent_loop_id: str = ""
    depth: int = 0
    max_depth: int = 0
    context: ConstructedContext | None = None
    context_request_id: str = ""
    tools: Tools = ()
    tool_choice: Choice = None
    metadata: Object = None

    def validate(self) -> None:
        """Check that the task can be begun.

        Raises:
            InvalidMessage: there is no task_id, role, model or prompt, or a depth is below 0.
            InvalidRequest: a tool lacks its name or its parameters, or a tool choice its tool's name.
        """
        self.require("task_id", "role", "model", "prompt")
        for field in ("depth", "max_depth"):
            if getattr(self, field) < 0:
                raise InvalidMessage(f"{field} in a task is {getattr(self, field)}, below 0", field=field)
        for tool in self.tools:
            validate_tool_definition(tool)
        if self.tool_choice is not None:
            validate_tool_choice(self.tool_choice)

    def loop_metadata(self) -> dict[str, JSON] | None:
        """What a loop's metadata is to hold of this task: its own, and what it says of itself.

        A loop's entity and its events are told from there.
        """
        about = filled(**{name: getattr(self, name) for name in ABOUT_A_TASK})
        return {**(self.metadata or {}), **about} or None
