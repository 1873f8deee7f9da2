"""Models for the tests of the command line, found as `scripted:<name>` through an entry point.

They keep nothing between calls: what they say follows from the request, so a run can be gone on with by
another process. `GO` in the environment lets those answer that otherwise never end. `forecast-waits` makes
a file `asked`, and answers when there is a file `go`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from pathlib import Path

from msgspec.structs import replace

from flyball.core.errors import ContextExceeded, EngineError, UnknownModel
from flyball.core.messages import FinishReason, Message, Role, assistant
from flyball.core.usage import Usage
from flyball.inference.answers import tool_call
from flyball.inference.cut import events_of
from flyball.inference.engine import Engine
from flyball.inference.model_string import ModelRef
from flyball.inference.profile import Profile, profile_for
from flyball.inference.request import ModelInfo, Request, Result
from flyball.inference.stream import StreamEvent, TextDelta

LINES = 8_000
"""More than a pipe holds."""


class Scripted:
    """A model whose answers follow from its name and the request."""

    def __init__(self, name: str) -> None:
        self._name = name

    async def infer(self, request: Request) -> Result:
        if self._name == "hangs" and "GO" not in os.environ:
            await asyncio.Event().wait()
        return Result(self._answer(request))

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        hangs = self._name == "hangs" or (
            self._name == "forecast-hangs" and request.messages[-1].role is Role.TOOL
        )
        if self._name == "forecast-waits" and request.messages[-1].role is Role.USER:
            Path("asked").touch()  # noqa: ASYNC240
            while not Path("go").exists():  # noqa: ASYNC110, ASYNC240 - another process makes it
                await asyncio.sleep(0.01)
        if hangs and "GO" not in os.environ:
            yield TextDelta(0, "Once upon a ")
            if number := os.environ.get("SIGNAL"):
                os.kill(os.getpid(), int(number))
            await asyncio.Event().wait()
        for event in events_of(self._answer(request), 7):
            yield event

    def model_info(self) -> ModelInfo:
        return ModelInfo(self._name, 4096, "scripted")

    @property
    def profile(self) -> Profile:
        return replace(profile_for(self.model_info()), grammar=True, native_schema=self._name == "cut")

    async def aclose(self) -> None:
        if file := os.environ.get("CLOSED"):
            with open(file, "a", encoding="utf-8") as out:  # noqa: ASYNC230
                out.write("closed\n")

    def _answer(self, request: Request) -> Message:
        last, usage = request.messages[-1], Usage(input_tokens=41, output_tokens=12, tokens_per_second=44.0)
        return replace(self._said(request, last), usage=usage, model=self._name)

    def _said(self, request: Request, last: Message) -> Message:
        if self._name.startswith("forecast"):
            if last.role is Role.TOOL:
                return assistant(f"It says: {last.tool_results[0].text}. Take an umbrella.")
            return assistant("Let me look. ", tool_call(request.tools[0].name, {"city": "Rome"}))
        if self._name == "hangs":
            return assistant("Once upon a time.")
        if self._name == "lines":
            return assistant("".join([f"line {number}\n" for number in range(LINES)]))
        if self._name == "rude":
            return assistant("\x1b[2J\x1b]0;owned\x07plain\x00 words")
        if self._name == "echo":
            said = [message.text for message in request.messages if message.role is Role.USER]
            return assistant(" | ".join(said))
        if self._name == "no-json":
            return assistant('{"city": 3}' if request.output is not None else "no")
        if self._name == "cut":
            return replace(assistant('{"city": "Ro'), finish_reason=FinishReason.LENGTH)
        if self._name == "full":
            raise ContextExceeded("9000 tokens do not fit into a context of 4096")
        raise EngineError("the lights went out")


def engine_for(ref: ModelRef) -> Engine:
    """The engine of `scripted:<name>`."""
    if ref.name == "broken":
        raise UnknownModel("there is no scripted model 'broken'")
    if ref.name == "bug":
        raise RuntimeError("a bug")
    return Scripted(ref.name)
