"""OpenAI's models, and every server that speaks OpenAI's protocol.

    engine = OpenAIEngine("gpt-5")                                  # the Responses API
    engine = OpenAIEngine("gpt-4o", api="chat")
    engine = OpenAIEngine("qwen3", server="vllm", base_url="http://gpu1:8000/v1")

`chat` and `responses` are the two protocols, a codec each: pure, one file each way. `dialect` says as data
how servers differ, `servers` where they are and which key opens them, `written` reads what models write into
their text where their server does not. Servers that take tools or a schema, and not both, have
`wire.two_steps`.

Rules kept here:
- what a reasoning model thought goes back unchanged, and nowhere but where it came from;
- a schema is held to strictly only where that does not change what it means (`strict`);
- a key goes to the server that it was set for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flyball.engines.openai.dialect import Dialect
    from flyball.engines.openai.engine import OpenAIEngine, engine_for

__all__ = ["Dialect", "OpenAIEngine", "engine_for"]

_HOMES = {"Dialect": "dialect", "OpenAIEngine": "engine", "engine_for": "engine"}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{home}"), name)
