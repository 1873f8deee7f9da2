"""RedactPII: personal data, or whatever matches, taken out of what the user says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from flyball.core.context import RunContext
from flyball.core.errors import UserError
from flyball.core.messages import Message, Role, Text
from flyball.validate.filter_chain import Chain, FilterPolicy
from flyball.validate.filters.pii import PIIFilter, PIIKind
from flyball.validate.interceptors import InterceptResult, MessageInterceptor


class RedactPII(MessageInterceptor):
    """Replaces what matches in what the user says, before it is sent.

    Kinds are looked for as a FilterChain does it: in documents that are text, and in neighbouring parts as
    they are read together, too. A pattern is held against each text by itself.

    Args:
        pattern: a regular expression; without it, personal data and keys are found by their kinds.
        replacement: what is put there; without it `[redacted]` for a pattern, and `[email]` and the like for
            kinds.
        kinds: which of `PIIKind` are looked for, where there is no pattern; without it, all of them.

    Raises:
        UserError: no regular expression, a kind that is not known, or both at once.
    """

    def __init__(
        self,
        pattern: str | re.Pattern[str] | None = None,
        replacement: str | None = None,
        *,
        kinds: Iterable[PIIKind | str] | None = None,
    ) -> None:
        if replacement is not None and not isinstance(replacement, str):  # pyright: ignore[reportUnnecessaryIsInstance] - anybody's
            raise UserError(f"RedactPII replaces by a text, not by {replacement!r}")
        self._by_pattern: tuple[re.Pattern[str], str] | None = None
        self._by_kind: Chain | None = None
        if pattern is None:
            found = PIIFilter(kinds) if replacement is None else PIIFilter(kinds, replacement)
            self._by_kind = Chain((found,), FilterPolicy.CONTINUE, None)
        elif kinds is not None:
            raise UserError("RedactPII takes a pattern or kinds=, not both: use two of them")
        else:
            self._by_pattern = _compiled(pattern), "[redacted]" if replacement is None else replacement
        super().__init__(self._redact, "redact_pii")

    async def _redact(self, ctx: RunContext[Any], messages: Sequence[Message]) -> InterceptResult | None:
        found: dict[str, None] = {}
        redacted = [
            await self._redacted(message, found) if message.role is Role.USER else message
            for message in messages
        ]
        if all(new is old for new, old in zip(redacted, messages, strict=True)):
            return None
        return InterceptResult.modify(redacted, f"{', '.join(found)} was replaced")

    async def _redacted(self, message: Message, found: dict[str, None]) -> Message:
        if self._by_kind is not None:
            made, seen = await self._by_kind.screened(message)
            found.update(dict.fromkeys([violation.kind for violation, _ in seen]))
            return made
        assert self._by_pattern is not None, "without kinds there is a pattern"
        pattern, replacement = self._by_pattern
        # A function, so that a backslash in the replacement means itself.
        parts = tuple(
            [
                replace(part, text=pattern.sub(lambda _: replacement, part.text))
                if type(part) is Text
                else part
                for part in message.parts
            ]
        )
        if parts == message.parts:
            return message
        found[pattern.pattern] = None
        return replace(message, parts=parts)


def _compiled(pattern: str | re.Pattern[str]) -> re.Pattern[str]:
    try:
        made = re.compile(pattern)
        made.search("")  # one of bytes finds nothing in text
    except (re.error, TypeError) as error:
        raise UserError(f"RedactPII takes a regular expression, not {pattern!r}: {error}") from error
    return made
