"""An answer in pieces: stream events, and how they become a message again.

Pieces belong to parts, which are numbered in the order of the finished message. A text or thinking part may
begin with its first delta; a tool call begins with a `PartStart` that names it. `PartStart` carries what is
known so far and deltas add to it; a call that starts with `{}` (the default) has no arguments known yet.
`PartEnd` closes a part and `Finish` closes the stream: nothing may follow them. `Restart` takes back what
came of an answer that is not finished.

Rules kept here:
- however an answer is cut, the joined message is the same;
- feeding one event costs the same however long the stream is;
- everything else that listens to a stream (callbacks, text iterators) derives from these events.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Container
from typing import TypeAlias, assert_never, final

from msgspec import Struct
from msgspec.structs import replace

from flyball.core.errors import UnexpectedModelBehavior
from flyball.core.messages import JSON, FinishReason, Message, Part, Role, Text, Thinking, ToolCall
from flyball.core.usage import Usage
from flyball.inference.request import Result


class _StreamEvent(
    Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True, tag_field="stream", gc=False
):
    pass


@final
class PartStart(_StreamEvent, frozen=True, tag="part_start"):
    """A part begins, with what is known of it so far."""

    index: int
    part: Part


@final
class TextDelta(_StreamEvent, frozen=True, tag="text"):
    """More text of a text part."""

    index: int
    text: str


@final
class ThinkingDelta(_StreamEvent, frozen=True, tag="thinking"):
    """More text of a thinking part."""

    index: int
    text: str


@final
class ToolCallDelta(_StreamEvent, frozen=True, tag="tool_call"):
    """More of a tool call's arguments, as JSON text that may be cut anywhere."""

    index: int
    args_json: str


@final
class PartEnd(_StreamEvent, frozen=True, tag="part_end"):
    """A part is complete; `part` replaces what was joined, where the engine knows more (a signature)."""

    index: int
    part: Part | None = None


@final
class Finish(_StreamEvent, frozen=True, tag="finish"):
    """The answer is complete. `extra` is the message's: what a provider said that has no place of its own."""

    usage: Usage | None = None
    model: str | None = None
    finish_reason: FinishReason | None = None
    request_id: str | None = None
    extra: dict[str, JSON] | None = None


@final
class Restart(_StreamEvent, frozen=True, tag="restart"):
    """The answer begins again: what came of it so far, since the last `Finish`, is void.

    It comes where a model call was made again after pieces of it had been handed on (its worker crashed,
    its connection broke), and the new answer is not the old one going on. A call that gives the same again
    needs none.
    """


StreamEvent: TypeAlias = PartStart | TextDelta | ThinkingDelta | ToolCallDelta | PartEnd | Finish | Restart


class StreamHandler(Struct, frozen=True):
    """pagantic's three callbacks, fed with a stream's events, and one more. Each may be left out.

    `on_restart` is called where the answer begins again: what the others were given of it is void.
    """

    on_content: Callable[[str], None] | None = None
    on_reasoning: Callable[[str], None] | None = None
    on_tool_call: Callable[[str, str], None] | None = None
    on_restart: Callable[[], None] | None = None


class Assembler:
    """Joins stream events into the message they make. Feeding costs the same however long the stream is."""

    __slots__ = ("_args", "_finish", "_parts", "_text", "_thinking")

    def __init__(self) -> None:
        self._parts: dict[int, Part] = {}
        # The pieces of the parts that are still open, by kind. A piece that finds no list here is either the
        # first of its part or wrong: the common case needs no check.
        self._text: dict[int, list[str]] = {}
        self._thinking: dict[int, list[str]] = {}
        self._args: dict[int, list[str]] = {}
        self._finish: Finish | None = None

    def feed(self, event: StreamEvent) -> None:
        """Take the next event.

        Raises:
            UnexpectedModelBehavior: a delta for a part of another kind, for one that is complete, or for a
                tool call without its start; a part that starts twice; anything after the `Finish`.
        """
        try:
            if type(event) is TextDelta:
                self._text[event.index].append(event.text)
                return
            if type(event) is ToolCallDelta:
                self._args[event.index].append(event.args_json)
                return
            if type(event) is ThinkingDelta:
                self._thinking[event.index].append(event.text)
                return
        except KeyError:
            # The first piece of its part, or a wrong one: told apart outside this handler, so that what is
            # raised there does not look as if it came from here.
            pass
        self._feed_rarer(event)

    @property
    def begun(self) -> Container[int]:
        """The numbers of the parts that have begun."""
        return self._parts

    def part(self, index: int) -> Part | None:
        """One part as far as it has come, or None where it has not begun."""
        return self._joined(index) if index in self._parts else None

    def message(self) -> Message:
        """The message as far as it has come; whole once the `Finish` was fed. Feeding may go on."""
        parts = tuple([self._joined(index) for index in sorted(self._parts)])
        end = self._finish
        if end is None:
            return Message(Role.ASSISTANT, parts)
        return Message(
            Role.ASSISTANT,
            parts,
            usage=end.usage,
            model=end.model,
            finish_reason=end.finish_reason,
            extra=end.extra,
        )

    def result(self) -> Result:
        """The finished answer.

        Raises:
            UnexpectedModelBehavior: the stream ended without a `Finish`; `body` holds the text so far.
        """
        message = self.message()
        if self._finish is None:
            raise UnexpectedModelBehavior(
                f"the stream ended after {len(message.parts)} parts without a Finish: the answer is cut off",
                body=message.text,
            )
        return Result(message, self._finish.request_id)

    def _feed_rarer(self, event: StreamEvent) -> None:
        if type(event) is TextDelta:
            self._begin(event.index, Text).append(event.text)
        elif type(event) is ToolCallDelta:
            self._begin(event.index, ToolCall).append(event.args_json)
        elif type(event) is ThinkingDelta:
            self._begin(event.index, Thinking).append(event.text)
        elif type(event) is PartStart:
            self._start(event.index, event.part)
        elif type(event) is PartEnd:
            self._end(event.index, event.part)
        elif type(event) is Finish:
            self._refuse_if_finished("a second Finish")
            for index in self._parts:
                self._close(index)
            self._finish = event
        elif type(event) is Restart:
            self._refuse_if_finished("a Restart")
            for pieces in (self._parts, self._text, self._thinking, self._args):
                pieces.clear()
        else:
            assert_never(event)

    def _begin(self, index: int, kind: type[Text | Thinking | ToolCall]) -> list[str]:
        """Open a part at its first delta."""
        what = f"a {kind.__name__} delta for part {index}"
        self._refuse_if_finished(what)
        part = self._parts.get(index)
        if part is not None:
            state = "complete" if type(part) is kind else f"of kind {type(part).__name__}"
            raise UnexpectedModelBehavior(f"{what} came, but that part is {state}")
        if issubclass(kind, ToolCall):
            raise UnexpectedModelBehavior(f"{what} came before the PartStart that names the tool")
        self._parts[index] = kind("")
        return (self._text if kind is Text else self._thinking).setdefault(index, [])

    def _start(self, index: int, part: Part) -> None:
        self._refuse_if_finished(f"the start of part {index}")
        if index in self._parts:
            raise UnexpectedModelBehavior(
                f"part {index} started twice: as {type(self._parts[index]).__name__}, "
                f"then as {type(part).__name__}"
            )
        self._parts[index] = part
        if type(part) is Text:
            self._text[index] = [part.text]
        elif type(part) is ToolCall:
            self._args[index] = _known_args(part)
        elif type(part) is Thinking:
            self._thinking[index] = [part.text]

    def _end(self, index: int, part: Part | None) -> None:
        self._refuse_if_finished(f"the end of part {index}")
        begun = self._parts.get(index)
        if part is None:
            if begun is None:
                raise UnexpectedModelBehavior(f"part {index} ended and never began")
        elif begun is not None and type(begun) is not type(part):
            raise UnexpectedModelBehavior(
                f"part {index} began as {type(begun).__name__} and ended as {type(part).__name__}"
            )
        self._close(index, part)

    def _close(self, index: int, part: Part | None = None) -> None:
        self._parts[index] = self._joined(index) if part is None else part
        self._text.pop(index, None)
        self._thinking.pop(index, None)
        self._args.pop(index, None)

    def _joined(self, index: int) -> Part:
        part = self._parts[index]
        if type(part) is Text and index in self._text:
            return Text("".join(self._text[index]), part.extra)
        if type(part) is ToolCall and index in self._args:
            # Pieces that are all empty tell nothing: a call that began with `{}` has no arguments then.
            args = "".join(self._args[index])
            return replace(part, args_json=args) if args or part.args_json != "{}" else part
        if type(part) is Thinking and index in self._thinking:
            return replace(part, text="".join(self._thinking[index]))
        return part

    def _refuse_if_finished(self, what: str) -> None:
        if self._finish is not None:
            raise UnexpectedModelBehavior(f"{what} came after the Finish that closed the stream")


def _known_args(call: ToolCall) -> list[str]:
    return [] if call.args_json == "{}" else [call.args_json]


async def collect(events: AsyncIterable[StreamEvent]) -> Result:
    """The answer that a stream's events make. The stream is closed in any case, also on cancellation.

    Raises:
        UnexpectedModelBehavior: the events make no answer (see `Assembler`), or end without a `Finish`.
    """
    assembler = Assembler()
    feed = assembler.feed
    try:
        async for event in events:
            feed(event)
    finally:
        await close_stream(events)
    return assembler.result()


async def close_stream(events: AsyncIterable[object]) -> None:
    """Close a stream if it can be closed; the call behind it ends. Closing twice does no harm."""
    aclose = getattr(events, "aclose", None)
    if aclose is not None:
        await aclose()
