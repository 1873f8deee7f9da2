"""The engine behind `test`: it answers any request without a model, and always in the same way."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from msgspec.json import encode
from msgspec.structs import replace

from flyball.core.messages import Message, Role
from flyball.core.tools import ToolDefinition, ToolKind
from flyball.inference.answers import result_of, text_answer, tool_call_answer
from flyball.inference.cut import events_of
from flyball.inference.minimum.value import smallest_value
from flyball.inference.profile import Profile, profile_for
from flyball.inference.request import ModelInfo, Request, Result
from flyball.inference.stream import StreamEvent

_SHOWN = 60
_CHUNK = 8


class StandInEngine:
    """Stands in for a model where only the shape of an answer matters: smoke tests, demonstrations.

    It calls no function tools unless the tool choice makes it. Where the answer must have a form (an output
    tool, a schema) it gives the smallest value that has it; else it gives its text, or a sentence that names
    the prompt.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str | None = None) -> None:
        self._text = text

    async def infer(self, request: Request) -> Result:
        """The answer that the request asks for.

        Raises:
            SchemaMalformed: no value can be made for a schema that the request carries.
        """
        return result_of(self._answer(request), request, "test")

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """The same, a few characters at a time."""
        for event in events_of((await self.infer(request)).message, _CHUNK):
            yield event

    def model_info(self) -> ModelInfo:
        """The model is called `test`."""
        return ModelInfo("test", provider="test")

    @property
    def profile(self) -> Profile:
        """It finds values for schemas, and none for grammars."""
        return replace(profile_for(self.model_info()), grammar=False)

    def _answer(self, request: Request) -> Message:
        tool = self._tool_to_call(request)
        if tool is not None:
            return tool_call_answer(tool.name, smallest_value(tool.parameters))
        if request.output is not None:
            return text_answer(encode(smallest_value(request.output.schema)).decode("utf-8"))
        return text_answer(self._text or f"This is a test answer to: {_prompt(request)}")

    def _tool_to_call(self, request: Request) -> ToolDefinition | None:
        choice = request.tool_choice
        if choice is not None and choice.mode == "none":
            return None
        if choice is not None and choice.forced is not None:
            return next((tool for tool in request.tools if tool.name == choice.forced), None)
        outputs = [tool for tool in request.tools if tool.kind is ToolKind.OUTPUT]
        if outputs:
            return None if self._text is not None and request.allows_text else outputs[0]
        if choice is not None and choice.mode == "required":
            return next(iter(request.tools), None)
        return None


def _prompt(request: Request) -> str:
    """The last words of the user, cut where they are long."""
    for message in reversed(request.messages):
        if message.role is Role.USER and message.text:
            text = message.text
            return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return "(no prompt)"
