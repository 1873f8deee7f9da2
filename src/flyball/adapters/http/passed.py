"""A request that has come in, as the gate found it; and what the log is told of it."""

from __future__ import annotations

from collections.abc import Callable

from flyball.adapters.http.tokens import Principal
from flyball.core.correlation import Correlation


class Passed:
    """A request that has come in: who asks, with which ids; and, for the log, what came of it."""

    __slots__ = (
        "correlation",
        "failure",
        "headers",
        "loop_id",
        "openai",
        "operation",
        "principal",
        "status",
        "still_welcome",
        "streamed",
    )

    def __init__(self, principal: Principal, correlation: Correlation, headers: dict[str, str]) -> None:
        self.principal = principal
        self.correlation = correlation
        self.headers = headers
        self.failure: Exception | None = None
        """What went wrong that nobody foresaw."""
        self.openai = False
        """Whether it is asked by OpenAI's protocol."""
        self.operation = ""
        self.loop_id = ""
        self.status = 0
        self.streamed = False
        self.still_welcome: Callable[[], bool] = _always
        """Whether who asked may still come in: a stream outlasts many a token."""


def _always() -> bool:
    return True
