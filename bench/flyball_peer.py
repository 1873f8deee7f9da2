"""flyball on the workloads: what a user would write, with the journal, the events, the usage and the ids on.

The scripted model builds a fresh answer for each call, as the floor's does, and says what it used, which the
floor's does not. The last run's result is kept, so that the work can be proven from its journal.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import workloads as c

from flyball import Agent, Limits, RunResult, UsageLimits, tool
from flyball.core.messages import Message, Role, Text, ToolCall
from flyball.core.usage import Usage
from flyball.inference.cut import events_of
from flyball.inference.request import ModelInfo, Request, Result
from flyball.inference.stream import Finish, StreamEvent, TextDelta

NAME, DISTS, IMPORT = "flyball", ["flyball"], "from flyball import Agent, tool"
NOTES = "Agent.run with its defaults: events journaled in memory, usage counted, limits and loop detection on"

_INFO = ModelInfo("scripted")
_ASSISTANT = Role.ASSISTANT
_TIMEOUT = 5.0
UNLIMITED = Limits(max_iterations=None, usage=UsageLimits(request_limit=None))


class ToolEngine:
    """Asks for `turns` calls of add, one a turn, then answers."""

    def __init__(self, turns: int) -> None:
        self.turns = turns

    async def infer(self, request: Request) -> Result:
        messages = request.messages
        await c.model_called(messages)
        turn = (len(messages) - 2) // 2
        if turn < self.turns:
            call = ToolCall(f"call_{turn}", "add", c.args_json(turn))
            return Result(Message(_ASSISTANT, (call,), usage=Usage(20, 5)))
        return Result(Message(_ASSISTANT, (Text(c.ANSWER),), usage=Usage(20, 5)))

    async def stream(self, request: Request) -> AsyncIterator[StreamEvent]:
        for event in events_of((await self.infer(request)).message):
            yield event

    def model_info(self) -> ModelInfo:
        return _INFO


class ReportEngine(ToolEngine):
    """Answers with the report as its text, as the floor's model does (native output)."""

    async def infer(self, request: Request) -> Result:
        await c.model_called(request.messages)
        return Result(Message(_ASSISTANT, (Text(c.REPORT_JSON),), usage=Usage(20, 500)))


class ReportByToolEngine(ToolEngine):
    """Answers with the report as the arguments of the output tool."""

    async def infer(self, request: Request) -> Result:
        await c.model_called(request.messages)
        call = ToolCall("call_0", request.tools[-1].name, c.REPORT_JSON)
        return Result(Message(_ASSISTANT, (call,), usage=Usage(20, 500)))


class DeltaEngine(ToolEngine):
    """Answers in many small pieces; or, where it is not streamed, with the same text whole."""

    def __init__(self, deltas: Sequence[str]) -> None:
        super().__init__(0)
        self.deltas = deltas

    async def infer(self, request: Request) -> Result:
        await c.model_called(request.messages)
        return Result(Message(_ASSISTANT, (Text("".join(self.deltas)),), usage=Usage(20, len(self.deltas))))

    async def stream(self, request: Request) -> AsyncIterator[StreamEvent]:
        await c.model_called(request.messages)
        for delta in self.deltas:
            yield TextDelta(0, delta)
        yield Finish(Usage(20, len(self.deltas)))


class Peer:
    """The workloads. `result` is the last run's; `deltas` and `limits` are for longer runs than theirs."""

    def __init__(self, turns: int, *, deltas: Sequence[str] = c.DELTAS, limits: Limits | None = None) -> None:
        add, timed = tool(c.add), tool(timeout=_TIMEOUT)(c.add)
        limits = Limits() if limits is None else limits
        self.result: RunResult[Any] | None = None
        self._whole = "".join(deltas)
        self._text = Agent(ToolEngine(0), instructions=c.SYSTEM, tools=[add])
        self._tools = Agent(ToolEngine(turns), instructions=c.SYSTEM, tools=[add], limits=limits)
        self._timed = Agent(ToolEngine(turns), instructions=c.SYSTEM, tools=[timed], limits=limits)
        self._report = Agent(ReportEngine(0), instructions=c.SYSTEM, output=c.Report, output_mode="native")
        self._report_by_tool = Agent(ReportByToolEngine(0), instructions=c.SYSTEM, output=c.Report)
        self._stream = Agent(DeltaEngine(deltas), instructions=c.SYSTEM)

    async def text(self) -> str:
        self.result = None  # the run before is let go first, as the floor lets go of its own
        self.result = result = await self._text.run(c.PROMPT)
        return result.output

    async def tools(self) -> str:
        self.result = None  # the run before is let go first, as the floor lets go of its own
        self.result = result = await self._tools.run(c.PROMPT)
        return result.output

    async def tools_timeout(self) -> str:
        self.result = None  # the run before is let go first, as the floor lets go of its own
        self.result = result = await self._timed.run(c.PROMPT)
        return result.output

    async def structured(self) -> c.Report:
        self.result = None  # the run before is let go first, as the floor lets go of its own
        self.result = result = await self._report.run(c.PROMPT)
        return result.output

    async def structured_by_tool(self) -> c.Report:
        self.result = None  # the run before is let go first, as the floor lets go of its own
        self.result = result = await self._report_by_tool.run(c.PROMPT)
        return result.output

    async def stream(self) -> int:
        n, out = 0, list[str]()
        async with self._stream.run_stream(c.PROMPT) as stream:
            async for delta in stream.text():
                out.append(delta)
                n += 1
        self.result = stream.result
        assert "".join(out) == self._whole
        return n

    async def streamed_whole(self) -> str:
        """The same answer as `stream`, in one piece: what its journal is compared with."""
        self.result = None  # the run before is let go first, as the floor lets go of its own
        self.result = result = await self._stream.run(c.PROMPT)
        return result.output

    def prior(self) -> list[Message]:
        question, reply = Message(Role.USER, (Text(c.Q),)), Message(_ASSISTANT, (Text(c.A),))
        return [question, reply] * (c.N_HISTORY // 2)

    async def history(self, prior: Sequence[Message]) -> str:
        self.result = None  # the run before is let go first, as the floor lets go of its own
        self.result = result = await self._text.run(c.PROMPT, messages=prior)
        return result.output
