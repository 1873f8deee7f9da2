"""Outputs as users write them: a type, several of them, or one wrapped in how it is to be asked for.

output=City                                             what suits the type and the model
output=City | Country, output=[City, Country]           one of them: in tool mode, a tool each
output=[City, str]                                      a city, or plain text
output=ToolOutput(City, name="city")                    by a tool of this name
output=[ToolOutput(City, name="city"), Country, str]    wrapped or not, beside each other
output=NativeOutput([City, Country], strict=True)       by the provider's own structured output
output=TextOutput(parse)                                what a function makes of the text
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, TypeAlias

from msgspec import Struct
from typing_extensions import TypeVar

from flyball.core.spec import OutputMode

T_co = TypeVar("T_co", covariant=True)
OutputT = TypeVar("OutputT")


class ToolOutput(Struct, Generic[T_co], frozen=True):
    """An output that is carried by a tool: how that is called and described, and whether it is strict.

    A union that is wrapped so has one tool for all its members.
    """

    output: type[T_co]
    name: str | None = None
    description: str | None = None
    strict: bool | None = None


class _Whole(Struct, Generic[T_co], frozen=True):
    """Outputs that one schema describes. It stands alone: several types go into it."""

    output: type[T_co] | Sequence[type[T_co]]
    name: str | None = None
    description: str | None = None
    strict: bool | None = None


class NativeOutput(_Whole[T_co], frozen=True):
    """An output that the provider's own structured output holds to its schema."""


class PromptedOutput(_Whole[T_co], frozen=True):
    """An output whose schema stands in the instructions; the text is parsed."""


class GrammarOutput(_Whole[T_co], frozen=True):
    """An output to whose schema the decoder is held by a grammar."""


class TextOutput(Struct, Generic[T_co], frozen=True):
    """What a function makes of the answer's text: `(text)` or `(ctx, text)`, which may be async.

    It may raise ModelRetry. What it gives is recorded, and must be encodable; the type by which it is read
    again is the one that the function says it returns.
    """

    function: Callable[[str], T_co | Awaitable[T_co]] | Callable[[Any, str], T_co | Awaitable[T_co]]


Marked: TypeAlias = (
    ToolOutput[OutputT]
    | NativeOutput[OutputT]
    | PromptedOutput[OutputT]
    | GrammarOutput[OutputT]
    | TextOutput[OutputT]
)
OutputType: TypeAlias = type[OutputT] | Marked[OutputT] | Sequence[type[OutputT] | Marked[OutputT]]
"""What may be said as `output=`, for an agent that gives an `OutputT`."""

MODES: dict[type[Any], OutputMode] = {
    NativeOutput: OutputMode.NATIVE,
    PromptedOutput: OutputMode.PROMPTED,
    GrammarOutput: OutputMode.GRAMMAR,
}
"""The mode that a wrapper of whole outputs asks for."""
