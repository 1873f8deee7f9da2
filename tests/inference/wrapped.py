"""What tests of wrappers share: engines to wrap, and the conformance suite over what was made of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from flyball.core.errors import EngineError
from flyball.core.messages import FinishReason, Message, Role, Text, user
from flyball.core.usage import Usage
from flyball.inference.cut import events_of
from flyball.inference.engine import Engine
from flyball.inference.profile import Profile
from flyball.inference.rendered import Prompt
from flyball.inference.request import ModelInfo, Request, Result
from flyball.inference.stream import Restart, StreamEvent, TextDelta
from flyball.testing.conformance import EngineConformance

REQUEST = Request((user("hello"),))


async def settled(turns: int = 30) -> None:
    """Let everything run that can."""
    for _ in range(turns):
        await asyncio.sleep(0)


class Model:
    """Answers any request, or does not; counts its calls, and those that are under way.

    `failures` are raised first, one a call; with `after`, once so many pieces were given.
    """

    def __init__(
        self,
        name: str = "model",
        *,
        failures: Sequence[Exception] = (),
        after: int = 0,
        stalls: bool = False,
        usage: Usage | None = None,
        profile: Profile | None = None,
        provider: str = "test",
        window: int = 0,
    ) -> None:
        self.name = name
        self.failures = list(failures)
        self.after = after
        self.stalls = stalls
        self.usage = usage
        self.provider = provider
        self.window = window
        self.requests: list[Request] = []
        self.open = 0
        self.closed = 0
        if profile is not None:
            self.profile = profile

    async def infer(self, request: Request) -> Result:
        async for _ in self._given(request):
            pass
        return Result(self._message(request))

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        given = self._given(request)
        try:
            async for piece in given:
                yield piece
        finally:
            await given.aclose()
        for piece in list(events_of(self._message(request)))[1:]:
            yield piece

    def model_info(self) -> ModelInfo:
        return ModelInfo(self.name, self.window, self.provider)

    async def aclose(self) -> None:
        self.closed += 1

    async def _given(self, request: Request) -> AsyncGenerator[TextDelta, None]:
        self.requests.append(request)
        self.open += 1
        failure, after = self.failures.pop(0) if self.failures else None, self.after
        try:
            await asyncio.sleep(0)
            if self.stalls:
                await asyncio.Event().wait()
            for number, piece in enumerate(_pieces(self._text(request))):
                if failure is not None and number == after:
                    raise failure
                yield TextDelta(0, piece)
        finally:
            self.open -= 1

    def _text(self, request: Request) -> str:
        return f"{self.name} heard {request.messages[-1].text}"

    def _message(self, request: Request) -> Message:
        return Message(
            Role.ASSISTANT,
            (Text(self._text(request)),),
            usage=self.usage,
            model=self.name,
            finish_reason=FinishReason.STOP,
        )


class Renderer(Model):
    """One that puts requests into words of its own."""

    def rendered(self, request: Request, answer: Message | None) -> tuple[Prompt, ...]:
        said = answer.text if answer is not None else "nothing yet"
        return (Prompt(f"by {self.name}: {said}", ({"role": "user", "content": request.messages[0].text},)),)


def _pieces(text: str) -> list[str]:
    return [text[start : start + 4] for start in range(0, len(text), 4)]


def broken(count: int, **details: Any) -> list[EngineError]:
    """So many failures that may pass."""
    return [EngineError(f"broken {number}", **details) for number in range(count)]


def down(name: str = "down") -> Model:
    """A model that always fails."""
    return Model(name, failures=[EngineError(f"{name} is down") for _ in range(99)])


class WrapperConformance(EngineConformance):
    """An engine's promises, kept by what is put around a `Model`."""

    def wrap(self, model: Model) -> Engine:
        """What is tested, around a model."""
        raise NotImplementedError

    def make_engine(self) -> Engine:
        self.model = Model(usage=Usage(7, 5))
        return self.wrap(self.model)

    def make_stalled_engine(self) -> Engine:
        self.model = Model(stalls=True)
        return self.wrap(self.model)

    def make_failing_engine(self) -> Engine:
        self.model = Model(failures=[EngineError("no line", retryable=False) for _ in range(99)])
        return self.wrap(self.model)

    def open_calls(self, engine: Engine) -> int:
        del engine
        return self.model.open

    async def test_closing_passes_on(self) -> None:
        """Who lets go of the wrapper lets go of the engine."""
        engine = self.make_engine()
        await engine.aclose()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        assert self.model.closed == 1


def told(events: list[StreamEvent]) -> list[str]:
    """The texts of events, and where an answer began again."""
    return [
        "restart" if isinstance(event, Restart) else event.text
        for event in events
        if isinstance(event, Restart | TextDelta)
    ]


@contextmanager
def logged(name: str = "flyball.models") -> Generator[list[str]]:
    """What is logged meanwhile."""
    said: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    logger, listener = logging.getLogger(name), Listener()
    logger.addHandler(listener)
    try:
        yield said
    finally:
        logger.removeHandler(listener)
