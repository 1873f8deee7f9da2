"""Run conditions: when it is enough. Asked after each answer of the model.

A run that a condition ends gives its answer if that can be one; otherwise it fails with a RunConditionError
that has the reason. Conditions are put together with `&` and `|`, or `And` and `Or`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from flyball.core.context import RunContext
from flyball.core.errors import UserError
from flyball.core.feature import FunctionFeature
from flyball.core.messages import Message

Reason: TypeAlias = str | bool | None
"""Why the run should stop; True for no particular reason; False or None to go on."""


class RunCondition(FunctionFeature):
    """Whether the run should stop: `check(ctx, message)` gives the reason, or None to go on."""

    def __and__(self, other: RunCondition) -> RunCondition:
        return And(self, other)

    def __or__(self, other: RunCondition) -> RunCondition:
        return Or(self, other)

    async def reason(self, ctx: RunContext[Any], message: Message) -> str | None:
        """Why the run should stop, or None."""
        found = self.check(ctx, message)
        if hasattr(found, "__await__"):
            found = await found
        if found is None or found is False:
            return None
        if found is True:
            return f"the condition {self.name!r} is met"
        if not isinstance(found, str) or not found:
            raise UserError(
                f"the run condition {self.name!r} gave {found!r}: it must give a reason, True, or None"
            )
        return found


class _Several(RunCondition):
    def __init__(self, name: str, met: Callable[..., Any], conditions: tuple[RunCondition, ...]) -> None:
        if not conditions or not all(isinstance(one, RunCondition) for one in conditions):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(f"{type(self).__name__} takes run conditions, at least one, not {conditions!r}")
        self.conditions = conditions
        super().__init__(met, f"{name}({', '.join(one.name for one in conditions)})")


class And(_Several):
    """Stops when all are met, with all their reasons."""

    def __init__(self, *conditions: RunCondition) -> None:
        super().__init__("and", self._met, conditions)

    async def _met(self, ctx: RunContext[Any], message: Message) -> Reason:
        reasons: list[str] = []
        for condition in self.conditions:
            reason = await condition.reason(ctx, message)
            if reason is None:
                return None
            reasons.append(reason)
        return " and ".join(reasons)


class Or(_Several):
    """Stops when one is met, with the first one's reason."""

    def __init__(self, *conditions: RunCondition) -> None:
        super().__init__("or", self._met, conditions)

    async def _met(self, ctx: RunContext[Any], message: Message) -> Reason:
        for condition in self.conditions:
            reason = await condition.reason(ctx, message)
            if reason is not None:
                return reason
        return None


class MaxRunDuration(RunCondition):
    """Stops at the first answer that comes later than this many seconds after the run began.

    The time is the run's own: one object may stand on many agents. It stops between model calls; a limit
    that cuts one off is `Limits(timeout=…)`.
    """

    def __init__(self, seconds: float) -> None:
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(f"MaxRunDuration takes seconds, more than 0, not {seconds!r}")
        self.seconds = seconds
        super().__init__(self._met, "max_run_duration")

    def _met(self, ctx: RunContext[Any], message: Message) -> Reason:
        if ctx.elapsed <= self.seconds:
            return None
        return f"the run has taken {ctx.elapsed:.1f} s, and {self.seconds:g} s are allowed"


class ResponseContains(RunCondition):
    """Stops at an answer of which a function, `found(message)`, says so."""

    def __init__(self, found: Callable[[Message], bool], name: str | None = None) -> None:
        if not callable(found):
            raise UserError(f"ResponseContains takes a function (message), not {found!r}")
        self.found = found
        super().__init__(self._met, name or getattr(found, "__name__", "response_contains"))

    def _met(self, ctx: RunContext[Any], message: Message) -> Reason:
        return bool(self.found(message))


class TextContains(RunCondition):
    """Stops at an answer in whose text this stands."""

    def __init__(self, text: str) -> None:
        if not isinstance(text, str) or not text:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(f"TextContains takes a text that is not empty, not {text!r}")
        self.text = text
        super().__init__(self._met, "text_contains")

    def _met(self, ctx: RunContext[Any], message: Message) -> Reason:
        return f"the answer contains {self.text!r}" if self.text in message.text else None


class ToolCallCount(RunCondition):
    """Stops when the run has made this many tool calls."""

    def __init__(self, most: int) -> None:
        if type(most) is not int or most < 1:
            raise UserError(f"ToolCallCount takes a number of calls, at least 1, not {most!r}")
        self.most = most
        super().__init__(self._met, "tool_call_count")

    def _met(self, ctx: RunContext[Any], message: Message) -> Reason:
        made = ctx.usage.tool_calls
        return f"the run has made {made} tool calls, of {self.most}" if made >= self.most else None
