"""agent-framework-core on the workloads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import workloads as c
from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    UsageDetails,
    tool,
)
from agent_framework.observability import disable_instrumentation

NAME, DISTS = "agent-framework", ["agent-framework-core", "pydantic"]
IMPORT = "from agent_framework import Agent"
NOTES = (
    "Agent.run on a bare BaseChatClient with the layer that runs tools, without those for middleware and "
    "telemetry; instrumentation off, no session; typed output by its only way, response_format"
)
APART = 1
"""The instructions are an option of the call, no message."""

disable_instrumentation()


class Scripted(FunctionInvocationLayer, BaseChatClient):
    """Asks for `turns` calls of add, one a turn, then answers."""

    def __init__(self, turns: int, answer: str = c.ANSWER, tokens: int = 5) -> None:
        super().__init__()
        self.turns, self.answer, self.tokens = turns, answer, tokens

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Any:
        if stream:
            return self._build_response_stream(self._deltas(messages))
        return self._whole(messages, options)

    async def _whole(self, messages: Sequence[Message], options: Mapping[str, Any]) -> ChatResponse:
        await c.model_called(messages)
        turn = (len(messages) - 1) // 2
        if turn < self.turns:
            content = Content.from_function_call(f"call_{turn}", "add", arguments=c.args_json(turn))
        else:
            content = Content.from_text(self.answer)
        return ChatResponse(
            messages=Message("assistant", [content]),
            usage_details=UsageDetails(
                input_token_count=20, output_token_count=self.tokens, total_token_count=20 + self.tokens
            ),
            response_format=options.get("response_format"),
        )

    async def _deltas(self, messages: Sequence[Message]) -> AsyncIterator[ChatResponseUpdate]:
        await c.model_called(messages)
        for delta in c.DELTAS:
            yield ChatResponseUpdate(contents=[Content.from_text(delta)], role="assistant")
        usage = UsageDetails(
            input_token_count=20, output_token_count=c.N_DELTAS, total_token_count=20 + c.N_DELTAS
        )
        yield ChatResponseUpdate(contents=[Content.from_usage(usage)], role="assistant")


class Peer:
    def __init__(self, turns: int) -> None:
        add = tool(c.add, approval_mode="never_require")
        self._text = Agent(Scripted(0), c.SYSTEM, tools=[add])
        self._tools = Agent(Scripted(turns), c.SYSTEM, tools=[add])
        self._report = Agent(
            Scripted(0, c.REPORT_JSON, 500), c.SYSTEM, default_options={"response_format": c.Report}
        )
        self._stream = Agent(Scripted(0), c.SYSTEM)

    async def text(self) -> str:
        return (await self._text.run(c.PROMPT)).text

    async def tools(self) -> str:
        return (await self._tools.run(c.PROMPT)).text

    async def structured(self) -> c.Report:
        return (await self._report.run(c.PROMPT)).value

    async def stream(self) -> int:
        n, out = 0, []
        async for update in self._stream.run(c.PROMPT, stream=True):
            if text := update.text:
                out.append(text)
                n += 1
        assert "".join(out) == c.STREAMED
        return n

    def prior(self) -> list[Message]:
        question, reply = Message("user", [c.Q]), Message("assistant", [c.A])
        return [question, reply] * (c.N_HISTORY // 2)

    async def history(self, prior: list[Message]) -> str:
        return (await self._text.run([*prior, Message("user", [c.PROMPT])])).text
