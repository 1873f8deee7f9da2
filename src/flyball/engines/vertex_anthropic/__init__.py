"""Claude on Google's cloud (Vertex AI).

    engine = VertexAnthropicEngine("claude-opus-5-5", project="my-project", region="global")
    engine = engine_for(parse_model("vertex-anthropic:claude-opus-5-5"))    # both from the environment

It speaks what `flyball.engines.anthropic` speaks, with the same rules. `codec` has the differences: the model
stands in the address, the version in the body. Who asks is proved by Google's credentials
(`flyball.engines.wire.google_auth`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flyball.engines.vertex_anthropic.codec import VertexCodec
    from flyball.engines.vertex_anthropic.engine import VertexAnthropicEngine, engine_for

__all__ = [
    "VertexAnthropicEngine",
    "VertexCodec",
    "engine_for",
]

_HOMES = {
    "VertexAnthropicEngine": "engine",
    "VertexCodec": "codec",
    "engine_for": "engine",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{home}"), name)
