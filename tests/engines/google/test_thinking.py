"""How long Gemini is to think."""

from __future__ import annotations

from typing import Any

import pytest

from flyball.core.settings import ModelSettings
from flyball.engines.google.generations import generation_of
from flyball.engines.google.thinking import thinking_config

_CASES: list[tuple[str, ModelSettings, dict[str, Any] | None]] = [
    ("gemini-3.8-flash", ModelSettings(), None),
    ("gemini-3.8-flash", ModelSettings(thinking=True), {"includeThoughts": True}),
    ("gemini-3.8-flash", ModelSettings(thinking=False), {"thinkingLevel": "LOW"}),
    (
        "gemini-3.8-flash",
        ModelSettings(reasoning_effort="high"),
        {"thinkingLevel": "HIGH", "includeThoughts": True},
    ),
    (
        "gemini-4-argon",
        ModelSettings(reasoning_effort="low", thinking_budget=9),
        {"thinkingLevel": "LOW", "includeThoughts": True},
    ),
    ("gemini-4-argon", ModelSettings(thinking_budget=9), {"thinkingBudget": 9, "includeThoughts": True}),
    ("gemini-flash-latest", ModelSettings(reasoning_effort="low", thinking=False), {"thinkingLevel": "LOW"}),
    ("gemini-2.5-flash", ModelSettings(thinking=True), {"thinkingBudget": -1, "includeThoughts": True}),
    ("gemini-2.5-flash", ModelSettings(thinking=False), {"thinkingBudget": 0}),
    ("gemini-2.5-pro", ModelSettings(thinking=False), {"thinkingBudget": 128}),
    ("gemini-2.5-flash", ModelSettings(thinking_budget=0), {"thinkingBudget": 0}),
    (
        "models/gemini-2.5-flash",
        ModelSettings(reasoning_effort="medium"),
        {"thinkingBudget": 8192, "includeThoughts": True},
    ),
    (
        "gemini-2.5-pro",
        ModelSettings(reasoning_effort="high", thinking_budget=7),
        {"thinkingBudget": 7, "includeThoughts": True},
    ),
    ("gemini-2.0-flash", ModelSettings(thinking=True, thinking_budget=5), None),
    ("gemma-3-27b-it", ModelSettings(reasoning_effort="high"), None),
]


@pytest.mark.parametrize(("model", "settings", "config"), _CASES)
def test_settings_say_how_long(model: str, settings: ModelSettings, config: dict[str, Any] | None) -> None:
    assert thinking_config(settings, generation_of(model)) == config


def test_generations() -> None:
    assert generation_of("gemini-10").levels
    assert generation_of("publishers/google/models/gemini-3.1-pro-preview-customtools").signed
    assert generation_of("gemini-pro-latest") == generation_of("gemini-3-flash")
    assert not generation_of("tunedModels/mine").tools_with_schema
