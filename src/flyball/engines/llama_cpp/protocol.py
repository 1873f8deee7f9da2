"""How a request becomes messages and a grammar, and how the text that comes back becomes an answer.

The engine leaves both to a `ToolProtocol`: what tools look like to a model, how it spells a call, and which
grammar holds it to that, are no business of the process that runs it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from flyball.core.errors import UserError
from flyball.core.messages import FinishReason, Message, Retry, Role, Text, Thinking, ToolCall, ToolResult
from flyball.inference.request import Request
from flyball.inference.stream import PartEnd, PartStart, StreamEvent, TextDelta


class Rendered(Struct, frozen=True):
    """What a model is given: messages of `role` and `content` for its chat template, and a grammar if any.

    An assistant's message at the end is one that the model goes on with. `body` is laid over the call as
    llama.cpp takes it (`stop`, `temperature`, …).
    """

    messages: tuple[dict[str, str], ...]
    grammar: str | None = None
    body: dict[str, Any] | None = None


class AnswerParser(Protocol):
    """Turns one answer's text into events as it comes; one parser an answer."""

    def feed(self, text: str) -> Iterable[StreamEvent]:
        """The events that a piece of text makes; a piece may be cut anywhere."""
        ...

    def close(self, reason: FinishReason) -> Iterable[StreamEvent]:
        """The events that are left when the text has ended. No `Finish`: the engine adds it."""
        ...


@runtime_checkable
class ToolProtocol(Protocol):
    """The seam for whoever teaches local models to call tools."""

    @property
    def tools(self) -> bool:
        """Whether requests may carry tools."""
        ...

    def render(self, request: Request) -> Rendered:
        """What the model is given for a request.

        Raises:
            FlyballError: of the taxonomy; the request cannot be put so.
        """
        ...

    def parser(self, request: Request, first: int) -> AnswerParser:
        """Reads the answer to that request; the index of its first part is `first`."""
        ...


class PlainProtocol:
    """Text only: no tools. A grammar is passed on, an output schema becomes one."""

    @property
    def tools(self) -> bool:
        """No."""
        return False

    def render(self, request: Request) -> Rendered:
        """The messages as text.

        Raises:
            UserError: there are tools, or parts that are no text.
            GrammarUnsupported: the schema says what no grammar can.
        """
        if request.tools:
            raise UserError(
                f"this engine has no protocol for tools, and the request has {len(request.tools)}: give it "
                "one with `protocol=`",
                tools=[tool.name for tool in request.tools],
            )
        return Rendered(text_messages(request.messages), grammar_of(request))

    def parser(self, request: Request, first: int) -> AnswerParser:
        """All of it is one text."""
        del request
        return TextParser(first)


class TextParser:
    """Gives the text on as it comes, as one part."""

    __slots__ = ("_begun", "_index")

    def __init__(self, index: int) -> None:
        self._index = index
        self._begun = False

    def feed(self, text: str) -> Iterable[StreamEvent]:
        """The piece."""
        self._begun = True
        return (TextDelta(self._index, text),)

    def close(self, reason: FinishReason) -> Iterable[StreamEvent]:
        """The end; an empty text where nothing came, because an answer has at least one part."""
        del reason
        if self._begun:
            return (PartEnd(self._index),)
        return (PartStart(self._index, Text("")), PartEnd(self._index))


def grammar_of(request: Request) -> str | None:
    """The grammar that the answer's text must follow: the request's own, or the one of its schema."""
    if request.grammar:
        return request.grammar
    if request.output is None:
        return None
    from flyball.constraint.grammar import schema_grammar

    return schema_grammar(request.output.schema)


def text_messages(messages: Iterable[Message]) -> tuple[dict[str, str], ...]:
    """The messages as chat templates take them: `role` and `content`, nobody twice in a row.

    System messages are joined at the beginning, since many templates take one, and there only. Tool calls are
    written as JSON, their results as the user's words.

    Raises:
        UserError: there is no message, or a part that is no text.
    """
    rules: list[str] = []
    turns: list[tuple[str, list[str]]] = []
    for message in messages:
        texts = [text for part in message.parts if (text := part_text(part))]
        if message.role is Role.SYSTEM:
            rules += texts
            continue
        role = "assistant" if message.role is Role.ASSISTANT else "user"
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(texts)
        else:
            turns.append((role, texts))
    if not turns and not rules:
        raise UserError("the request has no messages")
    first = [("system", rules)] if rules else []
    return tuple([{"role": role, "content": "\n\n".join(texts)} for role, texts in [*first, *turns]])


def part_text(part: Any) -> str:
    """One part as text.

    Raises:
        UserError: it has none: an image, sound, a document.
    """
    if isinstance(part, Text | Retry):
        return part.text
    if isinstance(part, ToolCall):
        return f'{{"tool": "{part.name}", "arguments": {part.args_json or "{}"}}}'
    if isinstance(part, ToolResult):
        return f"Result of {part.name}: {part.text}"
    if isinstance(part, Thinking):
        return ""
    raise UserError(f"a local model reads text only, and a message has a part of kind {type(part).__name__}")
