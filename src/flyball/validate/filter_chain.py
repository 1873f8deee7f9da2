"""FilterChain: filters around an agent's model calls, under one policy."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, TypeAlias

from msgspec.structs import replace

from flyball.core.context import RunContext
from flyball.core.errors import RequestDropped, UserError
from flyball.core.messages import Message, Part, Role, Text, ToolResult
from flyball.validate.filters.violation import JudgingFilter, Screened, TextFilter, Violation
from flyball.validate.interceptors import InterceptResult, MessageInterceptor, ResponseInterceptor

OnViolation: TypeAlias = Callable[[Sequence[Violation]], Any]
_LOG = logging.getLogger("flyball.filters")


class FilterPolicy(StrEnum):
    """What follows from what filters find."""

    FAIL_FAST = "fail_fast"
    """The first that finds what may not pass ends it; the others are not asked."""
    CONTINUE = "continue"
    """All are asked; then what may not pass does not, for all reasons at once."""
    LOG_ONLY = "log_only"
    """Everything passes as it is; what was found is told."""


class _Chain:
    """Filters in a row, each on what the one before left."""

    def __init__(
        self, filters: tuple[TextFilter, ...], policy: FilterPolicy | str, told: OnViolation | None
    ) -> None:
        for one in filters:
            if not isinstance(one, TextFilter):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise UserError(f"a chain takes filters, such as PIIFilter(), not {one!r}")
        if not filters:
            raise UserError("a chain takes filters, such as PIIFilter(), at least one")
        try:
            self.policy = FilterPolicy(policy)
        except ValueError:
            raise UserError(f"policy= is one of {', '.join(FilterPolicy)}, not {policy!r}") from None
        if told is not None and not callable(told):
            raise UserError(f"on_violation= takes a function of the violations, not {told!r}")
        self.filters = filters
        self.told = told

    async def screen(self, text: str) -> Screened:
        """The text as the filters leave it, and what they found."""
        found: list[Violation] = []
        left = text
        for one in self.filters:
            screened = await one.judged(left) if isinstance(one, JudgingFilter) else one.screen(left)
            found += screened.violations
            if self.policy is not FilterPolicy.LOG_ONLY:
                left = screened.text
            if self.policy is FilterPolicy.FAIL_FAST and any(each.blocks for each in screened.violations):
                break
        return Screened(left, tuple(found))

    async def screened(self, message: Message) -> tuple[Message, list[Violation]]:
        """A message as it may pass, and what was found in its text and in what tools gave."""
        parts: list[Part] = []
        found: list[Violation] = []
        for part in message.parts:
            if not isinstance(part, Text | ToolResult):
                parts.append(part)
                continue
            screened = await self.screen(part.text)
            found += screened.violations
            parts.append(part if screened.text == part.text else _saying(part, screened.text))
        return (message if parts == list(message.parts) else replace(message, parts=tuple(parts))), found

    async def tell(self, found: Sequence[Violation]) -> None:
        """Tell whoever wants to know."""
        if self.told is None:
            _LOG.warning("%s", "; ".join([str(one) for one in found]))
            return
        heard = self.told(tuple(found))
        if hasattr(heard, "__await__"):
            await heard

    def blocking(self, found: Sequence[Violation]) -> list[Violation]:
        """What may not pass."""
        return [] if self.policy is FilterPolicy.LOG_ONLY else [one for one in found if one.blocks]


class FilterChain(MessageInterceptor):
    """Screens what is sent to the model: what the user says and what tools gave.

    What filters replace is sent replaced; the history stays as it was said. What may not pass ends the run
    with a RequestDropped, whose details `violations` say what it was. All that was found is told to
    `on_violation` (which may be async), or else logged as a warning, and noted in the journal.

    Args:
        filters: such as `PIIFilter()` and `InjectionFilter()`.
        policy: `fail_fast`, `continue` or `log_only`.
        on_violation: is given the violations of each request that has any.
        roles: whose messages are looked at.

    Raises:
        UserError: something that is none of these.
    """

    def __init__(
        self,
        *filters: TextFilter,
        policy: FilterPolicy | str = FilterPolicy.FAIL_FAST,
        on_violation: OnViolation | None = None,
        roles: Sequence[Role] = (Role.USER, Role.TOOL),
        name: str = "filter_chain",
    ) -> None:
        self.chain = _Chain(filters, policy, on_violation)
        self.roles = frozenset(roles)
        super().__init__(self._look, name)

    async def _look(self, ctx: RunContext[Any], messages: Sequence[Message]) -> InterceptResult | None:
        made: list[Message] = []
        found: list[Violation] = []
        for message in messages:
            if message.role not in self.roles:
                made.append(message)
                continue
            passed, seen = await self.chain.screened(message)
            made.append(passed)
            found += seen
            if seen and self.chain.policy is FilterPolicy.FAIL_FAST and self.chain.blocking(seen):
                break
        if not found:
            return None
        await self.chain.tell(found)
        if blocking := self.chain.blocking(found):
            told = _told(blocking)
            raise RequestDropped(
                f"the filters {self.name!r} let nothing pass: {told}",
                interceptor=self.name,
                reason=told,
                violations=[str(one) for one in found],
            )
        if made == list(messages):
            return InterceptResult.allow(_told(found))
        return InterceptResult.modify(made, _told(found))


class ResponseFilterChain(ResponseInterceptor):
    """Screens what the model answers. An answer that may not pass is dropped: the model is asked again.

    What filters replace takes the answer's place in the history. Calls of tools are not looked at.
    The arguments are those of `FilterChain`.
    """

    def __init__(
        self,
        *filters: TextFilter,
        policy: FilterPolicy | str = FilterPolicy.FAIL_FAST,
        on_violation: OnViolation | None = None,
        name: str = "response_filter_chain",
    ) -> None:
        self.chain = _Chain(filters, policy, on_violation)
        super().__init__(self._look, name)

    async def _look(self, ctx: RunContext[Any], message: Message) -> InterceptResult | None:
        made, found = await self.chain.screened(message)
        if not found:
            return None
        await self.chain.tell(found)
        if blocking := self.chain.blocking(found):
            return InterceptResult.drop(_told(blocking))
        return (
            InterceptResult.allow(_told(found))
            if made is message
            else InterceptResult.modify(made, _told(found))
        )


def _saying(part: Text | ToolResult, text: str) -> Part:
    if isinstance(part, Text):
        return replace(part, text=text)
    return replace(part, error=text) if part.is_error else replace(part, content=text)


def _told(found: Sequence[Violation]) -> str:
    """What was found, each kind once."""
    return "; ".join(dict.fromkeys([str(one) for one in found]))
