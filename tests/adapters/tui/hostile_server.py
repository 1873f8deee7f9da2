"""A server that is none of ours: whatever it tells is hostile, in each place where there is a text."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiohttp import web

from flyball.adapters.http.frames import frame
from flyball.core.errors import FailureCategory, SystemError  # noqa: A004 - pagantic's name for it
from flyball.core.events import (
    VERSION,
    AnswerReviewed,
    ChildEnded,
    ChildStarted,
    Event,
    Forked,
    ModelAnswered,
    ModelFailed,
    Reopened,
    SignalReceived,
    Started,
    StepEnded,
    TimePassed,
    ToolReturned,
    TurnSettled,
)
from flyball.core.messages import Message, Role, Text, Thinking, ToolCall, ToolResult, user
from flyball.core.signals import Signal, SignalType
from flyball.core.spec import LoopSpec
from flyball.inference.request import Request
from flyball.orchestrate.cards import AgentCard, ModelCard, ToolCard
from flyball.orchestrate.catalogue import LoopPage
from flyball.orchestrate.family import WaitingCall
from flyball.orchestrate.followed import Recorded
from flyball.orchestrate.projections.course import CourseStep, StepKind
from flyball.orchestrate.projections.explanation import Explanation, Turn
from flyball.orchestrate.projections.summary import LoopSummary

_encode = msgspec.json.Encoder().encode


class HostileServer:
    """Answers whatever the terminal UI asks with one text, wherever the form of the answer allows it."""

    def __init__(self, text: str) -> None:
        self.text = text

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """What is asked for, by the last word of the path."""
        what = request.path.rsplit("/", 1)[-1]
        if request.method == "POST":
            return self._problem()
        if what == "stream":
            return await self._stream(request)
        return web.Response(body=_encode(self._documents().get(what, self._run())))

    def _documents(self) -> dict[str, Any]:
        text = self.text
        call = ToolCall(text, text, _encode({text: text}).decode())
        message = Message(Role.ASSISTANT, (Text(text), Thinking(text), call), model=text)
        sent = Request((user(text), message), grammar=text, id=text)
        turn = Turn(1, 1, sent, message, self._error(), message, 0.1, (), (text,))
        return {
            "agents": {"agents": [self._agent(""), self._agent("2")]},
            "models": {"models": [ModelCard(text, (text,)), ModelCard(text + "2", (text,))]},
            "loops": LoopPage((self._run(),)),
            "course": {"steps": self._steps()},
            "waiting": {"calls": [WaitingCall(text, text, call, "approval")]},
            "why": Explanation(text, text, text, text, text, text, (turn,), (), self._error()),
        }

    def _agent(self, more: str) -> AgentCard:
        text = self.text + more
        return AgentCard(text, text, (ToolCard(text, text),), description=text)

    def _run(self) -> LoopSummary:
        text, every = self.text, tuple(SignalType)
        return LoopSummary(text, "agent", text, text, text, 1.0, 2.0, 1, prompt=text, signals=every)

    def _error(self) -> SystemError:
        return SystemError(self.text, FailureCategory.TOOL, self.text)

    def _steps(self) -> Sequence[CourseStep]:
        text = self.text
        return [CourseStep(1.0, kind, text, text, turn=1, call_id=text, model=text) for kind in StepKind]

    def _events(self) -> list[Event]:
        text, error = self.text, self._error()
        call, spec = ToolCall(text, text, text), LoopSpec(agent=text, model=text)
        answer = Message(Role.ASSISTANT, (Text(text), Thinking(text), call), model=text)
        return [
            Started(1.0, VERSION, text, spec, user(text), (user(text),)),
            ModelAnswered(2.0, 1, answer),
            ToolReturned(3.0, 1, 0, ToolResult(text, text, text)),
            ModelFailed(4.0, 2, error),
            AnswerReviewed(5.0, 2, dropped=text),
            TurnSettled(6.0, 2, accepted=False, feedback=(text,)),
            SignalReceived(7.0, Signal(SignalType.FEEDBACK, by=text, text=text)),
            ChildStarted(8.0, text, text),
            ChildEnded(9.0, text),
            StepEnded(10.0, text, text),
            StepEnded(10.0, text, error=error),
            Forked(11.0, VERSION, text, text, 1, spec, user(text)),
            Reopened(12.0, text),
            TimePassed(13.0),
        ]

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for number, event in enumerate(self._events(), 1):
            await response.write(frame("event", Recorded(number, event), str(number)))
        await asyncio.Event().wait()
        return response

    def _problem(self) -> web.Response:
        text = self.text
        document = {"detail": text, "code": text, "category": "tool_failure", "retryable": False}
        return web.Response(status=409, body=_encode(document))


@asynccontextmanager
async def hostile_server(text: str) -> AsyncGenerator[str]:
    """Its address."""
    server, app = HostileServer(text), web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
