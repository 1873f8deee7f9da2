from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from flyball.core.spec import OutputMode
from flyball.inference.model_string import PROVIDERS, ModelRef, parse_model
from flyball.inference.profile import ABILITIES, UNKNOWN, Profile, combined, profile_for, shared
from flyball.inference.request import ModelInfo
from flyball.inference.scripted import ScriptedEngine


def of(text: str) -> Profile:
    return profile_for(parse_model(text))


def test_the_longest_prefix_decides() -> None:
    assert of("openai:gpt-4").context_window == 8_192
    assert of("openai:gpt-4o-mini").context_window == 128_000
    assert of("openai:gpt-4.1-nano").context_window == 1_047_576
    assert of("openai:gpt-5").thinking
    assert not of("openai:gpt-5-chat-latest").thinking
    assert not of("anthropic:claude-3-5-haiku").thinking
    assert of("anthropic:claude-3-7-sonnet").thinking
    assert not of("anthropic:claude-sonnet-4-0").native_schema
    assert of("vertex-anthropic:claude-sonnet-4-5@20250929").native_schema
    assert of("google:gemini-2.5-pro") == of("vertex:gemini-2.5-pro")


def test_an_unknown_model_gets_its_providers_row() -> None:
    assert of("openai:something-new") == Profile(native_schema=True, images=True)
    assert of("openai:something-new").context_window == 0


def test_an_unknown_provider_gets_the_cautious_default() -> None:
    assert profile_for(ModelRef("acme", "gpt-5")) == UNKNOWN
    assert profile_for(ModelInfo("gpt-5")) == UNKNOWN
    assert of("http://localhost:8000/v1#gpt-5") == UNKNOWN
    assert UNKNOWN.tools
    assert UNKNOWN.default_output_mode is OutputMode.TOOL


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_known_provider_has_a_row_whose_default_it_can_do(provider: str) -> None:
    profile = profile_for(ModelRef(provider))
    assert {
        OutputMode.TOOL: profile.tools,
        OutputMode.NATIVE: profile.native_schema,
        OutputMode.GRAMMAR: profile.grammar,
    }[profile.default_output_mode]


def test_what_the_engine_knows_of_its_window_wins() -> None:
    assert profile_for(ModelInfo("gpt-4o", 64, "openai")) == Profile(
        native_schema=True, images=True, context_window=64
    )
    assert profile_for(ScriptedEngine(context_window=32)).context_window == 32


def test_an_engines_own_profile_wins() -> None:
    class Own(ScriptedEngine):
        profile = Profile(tools=False, default_output_mode=OutputMode.PROMPTED)

    assert profile_for(Own(context_window=5)) is Own.profile

    class Odd(ScriptedEngine):
        profile = "a text"

    assert profile_for(Odd()) == profile_for(ScriptedEngine())


# Several

profiles = st.builds(
    Profile,
    **{name: st.booleans() for name in ABILITIES},
    context_window=st.sampled_from([0, 100, 200]),
    default_output_mode=st.sampled_from(OutputMode),
)
some_profiles = st.lists(profiles, min_size=1, max_size=4)


@given(some_profiles)
def test_what_is_shared_is_what_each_can_do(several: list[Profile]) -> None:
    found = shared(several)
    for name in ABILITIES:
        assert getattr(found, name) is all(getattr(one, name) for one in several)
    windows = [one.context_window for one in several if one.context_window]
    assert found.context_window == (min(windows) if windows else 0)
    needed = {OutputMode.TOOL: found.tools, OutputMode.NATIVE: found.native_schema}
    assert needed.get(found.default_output_mode, True)
    assert shared([found, found]) == found
    assert replace(shared(several[::-1]), default_output_mode=found.default_output_mode) == found


@given(some_profiles)
def test_what_is_combined_is_what_any_can_do(several: list[Profile]) -> None:
    found = combined(several)
    for name in ABILITIES:
        assert getattr(found, name) is any(getattr(one, name) for one in several)
    assert found.context_window == max(one.context_window for one in several)
    assert combined([found]) == found


def test_every_ability_is_known() -> None:
    assert [name for name, value in asdict(Profile()).items() if isinstance(value, bool)] == list(ABILITIES)
