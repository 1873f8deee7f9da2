"""Servers that speak OpenAI's protocol: where they are, in which dialect, and which key opens them.

    openai:<model>        api.openai.com, or OPENAI_BASE_URL          OPENAI_API_KEY
    azure:<deployment>    AZURE_OPENAI_ENDPOINT                       AZURE_OPENAI_API_KEY
    openrouter:<model>    openrouter.ai                               OPENROUTER_API_KEY
    ollama:<model>        OLLAMA_HOST, or port 11434 here             OLLAMA_API_KEY, if any
    vllm:<model>          VLLM_BASE_URL, or port 8000 here            VLLM_API_KEY, if any
    llama-cpp:<model>     LLAMA_CPP_BASE_URL, or port 8080 here       LLAMA_CPP_API_KEY, if any
    lm-studio:<model>     LM_STUDIO_BASE_URL, or port 1234 here       LM_STUDIO_API_KEY, if any
    http://…/v1#<model>   that address                                OPENAI_COMPATIBLE_API_KEY, if any

A key goes to the server that it was set for, and to no other.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from msgspec import Struct

from flyball.core.errors import ConfigurationFailure
from flyball.engines.openai.dialect import (
    AZURE,
    COMPATIBLE,
    LLAMA_CPP,
    LM_STUDIO,
    OLLAMA,
    OPENAI,
    OPENROUTER,
    VLLM,
    Dialect,
)
from flyball.engines.wire.addresses import checked
from flyball.inference.model_string import OPENAI_COMPATIBLE
from flyball.inference.registry import require_key


class Server(Struct, frozen=True):
    """A kind of server. `address` is where it is unless the variable `place` says otherwise."""

    dialect: Dialect
    address: str = ""
    place: str = ""
    key: str = ""
    needs_key: bool = False


SERVERS: Mapping[str, Server] = {
    "openai": Server(
        OPENAI, "https://api.openai.com/v1", "OPENAI_BASE_URL", "OPENAI_API_KEY", needs_key=True
    ),
    "azure": Server(AZURE, "", "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY", needs_key=True),
    "openrouter": Server(
        OPENROUTER,
        "https://openrouter.ai/api/v1",
        "OPENROUTER_BASE_URL",
        "OPENROUTER_API_KEY",
        needs_key=True,
    ),
    "ollama": Server(OLLAMA, "http://localhost:11434/v1", "OLLAMA_HOST", "OLLAMA_API_KEY"),
    "vllm": Server(VLLM, "http://localhost:8000/v1", "VLLM_BASE_URL", "VLLM_API_KEY"),
    "llama-cpp": Server(LLAMA_CPP, "http://localhost:8080/v1", "LLAMA_CPP_BASE_URL", "LLAMA_CPP_API_KEY"),
    "lm-studio": Server(LM_STUDIO, "http://localhost:1234/v1", "LM_STUDIO_BASE_URL", "LM_STUDIO_API_KEY"),
    OPENAI_COMPATIBLE: Server(COMPATIBLE, "", "", "OPENAI_COMPATIBLE_API_KEY"),
}


def server_named(name: str) -> Server:
    """A kind of server by its name.

    Raises:
        ConfigurationFailure: there is none of that name.
    """
    server = SERVERS.get(name)
    if server is None:
        raise ConfigurationFailure(
            f"no server is called {name!r}: known are {', '.join(sorted(SERVERS))}", server=name
        )
    return server


def address_of(name: str, server: Server, given: str | None = None) -> str:
    """Where a server is.

    Raises:
        ConfigurationFailure: nobody said where, or what was said is no address.
    """
    told = given or (os.environ.get(server.place, "").strip() if server.place else "") or server.address
    if not told:
        raise ConfigurationFailure(
            f"nobody said where {name!r} is: set the environment variable {server.place}, or give base_url=",
            provider=name,
            variables=[server.place],
        )
    if "://" not in told:
        told = f"http://{told}"
    told = checked(told, name)
    # OLLAMA_HOST names a host, and no path.
    return f"{told}/v1" if name == "ollama" and told.count("/") == 2 else told


def key_of(name: str, server: Server, given: str | None = None) -> str | None:
    """The key of a server, where there is one.

    Raises:
        MissingKey: it needs one, and none is set.
    """
    if given:
        return given
    if server.needs_key:
        return require_key(name, server.key)
    return os.environ.get(server.key, "").strip() or None
