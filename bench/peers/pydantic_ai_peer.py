"""pydantic-ai on the workloads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import workloads as c
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.usage import RequestUsage

NAME, DISTS, IMPORT = "pydantic-ai", ["pydantic-ai-slim", "pydantic"], "from pydantic_ai import Agent"
NOTES = (
    "Agent.run on a bare subclass of Model, which is leaner than FunctionModel; not instrumented, as by "
    "default; typed output natively, and by its default, the output tool; the stream is not debounced"
)
APART = 1
"""The instructions are no message of their own."""

_WHEN = datetime(2025, 1, 1, tzinfo=UTC)
_PROFILE = ModelProfile(supports_json_schema_output=True)


class Scripted(Model):
    """Asks for `turns` calls of add, one a turn, then answers."""

    def __init__(self, turns: int) -> None:
        super().__init__(profile=_PROFILE)
        self.turns = turns

    @property
    def model_name(self) -> str:
        return "scripted"

    @property
    def system(self) -> str:
        return "scripted"

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: Any,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        await c.model_called(messages)
        turn = (len(messages) - 1) // 2
        if turn < self.turns:
            part: Any = ToolCallPart("add", c.args_json(turn), f"call_{turn}")
        else:
            part = TextPart(c.ANSWER)
        return ModelResponse([part], usage=RequestUsage(input_tokens=20, output_tokens=5))


class ScriptedReport(Scripted):
    """Answers with the report: as text, or as the arguments of the output tool where there is one."""

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: Any,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        await c.model_called(messages)
        tools = model_request_parameters.output_tools
        part: Any = ToolCallPart(tools[0].name, c.REPORT_JSON, "call_0") if tools else TextPart(c.REPORT_JSON)
        return ModelResponse([part], usage=RequestUsage(input_tokens=20, output_tokens=500))


class Deltas(StreamedResponse):
    """The answer in many small pieces."""

    async def _get_event_iterator(self) -> AsyncIterator[Any]:
        manager = self._parts_manager
        for delta in c.DELTAS:
            for event in manager.handle_text_delta(vendor_part_id="content", content=delta):
                yield event
        self._usage = RequestUsage(input_tokens=20, output_tokens=c.N_DELTAS)

    async def close_stream(self) -> None:
        return

    @property
    def model_name(self) -> str:
        return "scripted"

    @property
    def provider_name(self) -> None:
        return None

    @property
    def provider_url(self) -> None:
        return None

    @property
    def timestamp(self) -> datetime:
        return _WHEN


class ScriptedStream(Scripted):
    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: Any,
        model_request_parameters: ModelRequestParameters,
        run_context: Any = None,
    ) -> AsyncIterator[StreamedResponse]:
        await c.model_called(messages)
        yield Deltas(model_request_parameters)


class Peer:
    def __init__(self, turns: int) -> None:
        self._text = Agent(Scripted(0), instructions=c.SYSTEM, tools=[c.add])
        self._tools = Agent(Scripted(turns), instructions=c.SYSTEM, tools=[c.add])
        report = ScriptedReport(0)
        self._report = Agent(report, instructions=c.SYSTEM, output_type=NativeOutput(c.Report))
        self._report_by_tool = Agent(report, instructions=c.SYSTEM, output_type=c.Report)
        self._stream = Agent(ScriptedStream(0), instructions=c.SYSTEM)

    async def text(self) -> str:
        return (await self._text.run(c.PROMPT)).output

    async def tools(self) -> str:
        return (await self._tools.run(c.PROMPT)).output

    async def structured(self) -> c.Report:
        return (await self._report.run(c.PROMPT)).output

    async def structured_by_tool(self) -> c.Report:
        return (await self._report_by_tool.run(c.PROMPT)).output

    async def stream(self) -> int:
        n, out = 0, []
        async with self._stream.run_stream(c.PROMPT) as result:
            async for delta in result.stream_text(delta=True, debounce_by=None):
                out.append(delta)
                n += 1
        assert "".join(out) == c.STREAMED
        return n

    def prior(self) -> list[ModelMessage]:
        question = ModelRequest([UserPromptPart(c.Q)])
        return [question, ModelResponse([TextPart(c.A)])] * (c.N_HISTORY // 2)

    async def history(self, prior: Sequence[ModelMessage]) -> str:
        return (await self._text.run(c.PROMPT, message_history=prior)).output
