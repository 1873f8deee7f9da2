"""Gemini, from the Gemini API (`google:…`) and on Vertex AI (`vertex:…`), by way of `generateContent`.

    engine = GoogleEngine("gemini-3.8-flash")                      # GOOGLE_API_KEY or GEMINI_API_KEY
    engine = GoogleEngine("gemini-4-argon", vertex=True)           # GOOGLE_CLOUD_PROJECT, default credentials

`encode` makes a request's body (`contents` its history, `schemas` what fits Gemini's subset of JSON Schema,
`thinking` how long it reasons), `decode` reads answers, `codec` puts both together and `engine` puts them on
the network. `generations` has what the generations of Gemini take, `places` where they are.

Rules kept here:
- what Gemini wants back unchanged (thought signatures, ids of calls, parts that we have no word for) goes
  back in the very part that it came in (`marks`); what another vendor's model left there does not;
- user and model take turns, and a turn with calls is followed by one with as many results, in their order;
- however an answer is cut into chunks, it is the same answer: a whole body is read as a stream of one chunk;
- a schema that is sent is never narrower than the user's own: what Gemini has no word for is told in the
  description, and checked by flyball.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flyball.engines.google.engine import GoogleEngine, engine_for

__all__ = [
    "GoogleEngine",
    "engine_for",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.engine"), name)
