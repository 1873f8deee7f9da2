"""Logging: a line for each request to the model, and one for what came of it."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, Callable

from flyball.core.errors import FlyballError, UserError
from flyball.core.messages import Message
from flyball.inference.middleware.kinds import CallNext, Middleware, StreamNext
from flyball.inference.request import Request, Result
from flyball.inference.stream import Assembler, StreamEvent, close_stream


class Logging(Middleware):
    """Logs each request and each answer in a line: how much, how long, how it ended, and not what was said.

    `logger` is one of the standard library's, its name, or a function of the text; `content` adds what was
    said, which may be anybody's secret. A call that failed is logged as a warning, with its error's code.
    """

    name = "logging"

    def __init__(
        self,
        logger: logging.Logger | str | Callable[[str], object] = "flyball.model",
        *,
        level: int | str = logging.INFO,
        content: bool = False,
        now: Callable[[], float] = time.perf_counter,
    ) -> None:
        if isinstance(logger, str):
            logger = logging.getLogger(logger)
        if not isinstance(logger, logging.Logger) and not callable(logger):
            raise UserError(f"Logging takes a logger, its name, or a function of the text, not {logger!r}")
        named = logging.getLevelNamesMapping().get(level) if isinstance(level, str) else level
        if type(named) is not int:
            raise UserError(f"Logging takes a level such as logging.INFO or 'INFO', not {level!r}")
        self._logger = logger
        self._level = named
        self._content = content
        self._now = now

    async def request(self, request: Request, call_next: CallNext) -> Result:
        """See `Middleware.request`."""
        began = self._asked(request)
        try:
            result = await call_next(request)
        except Exception as error:
            self._failed(request, error, began)
            raise
        self._answered(request, result, began)
        return result

    async def stream(self, request: Request, call_next: StreamNext) -> AsyncGenerator[StreamEvent]:
        """See `Middleware.stream`."""
        began, joined = self._asked(request), Assembler()
        pieces = call_next(request)
        try:
            async for piece in pieces:
                joined.feed(piece)
                yield piece
            result = joined.result()
        except GeneratorExit:
            self._log(self._level, f"model stream {request.id} closed after {self._since(began)}")
            raise
        except Exception as error:
            self._failed(request, error, began)
            raise
        finally:
            await close_stream(pieces)
        self._answered(request, result, began)

    def _asked(self, request: Request) -> float:
        told = f"{_some(len(request.messages), 'message')}, {_some(len(request.tools), 'tool')}"
        self._log(self._level, f"model request {request.id}: {told}{self._said(*request.messages)}")
        return self._now()

    def _answered(self, request: Request, result: Result, began: float) -> None:
        usage, calls = result.usage, len(result.tool_calls)
        told = [str(result.finish_reason), f"{usage.input_tokens} tokens in", f"{usage.output_tokens} out"]
        if calls:
            told.append(_some(calls, "tool call"))
        told.append(self._since(began))
        self._log(self._level, f"model answer {request.id}: {', '.join(told)}{self._said(result.message)}")

    def _failed(self, request: Request, error: Exception, began: float) -> None:
        # Its words may be the prompt's: providers like to repeat what they did not like.
        what = error.code if isinstance(error, FlyballError) else type(error).__name__
        words = f": {error}" if self._content else ""
        self._log(
            logging.WARNING, f"model call {request.id} failed after {self._since(began)}: {what}{words}"
        )

    def _since(self, began: float) -> str:
        return f"{self._now() - began:.3f} s"

    def _said(self, *messages: Message) -> str:
        if not self._content:
            return ""
        return "".join([f"; {message.role.value}: {_content(message)}" for message in messages])

    def _log(self, level: int, text: str) -> None:
        if isinstance(self._logger, logging.Logger):
            self._logger.log(level, "%s", text)
        else:
            self._logger(text)


def _some(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _content(message: Message) -> str:
    """What a message says, on one line."""
    said = [repr(message.text)] if message.text else []
    said += [f"{call.name}({call.args_json})" for call in message.tool_calls]
    said += [f"{result.name} -> {result.text!r}" for result in message.tool_results]
    return ", ".join(said)
