"""FilterChain: filters around an agent's model calls, under one policy."""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, TypeAlias

from msgspec.structs import replace

from flyball.core.context import RunContext
from flyball.core.errors import FlyballError, RequestDropped, UserError
from flyball.core.messages import Message, Part, Role, Text
from flyball.core.violation import Action, Finding
from flyball.validate.filters.parts import JOINTS, neighbours, saying, spread, texts_of
from flyball.validate.filters.remembered import Remembered
from flyball.validate.filters.violation import JudgingFilter, RequestFilter, Screened, TextFilter, Violation
from flyball.validate.interceptors import InterceptResult, MessageInterceptor, ResponseInterceptor

AnyFilter: TypeAlias = TextFilter | RequestFilter
OnViolation: TypeAlias = Callable[[Sequence[Violation]], Any]
Found: TypeAlias = tuple[Violation, Action]
_LOG = logging.getLogger("flyball.filters")


class FilterPolicy(StrEnum):
    """What follows from what filters find."""

    FAIL_FAST = "fail_fast"
    """The first that finds what may not pass ends it; the others are not asked."""
    CONTINUE = "continue"
    """All are asked; then what may not pass does not, for all reasons at once."""
    LOG_ONLY = "log_only"
    """Everything passes as it is; what was found is told."""


class Chain:
    """Filters in a row, each on what the one before left: what the interceptors below are made of."""

    def __init__(
        self, filters: tuple[AnyFilter, ...], policy: FilterPolicy | str, told: OnViolation | None
    ) -> None:
        for one in filters:
            if not isinstance(one, TextFilter | RequestFilter):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise UserError(f"a chain takes filters, such as PIIFilter(), not {one!r}")
        if not filters:
            raise UserError("a chain takes filters, such as PIIFilter(), at least one")
        try:
            self.policy = FilterPolicy(policy)
        except ValueError:
            raise UserError(f"policy= is one of {', '.join(FilterPolicy)}, not {policy!r}") from None
        if told is not None and not callable(told):
            raise UserError(f"on_violation= takes a function of the violations, not {told!r}")
        self.requests = [one for one in filters if isinstance(one, RequestFilter)]
        self.texts = [one for one in filters if isinstance(one, TextFilter)]
        self.told = told
        self._remembered = Remembered()

    async def screen(self, texts: Sequence[str], *, together: bool = False) -> tuple[list[str], list[Found]]:
        """Texts as the filters leave them, and what they found; `together`: they are read as one."""
        found: list[Found] = []
        left = list(texts)
        for one in self.texts:
            made, seen = await self._screened_by(one, left, together=together)
            found += seen
            if self.policy is not FilterPolicy.LOG_ONLY:
                left = made
            if self.policy is FilterPolicy.FAIL_FAST and any(each.blocks for each, _ in seen):
                break
        return left, found

    async def _screened_by(
        self, one: TextFilter, texts: list[str], *, together: bool
    ) -> tuple[list[str], list[Found]]:
        """Texts as one filter leaves them: each by itself, then all as they are read together."""
        found: list[Found] = []
        made: list[str] = []
        known: Counter[tuple[str, bool]] = Counter()
        as_it_is = self.policy is FilterPolicy.LOG_ONLY
        for text in texts:
            screened = await self._asked(one, text)
            changed = screened.text != text
            made.append(text if as_it_is else screened.text)
            found += [(each, self.action(each, changed=changed)) for each in screened.violations]
            if as_it_is or not changed:
                known.update({(each.kind, each.blocks): each.count for each in screened.violations})
        for joint in JOINTS if together else ():
            whole = joint.join(made)
            screened = await self._asked(one, whole)
            more = [each for each in screened.violations if each.count > known[each.kind, each.blocks]]
            changed = screened.text != whole
            for each in more:
                rest = replace(each, count=each.count - known[each.kind, each.blocks])
                found.append((rest, self.action(rest, changed=changed)))
            if changed and not as_it_is:
                alone = [screened.text, *[""] * (len(made) - 1)]
                made = spread(made, joint, screened.changes) if screened.changes else alone
            else:
                known.update(
                    {(each.kind, each.blocks): each.count - known[each.kind, each.blocks] for each in more}
                )
        return made, found

    async def _asked(self, one: TextFilter, text: str) -> Screened:
        return (
            await one.judged(text) if isinstance(one, JudgingFilter) else self._remembered.screen(one, text)
        )

    async def screened(self, message: Message) -> tuple[Message, list[Found]]:
        """A message as it may pass, and what was found in what was said, what tools gave, and documents."""
        parts: list[Part] = []
        found: list[Found] = []
        for row in neighbours(message.parts):
            own = [message.parts[number] for number in row]
            together = len(own) > 1
            texts = [part.text for part in own if isinstance(part, Text)] if together else texts_of(own[0])
            left, seen = await self.screen(texts, together=together)
            found += seen
            if together:
                made = [saying(part, (text,)) for part, text in zip(own, left, strict=True)]
                # What is empty now was all replaced in the part before it, and nobody takes an empty one.
                parts += [one for one, was in zip(made, own, strict=True) if one is was or texts_of(one)[0]]
            else:
                parts.append(saying(own[0], left))
        return (message if parts == list(message.parts) else replace(message, parts=tuple(parts))), found

    def action(self, violation: Violation, *, changed: bool) -> Action:
        """What is done about what was found; `changed`: the text is another now."""
        if self.policy is FilterPolicy.LOG_ONLY:
            return Action.LOGGED
        if violation.blocks:
            return Action.BLOCKED
        return Action.REDACTED if changed else Action.FLAGGED

    async def tell(self, found: Sequence[Found]) -> None:
        """Tell whoever wants to know."""
        violations = tuple([one for one, _ in found])
        if self.told is None:
            _LOG.warning("%s", "; ".join([str(one) for one in violations]))
            return
        heard = self.told(violations)
        if hasattr(heard, "__await__"):
            await heard


class FilterChain(MessageInterceptor):
    """Screens what is sent to a model: what the user says and what tools gave.

    It is asked before each model call of a turn, and before each for a summary. An answer that is sent and
    that nobody gave (a summary with what it repeats, what a processor put in) is looked at whatever `roles`
    say. Neighbouring parts of what was said are also read as one text. Of documents, the title is read, and
    the text of one that brings it along. What filters replace is sent replaced; the history stays as it was
    said. What may not pass ends the run with a RequestDropped, whose details `violations` say what it was.
    All that was found is told to `on_violation` (which may be async), or else logged as a warning, and noted
    in the journal.

    Args:
        filters: such as `PIIFilter()` and `InjectionFilter()`. Those of whole requests, such as `RateFilter`,
            are asked first, wherever they stand.
        policy: `fail_fast`, `continue` or `log_only`.
        on_violation: is given the violations of each request that has any.
        roles: whose messages are looked at: without it, the user's and those of tools. With
            `Role.ASSISTANT`, answers that are in the history are, too: those that the model gave, and those
            that a caller sends along as if it had. With `Role.SYSTEM`, so are the instructions.

    Raises:
        UserError: something that is none of these.
    """

    def __init__(
        self,
        *filters: AnyFilter,
        policy: FilterPolicy | str = FilterPolicy.FAIL_FAST,
        on_violation: OnViolation | None = None,
        roles: Sequence[Role] = (Role.USER, Role.TOOL),
        name: str = "filter_chain",
    ) -> None:
        self.chain = Chain(filters, policy, on_violation)
        self.roles = frozenset(roles)
        self._of_requests = frozenset([one.name for one in self.chain.requests])
        super().__init__(self._look, name)

    async def _look(self, ctx: RunContext[Any], messages: Sequence[Message]) -> InterceptResult | None:
        made: list[Message] = []
        found, error = self._look_at_all(ctx, messages)
        before: list[Found] = []
        known = _known_before(messages) if ctx.run_step > 1 else 0
        put_in = frozenset[int]()
        if Role.ASSISTANT not in self.roles:
            put_in = _put_in(ctx.facts.history or (), messages)
        ended = self.chain.policy is FilterPolicy.FAIL_FAST and _blocking(found)
        for number, message in enumerate(() if ended else messages):
            if message.role not in self.roles and number not in put_in:
                made.append(message)
                continue
            passed, seen = await self.chain.screened(message)
            made.append(passed)
            (before if number < known else found).extend(seen)
            if self.chain.policy is FilterPolicy.FAIL_FAST and _blocking(seen):
                break
        everything = before + found
        if not everything:
            return None
        await self.chain.tell(everything)
        recorded = (*_findings(self.name, before, again=True), *_findings(self.name, found))
        if blocking := _blocking(everything):
            told = _told(blocking)
            # An error that says when to come again holds only where nothing else is in the way.
            if error is None or any(one.filter not in self._of_requests for one, _ in blocking):
                error = RequestDropped(f"the filters {self.name!r} let nothing pass: {told}")
            violations = [str(one) for one, _ in everything]
            error.details.update(interceptor=self.name, reason=told, violations=violations)
            return replace(InterceptResult.drop(told), found=recorded, error=error)
        told = _told(everything)
        changed = made != list(messages)
        decided = InterceptResult.modify(made, told) if changed else InterceptResult.allow(told)
        return replace(decided, found=recorded)

    def _look_at_all(
        self, ctx: RunContext[Any], messages: Sequence[Message]
    ) -> tuple[list[Found], FlyballError | None]:
        """What the filters of whole requests found, and the first error that says so."""
        found: list[Found] = []
        error: FlyballError | None = None
        for one in self.chain.requests:
            looked = one.look(ctx, messages)
            found += [(each, self.chain.action(each, changed=False)) for each in looked.violations]
            error = error or looked.error
            if self.chain.policy is FilterPolicy.FAIL_FAST and _blocking(found):
                break
        return found, error


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
        self.chain = Chain(filters, policy, on_violation)
        if self.chain.requests:
            raise UserError(f"{self.chain.requests[0].name!r} is for requests: put it into a FilterChain")
        super().__init__(self._look, name)

    async def _look(self, ctx: RunContext[Any], message: Message) -> InterceptResult | None:
        made, found = await self.chain.screened(message)
        if not found:
            return None
        await self.chain.tell(found)
        if blocking := _blocking(found):
            decided = InterceptResult.drop(_told(blocking))
        elif made is message:
            decided = InterceptResult.allow(_told(found))
        else:
            decided = InterceptResult.modify(made, _told(found))
        return replace(decided, found=tuple(_findings(self.name, found)))


def _put_in(history: Sequence[Message], messages: Sequence[Message]) -> frozenset[int]:
    """Which answers nobody gave: a summary, with what it repeats, and what a processor has written."""
    given = [message for message in history if message.role is Role.ASSISTANT]
    places: dict[str, list[int]] = {}
    for place, message in enumerate(given):
        places.setdefault(message.text, []).append(place)
    found, at = list[int](), 0
    for number, message in enumerate(messages):
        if message.role is not Role.ASSISTANT:
            continue
        alike = places.get(message.text, [])
        later = map(alike.__getitem__, range(bisect_left(alike, at), len(alike)))
        same = next((place for place in later if given[place] == message), None)
        if same is None:
            found.append(number)
        else:
            at = same + 1
    return frozenset(found)


def _known_before(messages: Sequence[Message]) -> int:
    """How many messages an earlier turn had sent: those up to the last answer."""
    answers = [number for number, message in enumerate(messages) if message.role is Role.ASSISTANT]
    return answers[-1] + 1 if answers else 0


def _blocking(found: Sequence[Found]) -> list[Found]:
    return [one for one in found if one[1] is Action.BLOCKED]


def _findings(by: str, found: Sequence[Found], *, again: bool = False) -> list[Finding]:
    """What was found, as it is recorded: each kind once, with how often."""
    counts: dict[Finding, int] = {}
    for one, action in found:
        key = Finding(by, one.filter, one.kind, one.severity, action, 0, again)
        counts[key] = counts.get(key, 0) + one.count
    return [replace(key, count=count) for key, count in counts.items()]


def _told(found: Sequence[Found]) -> str:
    """What was found, each kind once."""
    return "; ".join(dict.fromkeys([str(one) for one, _ in found]))
