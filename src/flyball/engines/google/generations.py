"""What the generations of Gemini take: where a model's name decides how it is to be asked."""

from __future__ import annotations

import re

from msgspec import Struct

_NUMBERED = re.compile(r"gemini-(\d+)(?:\.(\d+))?(?![\d.])")
_NEWEST: tuple[int, int] = (99, 0)
_TUNED: tuple[int, int] = (2, 5)
"""What is taken of a model whose name says nothing: tuned ones are of this generation."""


class Generation(Struct, frozen=True):
    """What a model takes.

    `thinks`: a `thinkingConfig`. `levels`: in it, a level of thinking; else a budget. `least_budget`: the
    smallest one. `signed`: it refuses calls of the turn that have lost their thought signature.
    `media_results`: functions may respond with images. `tools_with_schema`: tools and a schema for the answer
    may stand in one request.
    """

    thinks: bool = True
    levels: bool = True
    least_budget: int = 0
    signed: bool = True
    media_results: bool = True
    tools_with_schema: bool = True


def generation_of(model: str) -> Generation:
    """What a model takes, by its name: `gemini-3.8-flash`, also at the end of a path.

    A Gemini without a number (`gemini-flash-latest`) is one of the newest.
    """
    found = _NUMBERED.search(model)
    if found is not None:
        number = (int(found[1]), int(found[2] or 0))
    else:
        number = _NEWEST if "gemini" in model else _TUNED
    new = number >= (3, 0)
    return Generation(
        thinks=number >= (2, 5) and "gemma" not in model,
        levels=new,
        least_budget=128 if "2.5-pro" in model else 0,
        signed=new,
        media_results=new,
        tools_with_schema=new,
    )
