"""Which model a call was of, and which price of a table counts for it."""

from __future__ import annotations

from typing import Any

import pytest

from flyball import ModelPricing, Usage
from flyball.core.errors import UserError
from flyball.core.usage import CallUsage
from flyball.observe.prices import PriceTable, Served, served

ONE = Usage(1)


@pytest.mark.parametrize(
    ("model", "asked", "provider", "expected"),
    [
        ("gpt-5-2025-08-07", "openai:gpt-5", "", Served("gpt-5-2025-08-07", "openai")),
        (None, "openai:gpt-5", "", Served("gpt-5", "openai")),
        (None, "ollama:llama3:8b", "", Served("llama3:8b", "ollama")),
        ("qwen3", "local", "", Served("qwen3", "local")),
        (None, "local", "", Served("local", "local")),
        (None, "gpt-5", "", Served("gpt-5", "")),
        ("gpt-5", "gpt-5", "azure", Served("gpt-5", "azure")),
        (None, "llama3:8b", "mine", Served("llama3:8b", "mine")),
        (
            "m",
            "http://localhost:1/v1#m",
            "",
            Served("m", "openai-compatible", "http://localhost:1/v1"),
        ),
        (
            None,
            "https://example.org/v1",
            "",
            Served("https://example.org/v1", "openai-compatible", "https://example.org/v1"),
        ),
    ],
)
def test_who_served_a_call(model: str | None, asked: str, provider: str, expected: Served) -> None:
    assert served(CallUsage(0.0, model, None, asked, provider)) == expected


@pytest.mark.parametrize(
    ("key", "model", "asked", "provider", "found"),
    [
        ("gpt-5", "gpt-5", "openai:gpt-5", "", True),
        ("openai:gpt-5", "gpt-5", "openai:gpt-5", "", True),
        ("openai:gpt-5", "gpt-5", "anything", "openai", True),
        ("gpt-5", "gpt-5-2025-08-07", "openai:gpt-5", "", True),
        ("openai:gpt-5", "gpt-5-2025-08-07", "gpt-5", "openai", True),
        ("claude-sonnet-4-5", "claude-sonnet-4-5@20250929", "vertex-anthropic:x", "", True),
        ("local", "qwen3-0.6b", "local", "", True),
        ("gpt-5", None, "openai:gpt-5", "", True),
        # Not what it was not asked about:
        ("gpt-5", "gpt-5-mini", "openai:gpt-5", "", False),
        ("claude-sonnet-4", "claude-sonnet-4-5", "anthropic:claude-sonnet-4-5", "", False),
        ("azure:gpt-5", "gpt-5", "openai:gpt-5", "", False),
        ("gpt-5", "claude-sonnet-5", "gpt-5", "several", False),
    ],
)
def test_which_price_counts(key: str, model: str | None, asked: str, provider: str, found: bool) -> None:
    call = CallUsage(0.0, model, ONE, asked, provider)
    table = PriceTable({key: ModelPricing(1, 1), "another": ModelPricing(2, 2)})
    assert table.cost(call) == (1 if found else None)


def test_the_name_that_was_answered_counts_before_all_others() -> None:
    call = CallUsage(0.0, "gpt-5-2025-08-07", ONE, "openai:gpt-5")
    keys = ["openai:gpt-5", "gpt-5", "openai:gpt-5-2025-08-07", "gpt-5-2025-08-07"]
    table: dict[str, ModelPricing] = {}
    for price, key in enumerate(keys):
        table[key] = ModelPricing(price, 0)
        assert PriceTable(table).cost(call) == price


@pytest.mark.parametrize("pricing", [3, {"a": 3}, {"a": {"input": 1}}], ids=repr)
def test_what_is_no_table_of_prices_is_refused(pricing: Any) -> None:
    with pytest.raises(UserError, match=r"pricing=|the price of 'a'"):
        PriceTable(pricing)
