"""Claude, by Anthropic's Messages API.

    engine = AnthropicEngine("claude-opus-5-5")                       # ANTHROPIC_API_KEY
    engine = AnthropicEngine("claude-sonnet-5-5", cache=True)         # with breakpoints for the prompt cache
    engine = engine_for(parse_model("anthropic:claude-opus-5-5"))

`encode` makes the body of a request: `turns` the messages in it, `thinking` how the model is to think,
`schema` what it can be held to, `caching` what is kept for the next request. `decode` reads whole answers,
and `streaming` those that come in pieces. `models` is the table of how the models differ: what one of them
takes is an error for another. `codec` puts both ways together, and `engine` moves the bytes. Claude on
Google's cloud is `flyball.engines.vertex_anthropic`.

Rules kept here:
- a valid history is sent as one that the API takes: turns alternate, each begins with the results of the
  calls before it, no text is blank, no id is strange or used twice;
- what the model thought goes back unchanged (its signature, its encrypted blocks), and only to the model that
  thought it; so do blocks that are not known here;
- a model is never asked for what it is known to refuse: see `models` for what is asked in its place;
- a stream that was not ended by the server is an error, never a short answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flyball.engines.anthropic.codec import MessagesCodec
    from flyball.engines.anthropic.engine import AnthropicEngine, engine_for

__all__ = [
    "AnthropicEngine",
    "MessagesCodec",
    "engine_for",
]

_HOMES = {
    "AnthropicEngine": "engine",
    "MessagesCodec": "codec",
    "engine_for": "engine",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{home}"), name)
