"""MaxTokens: no answer is longer than so many tokens."""

from __future__ import annotations

from msgspec.structs import replace

from flyball.core.errors import UserError
from flyball.inference.middleware.kinds import ChangeRequest
from flyball.inference.request import Request


class MaxTokens(ChangeRequest):
    """Caps `max_tokens` in the settings of each request; where less is asked for, that stays."""

    def __init__(self, tokens: int) -> None:
        if type(tokens) is not int or tokens < 1:
            raise UserError(f"MaxTokens takes a number of tokens, at least 1, not {tokens!r}")
        self.tokens = tokens
        super().__init__(self._capped, "max_tokens")

    def _capped(self, request: Request) -> Request:
        asked = request.settings.max_tokens
        if asked is not None and asked <= self.tokens:
            return request
        return replace(request, settings=replace(request.settings, max_tokens=self.tokens))
