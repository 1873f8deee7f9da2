"""Attempts: what failed before a model call was answered, told with its answer or with its last failure.

An answer that took more than one try says so in its message's `extra`, under `attempts`: the failed ones in
order, each with the model that was asked, the error's code and its message. An error has the same in its
details. What went well at once says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, cast

from msgspec.structs import replace

from flyball.core.encodable import clean_text
from flyball.core.errors import FlyballError
from flyball.core.messages import JSON
from flyball.inference.notes import ATTEMPTS
from flyball.inference.request import Result
from flyball.inference.stream import Finish

_LONGEST = 300
"""How many characters of an error's message are kept."""


class Attempts:
    """The tries of one call that failed, in order. Those that an error tells of come before it."""

    __slots__ = ("_failed",)

    def __init__(self) -> None:
        self._failed: list[dict[str, JSON]] = []

    def failed(self, model: str, error: Exception) -> None:
        """A try of a model failed."""
        before, code = (), type(error).__name__
        if isinstance(error, FlyballError):
            before, code = _told(error.details), error.code
        message = clean_text(str(error))[:_LONGEST]
        self._failed += [*before, {"model": model, "code": code, "message": message}]

    def on_result(self, result: Result) -> Result:
        """An answer that says what failed before it."""
        if not self._failed:
            return result
        message = replace(result.message, extra=self._with(result.message.extra))
        return replace(result, message=message)

    def on_finish(self, finish: Finish) -> Finish:
        """The end of a streamed answer that says the same."""
        return replace(finish, extra=self._with(finish.extra)) if self._failed else finish

    def on_error(self, error: Exception) -> Exception:
        """An error that says what failed before it. It is not one of them.

        It is a copy: an engine may raise the same one again, for another call.
        """
        if not self._failed or not isinstance(error, FlyballError):
            return error
        told = copy(error)
        told.details = {**error.details, ATTEMPTS: [*self.told(), *_told(error.details)]}
        told.__cause__, told.__suppress_context__ = error.__cause__, error.__suppress_context__
        return told.with_traceback(error.__traceback__)

    def told(self) -> list[dict[str, JSON]]:
        """The failed tries as plain data."""
        return [dict(one) for one in self._failed]

    def _with(self, extra: Mapping[str, JSON] | None) -> dict[str, JSON]:
        """What a message says besides, with the failed tries before those that it tells of already."""
        return {**(extra or {}), ATTEMPTS: [*self.told(), *_told(extra or {})]}


def _told(extra: Mapping[str, Any]) -> Sequence[dict[str, JSON]]:
    found = extra.get(ATTEMPTS)
    return list(cast("list[Any]", found)) if isinstance(found, list) else ()
