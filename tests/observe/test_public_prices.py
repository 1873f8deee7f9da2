"""Public prices: those of genai-prices, for exactly the provider that serves a model, and never fetched."""

from __future__ import annotations

import socket
import subprocess
import sys
from decimal import Decimal

import pytest
from genai_prices import Usage as Counted
from genai_prices import calc_price

from flyball import CostTracker, ModelPricing, RunUsage, Usage, estimate_run_cost
from flyball.core.errors import MissingExtra, UserError
from flyball.core.usage import CallUsage
from flyball.inference.model_string import PROVIDERS
from flyball.observe.public_prices import PublicPrices

AT = 1_790_000_000.0
USED = Usage(1000, 100, cache_read_tokens=300, cache_write_tokens=200)


def price(
    asked: str, model: str | None = None, provider: str = "", usage: Usage | None = USED
) -> Decimal | None:
    return PublicPrices().cost(CallUsage(AT, model, usage, asked, provider))


@pytest.mark.parametrize(
    ("asked", "model", "there"),
    [
        ("openai:gpt-5", "gpt-5-2025-08-07", "openai"),
        ("anthropic:claude-sonnet-4-5", "claude-sonnet-4-5-20250929", "anthropic"),
        ("google:gemini-2.5-pro", None, "google"),
        ("vertex:gemini-2.5-pro", None, "google"),
        ("vertex-anthropic:claude-sonnet-4-5@20250929", None, "google"),
        ("openrouter:openai/gpt-5", None, "openrouter"),
    ],
)
def test_the_price_is_the_provider_s(asked: str, model: str | None, there: str) -> None:
    from datetime import UTC, datetime

    counted = Counted(input_tokens=1000, output_tokens=100, cache_read_tokens=300, cache_write_tokens=200)
    name = model or asked.partition(":")[2]
    then = datetime.fromtimestamp(AT, UTC)
    expected = calc_price(counted, name, provider_id=there, genai_request_timestamp=then).total_price
    assert expected > 0
    assert price(asked, model) == expected


@pytest.mark.parametrize(
    ("asked", "provider"),
    [
        ("local", ""),
        ("local:gpt-5", ""),
        ("ollama:gpt-5", ""),
        ("test:gpt-5", ""),
        ("openai:no-such-model", ""),
        ("http://localhost:8000/v1#gpt-5", ""),
        ("gpt-5", "unsaid"),
        ("gpt-5", "my-openai-proxy"),
        ("gpt-5", "openai-compatible"),
        ("no-such-model", ""),
    ],
)
def test_a_model_of_the_same_name_elsewhere_says_nothing(asked: str, provider: str) -> None:
    assert price(asked, provider=provider) is None
    assert price(asked, "gpt-5" if "gpt-5" in asked else None, provider) is None


def test_an_address_that_is_a_provider_s_is_known_by_it() -> None:
    assert price("https://api.openai.com/v1#gpt-5") == price("openai:gpt-5") != None  # noqa: E711


def test_of_a_bare_name_the_provider_is_told_from_it() -> None:
    assert price("gpt-5") == price("openai:gpt-5")


def test_long_prompts_have_their_own_prices_call_by_call() -> None:
    asked = "anthropic:claude-sonnet-4-5"
    calls = [CallUsage(AT, None, Usage(150_000, 10), asked) for _ in range(2)]
    one = price(asked, usage=Usage(150_000, 10))
    together = price(asked, usage=Usage(300_000, 20))
    assert one is not None
    assert together is not None
    assert CostTracker().cost_of(calls).total == 2 * one < together


def test_prices_are_those_of_the_time() -> None:
    def cost(at: float) -> Decimal | None:
        return PublicPrices().cost(CallUsage(at, None, Usage(10**6, 0), "openai:o3"))

    assert cost(1_746_057_600.0) == 10  # in May 2025
    assert cost(1_756_684_800.0) == 2  # in September


def test_a_usage_that_cannot_be_is_priced_by_what_was_cached() -> None:
    odd, cached = Usage(10, 0, cache_read_tokens=30), Usage(30, 0, cache_read_tokens=30)
    assert price("openai:gpt-5", usage=odd) == price("openai:gpt-5", usage=cached)


def test_without_a_usage_there_is_no_price() -> None:
    assert price("openai:gpt-5", usage=None) is None


def test_every_provider_that_flyball_knows_has_its_place() -> None:
    paid = {"openai": "gpt-5", "anthropic": "claude-sonnet-4-5", "google": "gemini-2.5-pro"}
    paid |= {"vertex": "gemini-2.5-pro", "vertex-anthropic": "claude-sonnet-4-5"}
    paid |= {"azure": "gpt-5", "openrouter": "openai/gpt-5"}
    known = {name for name in PROVIDERS if price(f"{name}:{paid.get(name, 'gpt-5')}") is not None}
    assert known == set(paid)


def test_own_prices_come_before_the_public_ones() -> None:
    tracker = CostTracker({"local": ModelPricing(0, 0), "gpt-5": ModelPricing(1, 0)}, public_prices=True)
    assert tracker.record("openai:gpt-5", Usage(2)).total == 2
    assert tracker.record("local", Usage(2)).total == 0
    assert tracker.record("openai:gpt-5-mini", Usage(2)).total is not None
    assert CostTracker({"gpt-5": ModelPricing(1, 0)}).record("openai:gpt-5-mini", Usage(2)).total is None


def test_an_estimate_by_public_prices() -> None:
    assert estimate_run_cost("gpt-5", RunUsage(10**6, 10**5, requests=3)).known == Decimal("2.25")


def test_public_prices_are_in_dollars() -> None:
    with pytest.raises(UserError, match="USD, not in EUR"):
        CostTracker(currency="EUR")


def test_nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("somebody wanted to connect")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    assert price("openai:gpt-5") is not None
    assert price("openai:no-such-model-at-all") is None


def test_a_missing_package_is_named_when_the_tracker_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    monkeypatch.setattr("flyball.observe.public_prices.find_spec", lambda _: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    with pytest.raises(MissingExtra, match=r"pip install 'flyball\[cost\]'"):
        CostTracker()
    assert CostTracker({"gpt-5": ModelPricing(1, 1)}).record("gpt-5", Usage(1)).total == 1


@pytest.mark.integration
def test_prices_of_ones_own_load_no_list() -> None:
    code = (
        "import sys; from flyball import CostTracker, ModelPricing, Usage;"
        "CostTracker({'a': ModelPricing(1, 1)}).record('a', Usage(1)); print('genai_prices' in sys.modules)"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert finished.stdout.strip() == "False"
