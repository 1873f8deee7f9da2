from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flyball.core.errors import UnknownModel
from flyball.inference.model_string import OPENAI_COMPATIBLE, PROVIDERS, ModelRef, parse_model

GOOD = [
    ("local", "local", "", None),
    ("local:qwen", "local", "qwen", None),
    ("local:/my models/a.gguf", "local", "/my models/a.gguf", None),
    ("local:C:\\models\\a.gguf", "local", "C:\\models\\a.gguf", None),
    ("openai:gpt-5", "openai", "gpt-5", None),
    ("openai:ft:gpt-4o:acme::1", "openai", "ft:gpt-4o:acme::1", None),
    ("anthropic:claude-sonnet-4-5", "anthropic", "claude-sonnet-4-5", None),
    ("google:gemini-2.5-pro", "google", "gemini-2.5-pro", None),
    ("vertex:gemini-2.5-pro", "vertex", "gemini-2.5-pro", None),
    ("vertex-anthropic:claude-sonnet-4@20250514", "vertex-anthropic", "claude-sonnet-4@20250514", None),
    ("ollama:llama3", "ollama", "llama3", None),
    ("ollama:hf.co/me/model:Q4_K_M", "ollama", "hf.co/me/model:Q4_K_M", None),
    ("test", "test", "", None),
    ("test:some text: with all\nof it", "test", "some text: with all\nof it", None),
    ("http://localhost:8000/v1", OPENAI_COMPATIBLE, "", "http://localhost:8000/v1"),
    ("http://localhost:8000/v1/#a/b:c", OPENAI_COMPATIBLE, "a/b:c", "http://localhost:8000/v1"),
    ("HTTPS://example.com#m", OPENAI_COMPATIBLE, "m", "HTTPS://example.com"),
    ("http://[::1]:8000/v1#m", OPENAI_COMPATIBLE, "m", "http://[::1]:8000/v1"),
]


@pytest.mark.parametrize(("text", "provider", "name", "base_url"), GOOD)
def test_model_strings_are_read(text: str, provider: str, name: str, base_url: str | None) -> None:
    assert parse_model(text) == ModelRef(provider, name, base_url, text)


BAD = [
    ("", "is empty"),
    (" \t\n", "is empty"),
    ("openai", "names no model: write 'openai:<model>'"),
    ("openai:", "has no model after the colon"),
    ("openai: ", "has no model after the colon"),
    ("local:", "has no model after the colon"),
    ("test:", "has no model after the colon"),
    ("openai: gpt-5", "white space"),
    ("openai:gpt 5", "white space"),
    ("openai:gpt-5\n", "white space or control"),
    ("openai:gpt\x00", "control characters"),
    ("openai:\ud800", "control characters"),
    ("test:\ud800", "control characters"),
    (" openai:gpt-5", "did you mean 'openai:gpt-5'"),
    ("OpenAI:gpt-5", "did you mean 'openai:gpt-5'"),
    ("opnai:gpt-5", "did you mean 'openai:gpt-5'"),
    ("antropic:claude", "did you mean 'anthropic:claude'"),
    ("gpt-5", "did you mean 'openai:gpt-5'"),
    ("claude-sonnet-4-5", "did you mean 'anthropic:claude-sonnet-4-5'"),
    ("gemini-2.5-pro", "did you mean 'google:gemini-2.5-pro'"),
    ("llama3", "did you mean 'ollama:llama3'"),
    ("locl", "did you mean 'local'"),
    ("localhost:8000/v1", "did you mean 'http://localhost:8000/v1'"),
    (":gpt-5", "names no known provider"),
    ("ftp://example.com", "names no known provider"),
    ("openai-compatible:x", "names no known provider"),
    ("http://", "no address of a model server"),
    ("http://#model", "no address of a model server"),
    ("http://[::1", "no address of a model server"),
    ("http://host:port/v1", "no address of a model server"),
    ("http://host:99999/v1", "no address of a model server"),
    ("http://host/a b", "white space"),
    ("http://host/v1\n", "white space or control"),
]


@pytest.mark.parametrize(("text", "wrong"), BAD)
def test_what_cannot_be_read_says_why(text: str, wrong: str) -> None:
    with pytest.raises(UnknownModel) as caught:
        parse_model(text)
    assert wrong in caught.value.message
    assert set(PROVIDERS) == set(caught.value.details["providers"])


def test_the_known_providers_are_listed() -> None:
    with pytest.raises(UnknownModel) as caught:
        parse_model("nobody:x")
    for provider in PROVIDERS:
        assert provider in caught.value.message
    assert "http://" in caught.value.message


def test_near_matches_are_there_for_programs() -> None:
    with pytest.raises(UnknownModel) as caught:
        parse_model("vertx:gemini")
    assert caught.value.details["near"] == ["'vertex:gemini'"]


@pytest.mark.parametrize(
    "text",
    [
        "http://me:sesame@host/v1",
        "http://host/v1?key=sesame",
        "https://sesame@host",
        "http://me:sesame@:x/v1",
    ],
)
def test_addresses_with_secrets_are_refused_and_not_quoted(text: str) -> None:
    with pytest.raises(UnknownModel) as caught:
        parse_model(text)
    assert "sesame" not in str(caught.value.record())


def test_other_providers_may_be_known() -> None:
    assert parse_model("acme:m1", ["acme"]) == ModelRef("acme", "m1", raw="acme:m1")
    with pytest.raises(UnknownModel, match="acme"):
        parse_model("openai:gpt-5", ["acme"])


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(UnknownModel):
        parse_model(cast("Any", None))


def read_or_refuse(text: str) -> ModelRef | UnknownModel:
    try:
        return parse_model(text)
    except UnknownModel as error:
        return error


awkward = st.text(st.characters(codec=None))
names = st.sampled_from([*PROVIDERS, "http", "https", "acme", ""])


@given(awkward | st.tuples(names, st.sampled_from([":", "://", "", "#"]), awkward).map("".join))
@example("http://[")
@example("http://a]b")
@example("http://\u2100")
@example("x" * 100_000)
def test_reading_never_raises_anything_else(text: str) -> None:
    read = read_or_refuse(text)
    if isinstance(read, UnknownModel):
        assert len(read.message) < 2_000
        assert msgspec.json.encode(read.record())
    else:
        assert read.raw == text
        assert read.provider in (*PROVIDERS, OPENAI_COMPATIBLE)
        assert msgspec.json.decode(msgspec.json.encode(read), type=ModelRef) == read


@given(
    st.sampled_from([name for name in PROVIDERS if name != "test"]),
    st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1),
)
def test_any_plain_name_is_taken_as_it_is(provider: str, name: str) -> None:
    assert parse_model(f"{provider}:{name}") == ModelRef(provider, name, raw=f"{provider}:{name}")
