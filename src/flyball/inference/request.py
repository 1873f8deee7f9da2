"""What is asked of an engine and what it answers, in the vocabulary of core: no vendor's types."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from flyball.core.around import Around
from flyball.core.messages import FinishReason, Message, ToolCall
from flyball.core.settings import ModelSettings
from flyball.core.tools import ToolChoice, ToolDefinition
from flyball.core.usage import Usage

NO_SETTINGS = ModelSettings()


class OutputObject(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """The schema that the answer's text must follow, where the engine can enforce one."""

    schema: dict[str, Any]
    name: str = "output"
    description: str = ""
    strict: bool | None = None


class Request(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True, gc=False):
    """One model call. It is complete and can be encoded: nothing else is needed to make it.

    `tools` holds the function tools and the output tools; `output` and `grammar` constrain the text;
    `allows_text` is false where only a tool call counts as an answer. `id` is the effect's id: the same when
    the call is made again after a crash. `deadline` is when the run that asks has no more use for an answer,
    in seconds since the epoch, for who would wait or try again; None where it has all the time.
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...] = ()
    settings: ModelSettings = NO_SETTINGS
    tool_choice: ToolChoice | None = None
    output: OutputObject | None = None
    grammar: str | None = None
    allows_text: bool = True
    id: str = ""
    deadline: float | None = None

    @property
    def run_id(self) -> str:
        """The id of the run that asks, for middleware and engines; an empty text where no run does."""
        run_id, *rest = self.id.rsplit("/", 4)
        return run_id if len(rest) == 4 else ""


class Result(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True, gc=False):
    """A model's answer: the message, which carries its usage, its model's name and why it stopped.

    `around` is what middleware did on the way; the engine that runs it says so.
    """

    message: Message
    request_id: str | None = None
    around: Around | None = None

    @property
    def content(self) -> str:
        """The text."""
        return self.message.text

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls it asks for."""
        return self.message.tool_calls

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages that the call added: one."""
        return (self.message,)

    @property
    def usage(self) -> Usage:
        """What it used; zeros where the engine did not say."""
        return self.message.usage or Usage()

    @property
    def finish_reason(self) -> FinishReason:
        """Why it stopped; told from the message where the engine did not say."""
        if self.message.finish_reason is not None:
            return self.message.finish_reason
        return FinishReason.TOOL_CALL if self.message.tool_calls else FinishReason.STOP


class ModelInfo(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """Which model an engine speaks for. `context_window` 0 means unknown."""

    name: str
    context_window: int = 0
    provider: str = ""
