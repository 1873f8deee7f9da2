"""agno on the workloads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import workloads as c
from agno.agent import Agent
from agno.metrics import MessageMetrics
from agno.models.base import Model
from agno.models.message import Message
from agno.models.response import ModelResponse
from agno.run.agent import RunContentEvent

NAME, DISTS, IMPORT = "agno", ["agno", "pydantic"], "from agno.agent import Agent"
NOTES = (
    "Agent.arun on a bare subclass of Model; telemetry off, no database; typed output natively, as with its "
    "models that can; the conversation before is given as the input's first messages"
)
APART = 0


@dataclass
class Scripted(Model):
    """Asks for `turns` calls of add, one a turn, then answers."""

    id: str = "scripted"
    turns: int = 0
    answer: str = c.ANSWER
    tokens: int = 5
    supports_native_structured_outputs: bool = True

    async def ainvoke(self, messages: list[Message], *args: Any, **kwargs: Any) -> ModelResponse:
        await c.model_called(messages)
        turn = (len(messages) - 2) // 2
        usage = MessageMetrics(input_tokens=20, output_tokens=self.tokens, total_tokens=20 + self.tokens)
        if turn < self.turns:
            function = {"name": "add", "arguments": c.args_json(turn)}
            call = {"id": f"call_{turn}", "type": "function", "function": function}
            return ModelResponse(role="assistant", tool_calls=[call], response_usage=usage)
        return ModelResponse(role="assistant", content=self.answer, response_usage=usage)

    async def ainvoke_stream(
        self, messages: list[Message], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ModelResponse]:
        await c.model_called(messages)
        for delta in c.DELTAS:
            yield ModelResponse(content=delta)
        usage = MessageMetrics(input_tokens=20, output_tokens=c.N_DELTAS, total_tokens=20 + c.N_DELTAS)
        yield ModelResponse(response_usage=usage)

    def invoke(self, *args: Any, **kwargs: Any) -> ModelResponse:
        raise NotImplementedError("only the async methods are asked for")

    def invoke_stream(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("only the async methods are asked for")

    def _parse_provider_response(self, response: Any, **kwargs: Any) -> ModelResponse:
        raise NotImplementedError("the answers are made in their final form")

    def _parse_provider_response_delta(self, response: Any) -> ModelResponse:
        raise NotImplementedError("the answers are made in their final form")


class Peer:
    def __init__(self, turns: int) -> None:
        given: Any = {"system_message": c.SYSTEM, "telemetry": False}
        self._text = Agent(model=Scripted(), tools=[c.add], **given)
        self._tools = Agent(model=Scripted(turns=turns), tools=[c.add], **given)
        report = Scripted(answer=c.REPORT_JSON, tokens=500)
        self._report = Agent(model=report, output_schema=c.Report, **given)
        self._stream = Agent(model=Scripted(), **given)

    async def text(self) -> str:
        return (await self._text.arun(c.PROMPT)).content

    async def tools(self) -> str:
        return (await self._tools.arun(c.PROMPT)).content

    async def structured(self) -> c.Report:
        return (await self._report.arun(c.PROMPT)).content

    async def stream(self) -> int:
        n, out = 0, []
        async for event in self._stream.arun(c.PROMPT, stream=True):
            if isinstance(event, RunContentEvent) and event.content:
                out.append(event.content)
                n += 1
        assert "".join(out) == c.STREAMED
        return n

    def prior(self) -> list[Message]:
        question, reply = Message(role="user", content=c.Q), Message(role="assistant", content=c.A)
        return [question, reply] * (c.N_HISTORY // 2)

    async def history(self, prior: list[Message]) -> str:
        return (await self._text.arun([*prior, Message(role="user", content=c.PROMPT)])).content
