"""Cutting what a tool gave back to what a model can read: its beginning and its end, with a mark between.

Cut before it is recorded, so that a journal never holds what no model was shown. What a tool ends the run
with is the answer, and stays whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from msgspec.structs import replace

from flyball.core.context import RunContext
from flyball.core.encodable import as_text, to_json
from flyball.core.errors import UserError
from flyball.core.feature import Feature
from flyball.core.messages import Image, ToolResult
from flyball.core.truncation import truncate_text
from flyball.tool.running import Run

truncate_tool_output = truncate_text
"""gollem's name for it."""


class ToolOutputTruncation(Feature):
    """Cuts the results of all tools of an agent that are longer than a budget: see `truncate_tool_output`.

    A result that is no text is measured, and cut, as its JSON. So is one that would be too large to be taken
    at all: it is cut, and not refused. Images and errors are left as they are.
    """

    name = "tool_output_truncation"

    def __init__(self, max_tokens: int = 16_000) -> None:
        if type(max_tokens) is not int or max_tokens < 1:
            raise UserError(f"ToolOutputTruncation takes a number of tokens, at least 1, not {max_tokens!r}")
        self.max_tokens = max_tokens

    def __repr__(self) -> str:
        return f"ToolOutputTruncation({self.max_tokens})"

    def around(self, run: Run) -> Run:
        """A tool's `run` whose result is cut."""

        async def run_truncated(args_json: str, context: RunContext[Any] | None) -> object:
            return truncated(await run(args_json, context), self.max_tokens)

        return run_truncated


def truncated(value: object, max_tokens: int) -> object:
    """What a tool gave, cut to a budget where it is longer: what `ToolOutputTruncation` makes of it.

    Raises:
        NotEncodable: it has no JSON form.
    """
    if isinstance(value, ToolResult):
        if value.stop_loop or value.is_error:
            return value
        return replace(value, content=_shortened(value.content, max_tokens))
    if isinstance(value, Image):
        return value
    items = cast("Sequence[object]", value)
    if isinstance(value, list | tuple):
        images = [item for item in items if isinstance(item, Image)]
        if images:
            others = [item for item in items if not isinstance(item, Image)]
            said: object = others[0] if len(others) == 1 else others
            return [_shortened(said, max_tokens), *images] if others else items
    return _shortened(items, max_tokens)


def _shortened(value: object, max_tokens: int) -> object:
    """The value as JSON, or the beginning and the end of its text.

    Raises:
        NotEncodable: it has no JSON form.
    """
    plain = to_json(value)
    if plain is None or isinstance(plain, bool | int | float):
        return plain
    whole = as_text(plain)
    cut = truncate_tool_output(whole, max_tokens)
    return plain if cut is whole else cut
