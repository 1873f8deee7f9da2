"""Offer: which tools a request lets the model call, and whether it has to.

What a request says in three fields (its tools, its tool choice, whether text counts as an answer) comes down
to this, the same for every engine.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from flyball.core.errors import ToolNotFound
from flyball.core.tools import ToolDefinition, ToolKind
from flyball.inference.request import Request


class Offer(Struct, frozen=True):
    """The tools that may be called. `must`: an answer without a call is none.

    `only` names the one tool that must be called, where there is one: it is then alone in `tools`.
    """

    tools: tuple[ToolDefinition, ...] = ()
    must: bool = False
    only: str | None = None


NOTHING = Offer()


def offer_of(request: Request) -> Offer:
    """What a request offers.

    A choice of `none` leaves the output's own tools: without them there could be no answer.

    Raises:
        ToolNotFound: the one tool that must be called is not there.
    """
    tools, choice = request.tools, request.tool_choice
    if not tools and choice is None:
        return NOTHING
    if choice is None:
        return Offer(tools, not request.allows_text)
    if choice.mode == "none":
        left = tuple([tool for tool in tools if tool.kind is ToolKind.OUTPUT])
        return Offer(left, bool(left) and not request.allows_text)
    if (name := choice.forced) is not None:
        found = tuple([tool for tool in tools if tool.name == name])
        if not found:
            raise ToolNotFound(f"the tool {name!r} must be called, and is not there", tool=name)
        return Offer(found, must=True, only=name)
    return Offer(tools, bool(tools) and (choice.mode == "required" or not request.allows_text))


def mode_of(offer: Offer) -> Literal["auto", "required", "function", "none"]:
    """The word that most vendors have for it."""
    if offer.only is not None:
        return "function"
    if not offer.tools:
        return "none"
    return "required" if offer.must else "auto"
