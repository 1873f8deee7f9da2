"""Cutting what a tool gave back to what a model can read: its beginning and its end, with a mark between.

Cut before it is recorded, so that a journal never holds what no model was shown. What a tool ends the run
with is the answer, and stays whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from msgspec.structs import replace

from flyball.core.context import RunContext
from flyball.core.encodable import as_text, clean_text, to_json
from flyball.core.errors import UserError
from flyball.core.feature import Feature
from flyball.core.messages import Image, ToolResult
from flyball.tool.running import Run

BYTES_PER_TOKEN = 4
"""How many bytes of text are counted as a token."""
_HEAD = 60
"""How much of the budget the beginning has, in percent; the end has the rest."""


def truncate_tool_output(text: str, max_tokens: int) -> str:
    """The text if it is within the budget, else its beginning and its end, with how much is left out.

    A token is counted as four bytes. The beginning has at most 60 % of the budget and the end 40 %; the mark
    stands beside them. A part ends at a line's end, where that leaves at least half of it. No character is
    cut in two.
    """
    budget = max_tokens * BYTES_PER_TOKEN
    if len(text) * BYTES_PER_TOKEN <= budget:
        return text  # no character takes more than four bytes: there is nothing to measure
    data = clean_text(text).encode("utf-8")
    if len(data) <= budget:
        return text
    first = budget * _HEAD // 100
    head = _beginning(data[:first])
    tail = _end(data[len(data) - (budget - first) :])
    left_out = -(-(len(data) - len(head) - len(tail)) // BYTES_PER_TOKEN)
    mark = f"... [truncated {left_out} tokens] ..."
    return "\n".join(
        [part for part in (_text(head).removesuffix("\n"), mark, _text(tail).removeprefix("\n")) if part]
    )


def _beginning(data: bytes) -> bytes:
    end = data.rfind(b"\n") + 1
    return data[:end] if end * 2 >= len(data) > 0 else _text(data).encode("utf-8")


def _end(data: bytes) -> bytes:
    start = data.find(b"\n") + 1
    return data[start:] if 0 < start * 2 <= len(data) else _text(data).encode("utf-8")


def _text(data: bytes) -> str:
    # What the cut has left of a character is dropped: all else is UTF-8.
    return data.decode("utf-8", "ignore")


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
            return self._cut(await run(args_json, context))

        return run_truncated

    def _cut(self, value: object) -> object:
        if isinstance(value, ToolResult):
            if value.stop_loop or value.is_error:
                return value
            return replace(value, content=self._shortened(value.content))
        if isinstance(value, Image):
            return value
        items = cast("Sequence[object]", value)
        if isinstance(value, list | tuple):
            images = [item for item in items if isinstance(item, Image)]
            if images:
                others = [item for item in items if not isinstance(item, Image)]
                said: object = others[0] if len(others) == 1 else others
                return [self._shortened(said), *images] if others else items
        return self._shortened(items)

    def _shortened(self, value: object) -> object:
        """The value as JSON, or the beginning and the end of its text.

        Raises:
            NotEncodable: it has no JSON form.
        """
        plain = to_json(value)
        if plain is None or isinstance(plain, bool | int | float):
            return plain
        whole = as_text(plain)
        cut = truncate_tool_output(whole, self.max_tokens)
        return plain if cut is whole else cut
