"""Settings: what is unset in one comes from the other."""

from __future__ import annotations

from hypothesis import given
from msgspec.structs import asdict

from flyball.core.settings import PAGANTIC, SEMSTREAMS, STRUCTURED, ModelSettings
from tests.strategies import settings


def is_set(value: object) -> bool:
    return value is not None and value != ()


@given(settings, settings)
def test_what_is_set_wins_and_the_rest_comes_from_the_other(one: ModelSettings, other: ModelSettings) -> None:
    both = one.over(other)
    for name, value in asdict(one).items():
        if name != "options":
            assert getattr(both, name) == (value if is_set(value) else getattr(other, name))
    assert (both.options or {}) == (other.options or {}) | (one.options or {})


@given(settings, settings, settings)
def test_laying_over_is_associative(one: ModelSettings, two: ModelSettings, three: ModelSettings) -> None:
    left, right = one.over(two).over(three), one.over(two.over(three))
    assert asdict(left) | {"options": left.options or {}} == asdict(right) | {"options": right.options or {}}


@given(settings)
def test_nothing_set_changes_nothing(one: ModelSettings) -> None:
    assert ModelSettings().over(one) == one
    assert one.over(ModelSettings()) == one
    assert one.over(one) == one


def test_zero_and_false_are_set() -> None:
    over = ModelSettings(temperature=0.0, thinking=False, seed=0).over(
        ModelSettings(temperature=1.0, thinking=True, seed=7)
    )
    assert (over.temperature, over.thinking, over.seed) == (0.0, False, 0)


def test_options_are_merged_and_not_changed_in_place() -> None:
    theirs = {"a": 1, "b": 1}
    over = ModelSettings(options={"b": 2}).over(ModelSettings(options=theirs))
    assert over.options == {"a": 1, "b": 2}
    assert theirs == {"a": 1, "b": 1}
    assert ModelSettings(options={}).over(ModelSettings(options=theirs)).options == theirs


def test_a_thinking_budget_removes_the_temperature() -> None:
    assert ModelSettings(temperature=0.7).effective_temperature == 0.7
    assert ModelSettings(temperature=0.7, thinking_budget=1000).effective_temperature is None


def test_the_systems_defaults() -> None:
    assert PAGANTIC.max_tokens == 2048
    assert (SEMSTREAMS.temperature, SEMSTREAMS.max_tokens) == (0.2, 4096)
    assert (STRUCTURED.temperature, STRUCTURED.thinking) == (0.3, False)
