"""How hard a reasoning model of OpenAI's thinks, as far as a request says it."""

from __future__ import annotations

import re

from flyball.core.settings import ModelSettings

_FIRST_GPT_5 = re.compile(r"gpt-5(?:-(?:mini|nano|pro|codex))?(?:-\d{4}-\d{2}-\d{2})?")
_O_SERIES = re.compile(r"o\d")


def effort_of(settings: ModelSettings, model: str) -> str | None:
    """The effort to ask for; None where the request leaves it to the model.

    `thinking=False` is the least that the model allows; a budget of tokens has no place in this API, and none
    at all is the same as no thinking.
    """
    if settings.reasoning_effort is not None:
        return settings.reasoning_effort
    if settings.thinking is not False and settings.thinking_budget != 0:
        return None
    if _FIRST_GPT_5.fullmatch(model):
        return "minimal"
    return "low" if _O_SERIES.match(model) else "none"
