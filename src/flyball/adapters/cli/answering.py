"""An answer as it comes: its text on stdout, what is about it on stderr, and the last line with its costs.

It comes as the pieces of a run (`shown`), or as what a person on a channel is told of it (`tell`).

The text of a turn that ends in tool calls is no answer. On a terminal it is shown all the same, because one
wants to see what happens; elsewhere only the answer is written.
"""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncGenerator
from typing import Any

from rich.status import Status

from flyball.adapters.cli.exits import OK, exit_code
from flyball.adapters.cli.failing import report
from flyball.adapters.cli.naming import short
from flyball.adapters.cli.screen import err, one_line, plain, write_json
from flyball.core.forms.semstreams import BlockType, ResponseType, UserResponse
from flyball.core.messages import FinishReason, Text, ToolCall
from flyball.inference.stream import Finish, PartEnd, PartStart, StreamEvent, TextDelta, ToolCallDelta
from flyball.orchestrate.contracts import SystemResponse
from flyball.orchestrate.output import OUTPUT_TOOL_NAME

_RAISE = "flyball ask --max-tokens sets a higher one"


class Answer:
    """Shows a run while it is read.

    `typed`: whether the answer is JSON; then no text is written as it comes, because what the model says on
    the way may not be it. `quiet` leaves the last line out.
    """

    def __init__(self, *, typed: bool, tools: bool, quiet: bool = False) -> None:
        self._terminal = sys.stdout.isatty()
        self._typed = typed
        self._streams = not typed and (self._terminal or not tools)
        self._quiet = quiet
        self._began = time.monotonic()
        self._written = ""
        self._piece_of = ""
        self._calls: dict[int, tuple[str, list[str]]] = {}
        self._status: Status | None = None

    async def shown(self, pieces: AsyncGenerator[StreamEvent | SystemResponse]) -> SystemResponse:
        """Read a run to its end, show it, and give its response."""
        response = SystemResponse()
        try:
            self.begin()
            async for piece in pieces:
                if isinstance(piece, SystemResponse):
                    response = piece
                else:
                    self._show(piece)
        finally:
            await pieces.aclose()  # first of all: what follows writes, and nobody may be there to read it
            self.pause()
        return response

    def begin(self) -> None:
        """Show that something is waited for."""
        self._wait("thinking")

    def pause(self) -> None:
        """Stop showing that something is waited for, and end the line: something else is written next."""
        self._rest()
        self._end_line()

    def tell(self, response: UserResponse) -> None:
        """Show something that is told on the way. The end is shown by `close`, from the run's response."""
        if response.type == ResponseType.STREAM:
            answer = response.response_id.partition("/piece/")[0]
            if answer != self._piece_of:
                self._end_line()  # another answer begins: something was said to the loop meanwhile
            self._piece_of = answer
            self._write(response.content)
        elif any(block.type == BlockType.PROGRESS for block in response.blocks):
            if not self._written:  # it was said before anybody listened
                self._write("".join([one.content for one in response.blocks if one.type == BlockType.TEXT]))
            self._asks_for([response.content])
        elif response.type == ResponseType.STATUS and err().is_terminal:
            self.pause()
            err().print(one_line(response.content), style="dim")
            self._wait("working")

    def close(self, response: SystemResponse) -> int:
        """Write what has not been written yet, and the last line; gives the exit code."""
        cut = response.finish_reason is FinishReason.LENGTH
        if response.error is not None:
            hint = _RAISE if cut else ""
            return report(response.error, as_json=False, run_id=short(response.loop_id), hint=hint)
        if self._typed:
            write_json(response.structured_output)
        elif not self._written:
            sys.stdout.write(self._clean(response.content).rstrip("\n") + "\n")
        sys.stdout.flush()
        if cut:
            err().print(f"the answer was cut off at its limit of tokens: {_RAISE}", style="yellow")
        if not self._quiet:
            err().print(_costs(response, time.monotonic() - self._began), style="dim")
        return OK

    def _show(self, piece: StreamEvent) -> None:
        if isinstance(piece, TextDelta):
            self._write(piece.text)
        elif isinstance(piece, PartStart) and isinstance(piece.part, Text):
            self._write(piece.part.text)
        elif isinstance(piece, PartStart) and isinstance(piece.part, ToolCall):
            known = [] if piece.part.args_json == "{}" else [piece.part.args_json]
            self._calls[piece.index] = (piece.part.name, known)
        elif isinstance(piece, ToolCallDelta) and piece.index in self._calls:
            self._calls[piece.index][1].append(piece.args_json)
        elif isinstance(piece, PartEnd) and isinstance(piece.part, ToolCall):
            self._calls[piece.index] = (piece.part.name, [piece.part.args_json])
        elif isinstance(piece, Finish):
            self._finish()

    def _finish(self) -> None:
        """The model has ended a turn: if it asked for tools, say which."""
        calls = [call for call in self._calls.values() if not call[0].startswith(OUTPUT_TOOL_NAME)]
        self._calls = {}
        if calls:
            self._asks_for([f"{name} {''.join(arguments) or '{}'}" for name, arguments in calls])

    def _asks_for(self, calls: list[str]) -> None:
        """The model wants to have tools run: what it said before that was no answer."""
        self.pause()
        self._written = ""
        if err().is_terminal:
            for call in calls:
                err().print(f"→ {one_line(call, 200)}", style="dim cyan")
        self._wait("working")

    def _write(self, text: str) -> None:
        if self._streams and text:
            self._rest()
            sys.stdout.write(self._clean(text))
            sys.stdout.flush()
            self._written += text

    def _end_line(self) -> None:
        if self._written and not self._written.endswith("\n"):
            sys.stdout.write("\n")
            sys.stdout.flush()
            self._written += "\n"

    def _clean(self, text: str) -> str:
        return plain(text) if self._terminal else text

    def _wait(self, what: str) -> None:
        if err().is_terminal:
            self._status = err().status(f"[dim]{what}…", spinner="dots")
            self._status.start()

    def _rest(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None


def print_response(response: SystemResponse) -> int:
    """Print a response as a JSON document; gives the exit code."""
    document: dict[str, Any] = {"ok": response.ok, **response.to_json()}
    write_json(document)
    return OK if response.error is None else exit_code(response.error)


def _costs(response: SystemResponse, seconds: float) -> str:
    usage = response.usage
    told = [f"{usage.input_tokens} → {usage.output_tokens} tokens"] if usage.total_tokens else []
    if usage.tokens_per_second:
        told.append(f"{usage.tokens_per_second:.0f} tokens/s")
    if usage.tool_calls:
        told.append(f"{usage.tool_calls} tool call{'s' if usage.tool_calls > 1 else ''}")
    return " · ".join([*told, f"{seconds:.1f} s", response.model, f"run {short(response.loop_id)}"])
