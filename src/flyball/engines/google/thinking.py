"""How long Gemini is to think: our settings as a `thinkingConfig`."""

from __future__ import annotations

from typing import Any

from flyball.core.settings import ModelSettings
from flyball.engines.google.generations import Generation

BUDGETS = {"none": 0, "minimal": 1_024, "low": 1_024, "medium": 8_192, "high": 24_576, "xhigh": 24_576}
"""Tokens to think with, where a generation knows no levels: as Google's own OpenAI endpoint has it."""
_LEAST = "LOW"
"""The level that every model with levels has: none of them can be kept from thinking."""
_AS_IT_LIKES = -1


def thinking_config(settings: ModelSettings, generation: Generation) -> dict[str, Any] | None:
    """The `thinkingConfig` for these settings; None where they say nothing, or the model does not think.

    A request has a budget or a level, never both: a model with levels takes `reasoning_effort` before
    `thinking_budget`, any other the other way round. Thoughts are shown to who asks for thinking.
    """
    if not generation.thinks:
        return None
    effort, budget, wanted = settings.reasoning_effort, settings.thinking_budget, settings.thinking
    if wanted is False and effort is None and budget is None:
        effort = "none"
    config: dict[str, Any] = {}
    if effort is not None and (generation.levels or budget is None):
        if generation.levels:
            config["thinkingLevel"] = _LEAST if effort == "none" else effort.upper()
        else:
            config["thinkingBudget"] = max(BUDGETS.get(effort, _AS_IT_LIKES), generation.least_budget)
    elif budget is not None:
        config["thinkingBudget"] = budget
    elif wanted and not generation.levels:
        config["thinkingBudget"] = _AS_IT_LIKES
    elif not wanted:
        return None
    if wanted is not False and effort != "none" and budget != 0:
        config["includeThoughts"] = True
    return config
