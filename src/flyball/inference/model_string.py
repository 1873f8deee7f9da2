"""Model strings: how a user names a model, and what the name means.

    local                               the embedded engine's default model
    local:<name or path>                another model, a file
    openai:<model>                      also anthropic, google, vertex, vertex-anthropic, azure, openrouter,
                                        ollama, vllm, llama-cpp, lm-studio
    http://localhost:8000/v1#<model>    any server that speaks OpenAI's protocol; the model may be left out
    test, test:<text>                   no model: answers from the request alone, or with the text

Rules kept here:
- a string is read or refused with UnknownModel, never anything else, and nothing is looked up;
- names are taken as they are: no case folding, no trimming, no aliases;
- addresses carry no secrets: those with a user, a password or a query are refused, and never quoted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from msgspec import Struct

from flyball.core.errors import UnknownModel

OPENAI_COMPATIBLE = "openai-compatible"
"""The provider of a base URL."""

PROVIDERS = (
    "local", "openai", "anthropic", "google", "vertex", "vertex-anthropic", "azure", "openrouter", "ollama",
    "vllm", "llama-cpp", "lm-studio", "test",
)  # fmt: skip
"""The providers that flyball knows by name; others come with the packages that register them."""

_NAMELESS = frozenset(("local", "test", "vllm", "llama-cpp", "lm-studio"))
"""Providers that need no model's name."""

_FAMILIES = (
    ("gpt", "openai"),
    ("chatgpt", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("claude", "anthropic"),
    ("gemini", "google"),
    ("gemma", "ollama"),
    ("llama", "ollama"),
    ("qwen", "ollama"),
    ("mistral", "ollama"),
)
"""Who serves which family: only to suggest what may have been meant."""


class ModelRef(Struct, frozen=True, omit_defaults=True):
    """What a model string means. An empty `name` is the provider's default; `raw` is the string itself."""

    provider: str
    name: str = ""
    base_url: str | None = None
    raw: str = ""


def parse_model(text: str, providers: Iterable[str] = PROVIDERS) -> ModelRef:
    """Read a model string.

    Args:
        text: the string.
        providers: the providers that may stand before the colon.

    Raises:
        UnknownModel: it names no provider, lacks the model's name, or has characters that no name has. The
            message says what is near; details `providers` and `near` hold the same for programs.
    """
    known = tuple(providers)
    if not isinstance(text, str) or not text.strip():  # pyright: ignore[reportUnnecessaryIsInstance] - users may pass anything
        _refuse(text, "is empty", known, [])
    if text[:8].lower().startswith(("http://", "https://")):
        return _address(text)
    provider, colon, name = text.partition(":")
    if provider not in known:
        _refuse(text, *_what_is_wrong(provider, name, known))
    if colon and not name.strip():
        _refuse(text, "has no model after the colon", known, [])
    if not colon and provider not in _NAMELESS:
        _refuse(text, f"names no model: write '{provider}:<model>'", known, [])
    if provider == "test":
        # The name is what the engine says: any text that can be written down.
        allowed = _encodable(name)
    else:
        allowed = name.isprintable() and name == name.strip() and (provider == "local" or " " not in name)
    if not allowed:
        _refuse(text, "has white space or control characters in the model's name", known, [])
    return ModelRef(provider, name, raw=text)


def _address(text: str) -> ModelRef:
    from urllib.parse import urlsplit

    if not text.isprintable() or " " in text:
        raise UnknownModel(
            "the model's address has white space or control characters in it",
            providers=list(PROVIDERS),
            near=[],
        )
    try:
        parts = urlsplit(text)
        whole = bool(parts.hostname) and parts.port != 0
        secret = parts.username is not None or parts.password is not None or bool(parts.query)
    except ValueError:
        whole = secret = False
        parts = None
    if parts is None or not whole:
        raise UnknownModel(
            f"{_shown(text.partition('#')[0].rpartition('@')[2])} is no address of a model server: "
            "write one like 'http://localhost:8000/v1#model'",
            providers=list(PROVIDERS),
            near=[],
        )
    if secret:
        raise UnknownModel(
            f"the address of the model server at {parts.hostname!r} carries a user, a password or a query, "
            "which would end up in journals: set the key in the environment instead",
            providers=list(PROVIDERS),
            near=[],
        )
    base, _, name = text.partition("#")
    return ModelRef(OPENAI_COMPATIBLE, name, base.rstrip("/"), raw=text)


def _what_is_wrong(
    provider: str, name: str, known: tuple[str, ...]
) -> tuple[str, tuple[str, ...], list[str]]:
    from difflib import get_close_matches

    if name.partition("/")[0].isdecimal():
        return "looks like an address: put 'http://' before it", known, [f"http://{provider}:{name}"]
    near = [
        f"{match}:{name}" if name else match
        for match in get_close_matches(provider.strip().lower(), known, cutoff=0.6)
    ]
    if not name:
        bare = provider.strip().lower()
        near = [f"{owner}:{bare}" for family, owner in _FAMILIES if bare.startswith(family)] + near
    return "names no known provider", known, near


def _refuse(text: str, wrong: str, known: tuple[str, ...], near: list[str]) -> NoReturn:
    near = [_shown(match) for match in near]
    hint = f"; did you mean {' or '.join(near)}?" if near else "."
    raise UnknownModel(
        f"the model {_shown(text)} {wrong}{hint} "
        f"Known are {', '.join(known)} (as in 'openai:gpt-5') and addresses like 'http://localhost:8000/v1#model'",
        providers=list(known),
        near=near,
    )


def _shown(text: object) -> str:
    # repr, so that odd characters can be seen and the message can always be encoded.
    shown = repr(text)
    return shown if len(shown) <= 100 else f"{shown[:100]}…"


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
