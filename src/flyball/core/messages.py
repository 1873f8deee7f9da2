"""Messages and their parts: the vocabulary that every layer speaks.

A `Message` has one role and ordered parts; parts are a closed union. The same frozen structs are the
in-memory form, the journal's form and the wire form. Nothing here is ever changed after it was made.

Rules kept here:
- what a role may carry is checked by `check()`, and the constructors below can only make valid messages;
- whatever a foreign form carried that has no place of its own stays in `extra`, at the level where it stood.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Literal, TypeAlias, cast

from msgspec import DecodeError, Struct
from msgspec.json import decode

from flyball.core.article import a
from flyball.core.encodable import as_text
from flyball.core.errors import IncompleteToolCall, InvalidMessage
from flyball.core.usage import Usage

JSON: TypeAlias = Any
"""A value that JSON can carry; `Any` because that is where JSON enters."""


class Role(StrEnum):
    """Who speaks, after OpenAI's convention."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class FinishReason(StrEnum):
    """Why the model stopped."""

    STOP = "stop"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    TOOL_CALL = "tool_call"
    ERROR = "error"

    @property
    def status(self) -> Literal["complete", "tool_call", "error"]:
        """SemStreams' word for it: a response is complete, a tool call, or an error."""
        if self is FinishReason.TOOL_CALL:
            return "tool_call"
        return "error" if self is FinishReason.ERROR else "complete"

    @property
    def event_value(self) -> Literal["stop", "tool", "error"]:
        """The word that pagantic has for it, in its inference events."""
        if self is FinishReason.TOOL_CALL:
            return "tool"
        return "error" if self is FinishReason.ERROR else "stop"

    @property
    def cut_short(self) -> bool:
        """Whether the model would have said more: the length limit or a content filter stopped it."""
        return self is FinishReason.LENGTH or self is FinishReason.CONTENT_FILTER


class _Part(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True, tag_field="kind", gc=False):
    """What all parts share: unknown keys of a foreign form, kept."""


class Text(_Part, frozen=True, tag="text"):
    """Plain text, of whatever role the message has."""

    text: str
    extra: dict[str, JSON] | None = None


class Thinking(_Part, frozen=True, tag="thinking"):
    """A model's reasoning; `signature` must go back to the provider unchanged."""

    text: str
    signature: str | None = None
    provider_data: dict[str, JSON] | None = None
    extra: dict[str, JSON] | None = None


class ToolCall(_Part, frozen=True, tag="tool_call"):
    """The model asks for a tool.

    `args_json` is the text exactly as the model wrote it; `metadata` is the task's domain context;
    `provider_data` is opaque and must go back to the provider unchanged.
    """

    id: str
    name: str
    args_json: str = "{}"
    metadata: dict[str, JSON] | None = None
    provider_data: dict[str, JSON] | None = None
    loop_id: str | None = None
    trace_id: str | None = None
    extra: dict[str, JSON] | None = None

    @property
    def arguments(self) -> dict[str, JSON]:
        """The parsed arguments.

        Raises:
            IncompleteToolCall: the text is no JSON object (often: the token limit cut it).
        """
        if not self.args_json.strip():
            return {}
        try:
            parsed = decode(self.args_json)
        except (DecodeError, UnicodeError, RecursionError) as error:
            raise IncompleteToolCall(
                f"the arguments of {self.name!r} are no JSON ({error}): {self.args_json[:200]!r}",
                tool=self.name,
                body=self.args_json,
            ) from error
        if not isinstance(parsed, dict):
            raise IncompleteToolCall(
                f"the arguments of {self.name!r} are a JSON {type(parsed).__name__}, not an object",
                tool=self.name,
                body=self.args_json,
            )
        return cast("dict[str, JSON]", parsed)


class ResultKind(StrEnum):
    """What became of a tool call."""

    RETURN = "return"
    RETRY = "retry"
    """The model should call again, with what the content says put right."""
    DENIED = "denied"
    """Not allowed: by a filter, an approval, a person."""
    SKIPPED = "skipped"
    """Not run, because the run ended or an answer was already there."""
    INTERRUPTED = "interrupted"
    """Started before a crash, and not allowed to start twice: nobody knows whether it had its effect."""
    DEFERRED = "deferred"
    """To be resolved outside, later."""


class ToolResult(_Part, frozen=True, tag="tool_return"):
    """The answer to one `ToolCall`, and the part that carries it back to the model.

    `content` is text or JSON. A failed call has `error`, which is what the model then reads.
    """

    call_id: str
    name: str
    content: JSON = None
    error: str | None = None
    status: ResultKind = ResultKind.RETURN
    images: tuple[Image, ...] = ()
    metadata: dict[str, JSON] | None = None
    stop_loop: bool = False
    loop_id: str | None = None
    trace_id: str | None = None
    extra: dict[str, JSON] | None = None

    @property
    def is_error(self) -> bool:
        """Whether the call failed."""
        return self.error is not None

    @property
    def text(self) -> str:
        """What the model reads: the error, or the content as text (JSON where it is not text)."""
        return self.error if self.error is not None else as_text(self.content)


class Retry(_Part, frozen=True, tag="retry"):
    """A request to answer again, because the last answer could not be taken."""

    text: str
    extra: dict[str, JSON] | None = None


class Image(_Part, frozen=True, tag="image"):
    """An image: an https address or a data: address (see `data_url`)."""

    url: str
    mime_type: str | None = None
    detail: Literal["auto", "low", "high"] | None = None
    extra: dict[str, JSON] | None = None


class Audio(_Part, frozen=True, tag="audio"):
    """Sound, such as audio/mp3 or audio/wav."""

    url: str
    mime_type: str | None = None
    extra: dict[str, JSON] | None = None


class Document(_Part, frozen=True, tag="document"):
    """A document, such as application/pdf."""

    url: str
    mime_type: str | None = None
    title: str | None = None
    extra: dict[str, JSON] | None = None


Part: TypeAlias = Text | Thinking | ToolCall | ToolResult | Retry | Image | Audio | Document
Content: TypeAlias = str | Part | Sequence["str | Part"]
"""What a user may pass as a prompt."""


class Message(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True, gc=False):
    """One message. An assistant's message also says which model gave it, what it used and why it stopped."""

    role: Role
    parts: tuple[Part, ...] = ()
    name: str | None = None
    timestamp: float | None = None
    usage: Usage | None = None
    model: str | None = None
    finish_reason: FinishReason | None = None
    extra: dict[str, JSON] | None = None

    @property
    def text(self) -> str:
        """The text parts, joined."""
        parts = self.parts
        if len(parts) == 1 and type(parts[0]) is Text:
            return parts[0].text
        return "".join([part.text for part in parts if type(part) is Text])

    @property
    def thinking(self) -> str:
        """The thinking parts, joined."""
        return "".join([part.text for part in self.parts if type(part) is Thinking])

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls it asks for, in order."""
        parts = self.parts
        if len(parts) == 1:
            return (parts[0],) if type(parts[0]) is ToolCall else ()
        return tuple([part for part in self.parts if type(part) is ToolCall])

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """The results it carries, in order."""
        return tuple([part for part in self.parts if type(part) is ToolResult])

    def check(self) -> Message:
        """Return the message if its role may carry its parts.

        Raises:
            InvalidMessage: naming the role and the part that it may not carry, or that nothing is there.
        """
        allowed = _ALLOWED.get(self.role)
        if allowed is None:
            raise InvalidMessage(f"there is no role {self.role!r}; the roles are {', '.join(Role)}")
        for part in self.parts:
            if not isinstance(part, allowed):
                raise InvalidMessage(
                    f"{a(self.role)} message cannot carry {a(type(part).__name__)} part; "
                    f"it carries {', '.join(kind.__name__ for kind in allowed)}"
                )
        if not self.parts:
            raise InvalidMessage(f"{a(self.role)} message needs at least one part")
        return self


_ALLOWED: Mapping[Role, tuple[type[Any], ...]] = {
    Role.SYSTEM: (Text,),
    Role.USER: (Text, Retry, Image, Audio, Document),
    Role.ASSISTANT: (Text, Thinking, ToolCall, Image, Audio),
    Role.TOOL: (ToolResult,),
}


def system(*content: str) -> Message:
    """A system message."""
    return Message(Role.SYSTEM, tuple([Text(text) for text in content])).check()


def user(content: Content) -> Message:
    """A user's message, from text or from parts (text, images, audio, documents)."""
    return Message(Role.USER, _parts(content)).check()


def assistant(content: Content = "", *calls: ToolCall) -> Message:
    """An assistant's message: content, calls, or both."""
    parts = () if content == "" else _parts(content)
    return Message(Role.ASSISTANT, (*parts, *calls)).check()


def tool_results(results: Iterable[ToolResult]) -> Message:
    """The message that answers the calls of one turn, in their order."""
    return Message(Role.TOOL, tuple(results)).check()


def tool_result(call_id: str, name: str, content: JSON) -> Message:
    """The message that answers one call."""
    return tool_results([ToolResult(call_id, name, content)])


def _parts(content: Content) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (Text(content),)
    if isinstance(content, _Part):
        return (content,)
    if not isinstance(content, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidMessage(
            f"content is text, a part, or a list of them, not a {type(content).__name__}: {content!r:.200}"
        )
    return tuple([Text(item) if isinstance(item, str) else item for item in content])


def data_url(data: bytes, mime_type: str) -> str:
    """Binary content as a data: address."""
    from base64 import b64encode

    return f"data:{mime_type};base64,{b64encode(data).decode('ascii')}"
