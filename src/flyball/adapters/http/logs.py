"""The server's log: one JSON object a line, on stderr unless it is told otherwise."""

from __future__ import annotations

import logging
import sys
import time
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, TextIO

import msgspec

from flyball.adapters.http.passed import Passed

_encode = msgspec.json.Encoder(enc_hook=str).encode


class Log:
    """Writes lines. What a caller sent is in them only as JSON strings: nobody writes lines of their own."""

    def __init__(self, out: TextIO | None = None, *, failures_only: bool = False) -> None:
        """`failures_only`: a request has a line only where something went wrong that nobody foresaw."""
        self._out = out
        self._failures_only = failures_only

    def request(self, scope: Any, passed: Passed, seconds: float) -> None:
        """A request was answered, or its caller went away (status 499)."""
        if self._failures_only and passed.failure is None:
            return
        line: dict[str, Any] = {
            "event": "request",
            "method": scope["method"],
            "path": scope["path"][:300],
            "operation": passed.operation,
            "status": passed.status or 499,
            "ms": round(seconds * 1000, 3),
            "request_id": passed.correlation.request_id,
            "trace_id": passed.correlation.trace_id,
        }
        principal = passed.principal
        known = {"tenant": principal.tenant, "token": principal.token, "loop_id": passed.loop_id}
        line |= {name: value for name, value in known.items() if value}
        if passed.failure is not None:
            line["failure"] = "".join(traceback.format_exception(passed.failure))[-8000:]
        self.write("info" if passed.failure is None else "error", line)

    def note(self, event: str, **facts: Any) -> None:
        """Something that happened to the server itself."""
        self.write("info", {"event": event, **facts})

    def write(self, level: str, line: dict[str, Any]) -> None:
        """A line."""
        now = time.time()
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"
        text = _encode({"at": when, "level": level, **line}).decode()
        try:
            (self._out or sys.stderr).write(f"{text}\n")
        except (OSError, ValueError):
            return  # nobody reads it any more, or its disk is full: that is no reason to stop serving


class _Lines(logging.Handler):
    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """A line for a record."""
        line: dict[str, Any] = {"event": "log", "of": record.name, "message": record.getMessage()}
        if record.exc_info:
            line["failure"] = "".join(traceback.format_exception(*record.exc_info))[-8000:]
        self._log.write(record.levelname.lower(), line)


@contextmanager
def logging_into(log: Log) -> Generator[None]:
    """Write what the rest of flyball says, by Python's own `logging`, as lines of this log, for a block."""
    logger, lines = logging.getLogger("flyball"), _Lines(log)
    propagates, logger.propagate = logger.propagate, False
    logger.addHandler(lines)
    try:
        yield
    finally:
        logger.removeHandler(lines)
        logger.propagate = propagates
