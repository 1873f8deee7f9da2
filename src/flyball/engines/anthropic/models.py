"""How the models differ in what they take: a table, by the longest prefix of a model's name.

What one takes is an error for another, so each is asked for what it takes:

- **thinking**: older ones think with a budget of tokens, newer ones as much as they find right (`adaptive`,
  which `effort` steers); the newest do so unless told not to, and some cannot be told;
- **tools that must be called**: not while a model thinks, and some never; they are then free to choose;
- **temperature**: up to 4.6.

A model of Anthropic's that is not in the table is taken for a newer one, and asked for nothing that any of
the newest refuses. A name without `claude` in it is another's model behind the same protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace


class Traits(Struct, frozen=True):
    """What a model takes.

    `most`: tokens of one answer, thoughts included. `budget`: it thinks with a budget. `adaptive`: it can be
    left to think as it likes. `thinks`: it does so where nothing is said. `off`: what switches that off, None
    where nothing does. `effort`: it takes an effort. `forced`: it can be made to call a tool while it does
    not think. `sampling`: it takes a temperature. `signed`: its thoughts go back with a signature only.
    """

    most: int
    budget: bool = False
    adaptive: bool = True
    thinks: bool = False
    off: Literal["disabled", "between_tools"] | None = "disabled"
    effort: bool = True
    forced: bool = True
    sampling: bool = False
    signed: bool = True


_OLD = Traits(4_096, adaptive=False, effort=False, sampling=True)
_BUDGET = replace(_OLD, most=64_000, budget=True)
_FOUR_SIX = Traits(64_000, budget=True, sampling=True)
_FOUR_SEVEN = Traits(128_000)
_FIVE = replace(_FOUR_SEVEN, thinks=True)
_ALWAYS = replace(_FIVE, off=None, forced=False)

COMPATIBLE = Traits(8_192, budget=True, adaptive=False, effort=False, sampling=True, signed=False)
"""For a model that is not Anthropic's."""

TABLE: Mapping[str, Traits] = {
    "claude-3": _OLD,
    "claude-3-5": replace(_OLD, most=8_192),
    "claude-3-7": _BUDGET,
    "claude-opus-4": replace(_BUDGET, most=32_000),
    "claude-sonnet-4": _BUDGET,
    "claude-haiku-4": _BUDGET,
    "claude-sonnet-4-5": _BUDGET,
    "claude-haiku-4-5": _BUDGET,
    "claude-opus-4-5": replace(_BUDGET, effort=True),
    "claude-sonnet-4-6": _FOUR_SIX,
    "claude-opus-4-6": replace(_FOUR_SIX, most=128_000),
    "claude-opus-4-7": _FOUR_SEVEN,
    "claude-opus-4-8": _FOUR_SEVEN,
    "claude-sonnet-5": _FIVE,
    "claude-opus-5": _FIVE,
    "claude-haiku-5-5": _FIVE,
    "claude-sonnet-5-5": replace(_ALWAYS, off="between_tools"),
    "claude-opus-5-5": _ALWAYS,
    "claude-fable-5": _ALWAYS,
    "claude-fable-5-1": _ALWAYS,
    "claude-fable-5-2": _ALWAYS,
    "claude-mythos-preview": _ALWAYS,
    "claude-mythos-5": _ALWAYS,
    "claude-mythos-5-1": _ALWAYS,
    "claude-mythos-5-2": _ALWAYS,
}


def traits_of(model: str) -> Traits:
    """What a model takes."""
    if not is_claude(model):
        return COMPATIBLE
    known = _known(model)
    return TABLE[known] if known is not None else _ALWAYS


def is_claude(model: str) -> bool:
    """Whether a model is Anthropic's."""
    return "claude" in model.lower()


def same_model(asked: str, answered: str | None) -> bool:
    """Whether an answer may be the asked model's own: a name with a date is that without; None is unknown."""
    if answered is None or asked == answered:
        return True
    if is_claude(asked) is not is_claude(answered):
        return False
    one, other = _known(asked), _known(answered)
    return one is None or other is None or one == other


def _known(model: str) -> str | None:
    # A proxy may put its own name before the model's.
    name = model[model.lower().find("claude") :]
    found = [prefix for prefix in TABLE if name.startswith(prefix)]
    return max(found, key=len) if found else None
