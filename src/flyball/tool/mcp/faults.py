"""What went wrong with a server, as errors of the taxonomy: which server, what happened, what to do.

    the program is not there                    UserError
    no answer in time, at the beginning         ToolTimeout
    it ends, cannot be reached, refuses us      ToolUnavailable
    it answers what cannot be taken             ToolExecutionFailed

The secrets of the server are hidden in whatever it says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from http import HTTPStatus
from typing import Any, cast

from flyball.core.errors import (
    FlyballError,
    ToolExecutionFailed,
    ToolFailure,
    ToolTimeout,
    ToolUnavailable,
)
from flyball.tool.feedback import capped, describe_errors
from flyball.tool.mcp.course import ENDED, Course
from flyball.tool.mcp.exchange import Exchange
from flyball.tool.mcp.place import Place
from flyball.tool.mcp.secret import hide

_MOST, _LINE = 2_500, 300
_UNKNOWN = "; whether the call had its effect is not known"
_REFUSED = {
    401: "give the headers that it asks for, such as headers={'Authorization': ...}",
    403: "these headers do not allow it",
    404: "look at the path of its address",
    405: "look at the path of its address: nothing there speaks MCP",
}


class Faults:
    """Makes the errors of one server. Its secrets are hidden in them, and those given."""

    def __init__(self, server: str, place: Place, secrets: Sequence[str] = ()) -> None:
        self.server = server
        self._place = place
        self._secrets = tuple(secrets)

    def beside(self, secrets: Iterable[str]) -> Faults:
        """One that hides these, too."""
        return Faults(self.server, self._place, tuple(secrets))

    def unopened(self, error: BaseException | None, course: Course, opening: Exchange) -> FlyballError:
        """Why a session could not be opened: by what was raised, how it went, and what was answered."""
        error = None if error is None else next(_leaves(error), None)
        if isinstance(error, FlyballError):
            error.details.setdefault("server", self.server)
            return error
        told = self._told(course)
        if course.over:
            return self.make(ToolUnavailable, f"cannot be used{told}")
        if wrong := self._refusal(opening):
            return wrong
        return self.make(ToolExecutionFailed, f"cannot be used: {_said(error)}{told}")

    def late(self, course: Course, seconds: float) -> FlyballError:
        """A session could not be opened in time."""
        text = f"does not answer within {seconds:g} seconds{self._told(course)}; connect_timeout= gives more"
        return self.make(ToolTimeout, text)

    def lost(self, tool: str, course: Course, exchange: Exchange) -> ToolFailure:
        """Why a call has no answer: the connection is gone."""
        gone = self._told(course) if course.over else f": {exchange.fault or 'the connection is gone'}"
        why = f"was lost while {tool!r} was called{gone}"
        return self.make(ToolUnavailable, why if exchange.unsent else f"{why}{_UNKNOWN}", tool)

    def refused(self, tool: str, exchange: Exchange) -> ToolFailure | None:
        """The error of an HTTP status that is none of the protocol's; None if there was none."""
        return self._refusal(exchange, tool)

    def malformed(self, tool: str, error: BaseException) -> ToolFailure:
        """What the server answered cannot be taken."""
        return self.make(
            ToolExecutionFailed, f"answered {tool!r} with what cannot be taken: {_said(error)}", tool
        )

    def vanished(self, tool: str, names: Sequence[str]) -> ToolFailure:
        """The server has no such tool any more."""
        there = f"it has {', '.join(names[:20])}" if names else "it has none"
        return self.make(ToolUnavailable, f"does not offer {tool!r} any more; {there}", tool)

    def closed(self, tool: str) -> ToolFailure:
        """The server was closed by its user."""
        return self.make(ToolUnavailable, "was closed: ask it for its toolset again to use it", tool)

    def make(self, kind: type[ToolFailure], text: str, tool: str = "") -> ToolFailure:
        """An error of this server."""
        details = {"server": self.server, **({"tool": tool} if tool else {})}
        whole = f"MCP server {self.server!r} {capped(self._hidden(text), _MOST)}"
        return kind(whole, retryable=kind is ToolUnavailable, **details)

    def _hidden(self, text: str) -> str:
        return hide(text, (*self._place.secrets, *self._secrets))

    def _refusal(self, exchange: Exchange, tool: str = "") -> ToolFailure | None:
        if exchange.fault:
            hint = "; look at its address, and whether it runs" if exchange.unsent else ""
            return self.make(ToolUnavailable, f"cannot be reached: {exchange.fault}{hint}", tool)
        if exchange.status < 400:
            return None
        try:
            status = f"{exchange.status} {HTTPStatus(exchange.status).phrase}"
        except ValueError:
            status = str(exchange.status)
        hint = _REFUSED.get(exchange.status, "")
        text = f"answered {status}" + (f": {hint}" if hint else "")
        error = self.make(
            ToolUnavailable, f"{text}{_UNKNOWN}" if tool and exchange.status >= 500 else text, tool
        )
        error.retryable = exchange.status >= 500 or exchange.status == 429
        error.details["status_code"] = exchange.status
        return error

    def _told(self, course: Course) -> str:
        """How it went with a program, to be said after what went wrong."""
        told = f": {course.over}" if course.over else ""
        if course.over == ENDED and course.code is not None:
            told += f" by signal {-course.code}" if course.code < 0 else f" with exit code {course.code}"
        if course.garbage:
            garbage = capped(self._hidden(course.garbage), _LINE)
            told += f"; it wrote to stdout what is no message: {garbage!r}"
        if course.stderr:
            # Hidden before it is cut: of a secret that is cut, the half would be told.
            last = [capped(self._hidden(line), _LINE) for line in course.stderr[-6:]]
            told += f"; its stderr ends with: {' | '.join(last)}"
        return told


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """The errors inside of groups."""
    if isinstance(error, BaseExceptionGroup):
        for inner in cast("Any", error).exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _said(error: BaseException | None) -> str:
    if error is None:
        return "the session ended"
    from pydantic import ValidationError

    if isinstance(error, ValidationError):
        return f"it is not as the protocol has it: {describe_errors(error)}"
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
