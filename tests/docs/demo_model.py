"""A model for the demo's test: it looks at the weather, then says what it found in the form asked for."""

from __future__ import annotations

from flyball.core.messages import Message, Role, assistant
from flyball.core.usage import Usage
from flyball.inference.answers import tool_call
from flyball.inference.engine import Engine
from flyball.inference.model_string import ModelRef
from flyball.inference.request import Request
from flyball.inference.scripted import FunctionEngine

FORECAST = {"city": "Paris", "temperature": 12, "umbrella": True}


def engine_for(ref: ModelRef) -> Engine:
    """The engine of `demo`."""
    del ref
    return FunctionEngine(answer)


async def answer(request: Request) -> Message:
    """What follows from the request."""
    said: Message = assistant("It keeps its speed.")
    names = [tool.name for tool in request.tools]
    if names == ["final_result"]:
        said = assistant(tool_call("final_result", {"urgent": True}))
    elif names and request.messages[-1].role is not Role.TOOL:
        said = assistant(tool_call("weather", {"city": "Paris"}))
    elif names:
        said = assistant(tool_call("final_result", FORECAST))
    return Message(said.role, said.parts, usage=Usage(input_tokens=40, output_tokens=20))
