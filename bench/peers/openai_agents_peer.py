"""openai-agents on the workloads."""

# ruff: noqa: A002 - the framework calls it input

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import workloads as c
from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, function_tool, set_tracing_disabled
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
    ResponseUsage,
)
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails

NAME, DISTS, IMPORT = (
    "openai-agents",
    ["openai-agents", "openai", "pydantic"],
    "from agents import Agent, Runner",
)
NOTES = (
    "Runner.run on a bare subclass of Model; tracing off, no session; typed output by its only way, as text; "
    "the model streams its deltas and the completed response, and no events besides"
)
APART = 1
"""The instructions are no message of their own."""

_MAX_TURNS = 20  # the default is 10, and ten tool turns need 11

set_tracing_disabled(True)
_CONFIG = RunConfig(tracing_disabled=True)


def message(text: str) -> ResponseOutputMessage:
    return ResponseOutputMessage(
        id="message",
        content=[ResponseOutputText(annotations=[], text=text, type="output_text")],
        role="assistant",
        status="completed",
        type="message",
    )


class Scripted(Model):
    """Asks for `turns` calls of add, one a turn, then answers."""

    def __init__(self, turns: int, answer: str = c.ANSWER, tokens: int = 5) -> None:
        self.turns, self.answer, self.tokens = turns, answer, tokens

    async def get_response(
        self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any
    ) -> ModelResponse:
        await c.model_called(input)
        turn = (len(input) - 1) // 2
        if turn < self.turns:
            item: Any = ResponseFunctionToolCall(
                call_id=f"call_{turn}", name="add", arguments=c.args_json(turn), type="function_call"
            )
        else:
            item = message(self.answer)
        usage = Usage(requests=1, input_tokens=20, output_tokens=self.tokens, total_tokens=20 + self.tokens)
        return ModelResponse([item], usage, response_id=None)

    async def stream_response(
        self,
        system_instructions: Any,
        input: Any,
        *args: Any,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        await c.model_called(input)
        number = 0
        for number, delta in enumerate(c.DELTAS):
            yield ResponseTextDeltaEvent(
                content_index=0,
                delta=delta,
                item_id="message",
                logprobs=[],
                output_index=0,
                sequence_number=number,
                type="response.output_text.delta",
            )
        yield ResponseCompletedEvent(
            response=_completed(), sequence_number=number + 1, type="response.completed"
        )


def _completed() -> Response:
    usage = ResponseUsage(
        input_tokens=20,
        input_tokens_details=InputTokensDetails(cached_tokens=0, cache_write_tokens=0),
        output_tokens=c.N_DELTAS,
        output_tokens_details=OutputTokensDetails(reasoning_tokens=0),
        total_tokens=20 + c.N_DELTAS,
    )
    return Response(
        id="response",
        created_at=0,
        model="scripted",
        object="response",
        output=[message(c.STREAMED)],
        parallel_tool_calls=False,
        tool_choice="auto",
        tools=[],
        usage=usage,
    )


class Peer:
    def __init__(self, turns: int) -> None:
        add = function_tool(c.add)
        self._text = Agent("text", instructions=c.SYSTEM, tools=[add], model=Scripted(0))
        self._tools = Agent("tools", instructions=c.SYSTEM, tools=[add], model=Scripted(turns))
        report = Scripted(0, c.REPORT_JSON, 500)
        self._report = Agent("report", instructions=c.SYSTEM, model=report, output_type=c.Report)
        self._stream = Agent("stream", instructions=c.SYSTEM, model=Scripted(0))

    async def text(self) -> str:
        return (await Runner.run(self._text, c.PROMPT, run_config=_CONFIG)).final_output

    async def tools(self) -> str:
        return (
            await Runner.run(self._tools, c.PROMPT, max_turns=_MAX_TURNS, run_config=_CONFIG)
        ).final_output

    async def structured(self) -> c.Report:
        return (await Runner.run(self._report, c.PROMPT, run_config=_CONFIG)).final_output

    async def stream(self) -> int:
        n, out = 0, []
        result = Runner.run_streamed(self._stream, c.PROMPT, run_config=_CONFIG)
        async for event in result.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                out.append(event.data.delta)
                n += 1
        assert "".join(out) == c.STREAMED == result.final_output
        return n

    def prior(self) -> list[Any]:
        question, reply = {"role": "user", "content": c.Q}, {"role": "assistant", "content": c.A}
        return [question, reply] * (c.N_HISTORY // 2)

    async def history(self, prior: list[Any]) -> str:
        conversation = [*prior, {"role": "user", "content": c.PROMPT}]
        return (await Runner.run(self._text, conversation, run_config=_CONFIG)).final_output
