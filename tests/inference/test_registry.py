from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from importlib.metadata import EntryPoint
from typing import Any, cast

import pytest

from flyball.core.errors import (
    ConfigurationFailure,
    MissingExtra,
    MissingKey,
    NoEngine,
    UnknownModel,
    UserError,
)
from flyball.core.messages import user
from flyball.inference.engine import Engine
from flyball.inference.model_string import OPENAI_COMPATIBLE, PROVIDERS, ModelRef
from flyball.inference.registry import EXTRAS, GROUP, Registry, require_key, resolve_engine
from flyball.inference.request import Request
from flyball.inference.scripted import ScriptedEngine


def named(ref: ModelRef) -> Engine:
    """The factory that entry points of these tests point to."""
    return ScriptedEngine(name=f"{ref.provider}/{ref.name}/{ref.base_url}")


HERE = f"{__name__}:named"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[EntryPoint]:
    """The entry points that are installed, to be filled by a test."""
    points: list[EntryPoint] = []

    def entry_points(*, group: str) -> list[EntryPoint]:
        assert group == GROUP
        return points

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    return points


def test_an_engine_is_given_back() -> None:
    engine = ScriptedEngine()
    assert resolve_engine(engine) is engine


async def test_test_is_always_there() -> None:
    result = await resolve_engine("test:hello").infer(Request((user("hi"),)))
    assert result.content == "hello"


def test_engines_come_from_entry_points(installed: list[EntryPoint]) -> None:
    installed += [EntryPoint("openai", HERE, GROUP), EntryPoint("acme", HERE, GROUP)]
    registry = Registry()
    assert registry.resolve("openai:gpt-5").model_info().name == "openai/gpt-5/None"
    assert registry.resolve("acme:m1").model_info().name == "acme/m1/None"
    assert registry.providers == (*PROVIDERS, "acme")


def test_a_base_url_goes_to_the_engine_for_such_servers(installed: list[EntryPoint]) -> None:
    installed.append(EntryPoint(OPENAI_COMPATIBLE, HERE, GROUP))
    registry = Registry()
    engine = registry.resolve("http://localhost:8000/v1#m")
    assert engine.model_info().name == f"{OPENAI_COMPATIBLE}/m/http://localhost:8000/v1"
    assert OPENAI_COMPATIBLE not in registry.providers


def test_given_engines_go_before_installed_ones_and_stay_where_they_are(installed: list[EntryPoint]) -> None:
    installed.append(EntryPoint("acme", "no.such.module:engine", GROUP))
    assert Registry({"acme": named}).resolve("acme:m").model_info().name == "acme/m/None"
    with pytest.raises(UnknownModel):
        Registry(installed=False).resolve("acme:m")


def test_one_package_seen_twice_counts_once_and_two_are_told_apart(installed: list[EntryPoint]) -> None:
    installed += [EntryPoint("acme", HERE, GROUP)] * 2
    assert Registry().resolve("acme:m")
    installed.append(EntryPoint("acme", "other.package:engine", GROUP))
    with pytest.raises(ConfigurationFailure, match=r"more than one .*'acme': other\.package:engine, "):
        Registry().resolve("acme:m")


def test_the_table_is_read_once(installed: list[EntryPoint]) -> None:
    registry = Registry()
    assert registry.providers == PROVIDERS
    installed.append(EntryPoint("acme", HERE, GROUP))
    assert registry.providers == PROVIDERS


@pytest.mark.parametrize("provider", [*EXTRAS])
def test_a_known_provider_without_an_engine_names_its_extra(
    provider: str, installed: list[EntryPoint]
) -> None:
    assert installed == []
    text = "http://localhost:8000/v1" if provider == OPENAI_COMPATIBLE else f"{provider}:m"
    with pytest.raises(MissingExtra) as caught:
        Registry().resolve(text)
    assert f"pip install 'flyball[{EXTRAS[provider]}]'" in caught.value.message


def test_every_provider_but_test_has_an_extra() -> None:
    assert set(EXTRAS) == {*PROVIDERS, OPENAI_COMPATIBLE} - {"test"}


def raises(error: Exception) -> Registry:
    def factory(_: ModelRef) -> Engine:
        raise error

    return Registry({"openai": factory, "acme": factory})


def test_a_module_that_is_missing_is_an_extra_that_is_missing(installed: list[EntryPoint]) -> None:
    assert installed == []
    registry = raises(ModuleNotFoundError("No module named 'aiohttp'", name="aiohttp"))
    with pytest.raises(MissingExtra, match=r"needs aiohttp.*: pip install 'flyball\[openai\]'"):
        registry.resolve("openai:m")
    with pytest.raises(MissingExtra, match="needs aiohttp, which is not installed: install what its package"):
        registry.resolve("acme:m")


def test_an_entry_point_that_cannot_be_loaded_says_so(installed: list[EntryPoint]) -> None:
    installed += [
        EntryPoint("openai", "no_such_module:engine", GROUP),
        EntryPoint("google", "flyball.no_such_module:engine", GROUP),
        EntryPoint("acme", f"{__name__}:nothing_here", GROUP),
    ]
    with pytest.raises(MissingExtra, match="needs no_such_module"):
        Registry().resolve("openai:m")
    with pytest.raises(ConfigurationFailure, match="registered and not there"):
        Registry().resolve("google:m")
    with pytest.raises(ConfigurationFailure, match="the engine for 'acme' could not be made: AttributeError"):
        Registry().resolve("acme:m")


def test_what_else_a_factory_raises_is_wrapped_and_named() -> None:
    error = ValueError("bad port")
    with pytest.raises(
        ConfigurationFailure, match="'openai' could not be made: ValueError: bad port"
    ) as caught:
        raises(error).resolve("openai:m")
    assert caught.value.__cause__ is error
    assert not caught.value.retryable


def test_errors_of_the_taxonomy_pass() -> None:
    with pytest.raises(MissingKey, match="set it"):
        raises(MissingKey("set it")).resolve("openai:m")


def test_a_factory_that_gives_no_engine_is_refused() -> None:
    registry = Registry({"openai": cast("Any", lambda _: "no engine")})  # pyright: ignore[reportUnknownLambdaType]
    with pytest.raises(ConfigurationFailure, match="gave a str, which is no engine"):
        registry.resolve("openai:m")


def test_no_model_and_no_engine_are_typed_errors() -> None:
    with pytest.raises(NoEngine, match="no model is set"):
        resolve_engine(None)
    with pytest.raises(UserError, match=r"a int is neither .* no \['infer', 'stream', 'model_info'\]"):
        resolve_engine(cast("Any", 3))
    with pytest.raises(UnknownModel):
        resolve_engine("nobody:x")


@pytest.mark.integration
def test_known_names_need_no_look_at_what_is_installed() -> None:
    code = (
        "import sys; from flyball.inference.registry import resolve_engine; resolve_engine('test');"
        "assert 'importlib.metadata' not in sys.modules; assert 'difflib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})


def test_the_first_key_that_is_set_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRST_KEY", " ")
    monkeypatch.setenv("SECOND_KEY", " sesame\n")
    assert require_key("acme", "FIRST_KEY", "SECOND_KEY") == "sesame"


def test_a_missing_key_names_its_variables_and_no_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FIRST_KEY", raising=False)
    monkeypatch.setenv("SECOND_KEY", "")
    monkeypatch.setenv("THIRD_KEY", "sesame")
    with pytest.raises(
        MissingKey, match="'acme': set the environment variable FIRST_KEY or SECOND_KEY"
    ) as caught:
        require_key("acme", "FIRST_KEY", "SECOND_KEY")
    assert caught.value.details == {"provider": "acme", "variables": ["FIRST_KEY", "SECOND_KEY"]}
    assert "sesame" not in str(caught.value.record())
