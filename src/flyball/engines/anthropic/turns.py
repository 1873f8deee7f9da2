"""A history as the turns that the Messages API takes.

The API has two who speak, in turn, the user first. What a history has besides is told where it is understood:
leading system messages are the `system` parameter, later ones stand in the user's turn between tags; results
of tools open the user's turn; images that the model itself gave are shown in the user's next turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_never

from msgspec import Struct

from flyball.core.messages import (
    Audio,
    Document,
    Image,
    Message,
    Part,
    ResultKind,
    Retry,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from flyball.engines.anthropic.models import Traits, is_claude, same_model
from flyball.engines.wire.calls import arguments_of, fitting_id, fitting_name
from flyball.engines.wire.media import media_of, refuse, text_of

JSONObject = dict[str, Any]
BLOCK = "anthropic"
"""The key of `provider_data` under which a block that only Anthropic reads stands, as it came."""
CITATIONS = "citations"
"""The key of a text's `extra` for what it cites."""
CARRIED = ("caller", "toolset_name")
"""What a call has of Anthropic's own, in `provider_data`."""

_IMAGES = frozenset(("image/jpeg", "image/png", "image/gif", "image/webp"))
_PDF = "application/pdf"
_NOTHING = "(nothing)"
_SHOWN = "Shown above:"
_FAILED = "The tool failed."
_THOUGHTS = frozenset(("thinking", "redacted_thinking"))


class Turns(Struct, frozen=True):
    """What is said: the system prompt, and turns whose contents are lists of blocks."""

    system: str
    messages: list[JSONObject]

    @property
    def broken(self) -> bool:
        """Whether the model's turn that goes on now, after results of tools, was begun without thoughts."""
        begun: JSONObject | None = None
        for turn in reversed(self.messages):
            if turn["role"] == "assistant":
                begun = turn
            elif turn["content"][0]["type"] != "tool_result":
                break
        return begun is not None and begun["content"][0]["type"] not in _THOUGHTS


def turns_of(messages: Sequence[Message], model: str, traits: Traits) -> Turns:
    """The turns of a history.

    Raises:
        UserError: a part that the API cannot carry.
    """
    leading = 0
    while leading < len(messages) and messages[leading].role is Role.SYSTEM:
        leading += 1
    system = "\n\n".join([message.text for message in messages[:leading] if message.text.strip()])
    teller = _Teller(model, traits)
    for message in messages[leading:]:
        teller.tell(message)
    return Turns(system, teller.told())


class _Teller:
    """Puts one message after another into turns."""

    def __init__(self, model: str, traits: Traits) -> None:
        self._model = model
        self._traits = traits
        self._turns: list[JSONObject] = []
        self._used: set[str] = set()
        """The ids of all calls so far: the API takes none twice."""
        self._calls: dict[str, JSONObject] = {}
        """The calls of the last message, as they were told, by their own ids."""
        self._shown: list[JSONObject] = []
        """What the model showed, for the user's next turn."""

    def tell(self, message: Message) -> None:
        match message.role:
            case Role.SYSTEM:
                if message.text.strip():
                    self._say("user", [_text(f"<system>\n{message.text}\n</system>")])
            case Role.USER:
                self._say("user", [_said(part) for part in message.parts if not _blank(part)])
            case Role.TOOL:
                self._say("user", [self._result(result) for result in message.tool_results])
            case Role.ASSISTANT:
                self._answer(message)
            case _:
                assert_never(message.role)

    def told(self) -> list[JSONObject]:
        turns = self._turns
        if self._shown or not turns:
            self._say("user", [])
        if turns[0]["role"] == "assistant":
            turns.insert(0, {"role": "user", "content": []})
        for turn in turns:
            if turn["role"] == "user":
                # The results of the calls before it open a turn; all else keeps its order.
                turn["content"] = sorted(turn["content"], key=_is_no_result) or [_text(_NOTHING)]
        if turns[-1]["role"] == "assistant" and turns[-1]["content"][-1]["type"] == "text":
            # The model goes on from here, and does not take a beginning that ends with white space.
            turns[-1]["content"][-1]["text"] = turns[-1]["content"][-1]["text"].rstrip()
        return turns

    def _say(self, role: str, blocks: list[JSONObject]) -> None:
        if role == "user" and self._shown:
            blocks = sorted([_text(_SHOWN), *self._shown, *blocks], key=_is_no_result)
            self._shown = []
        if self._turns and self._turns[-1]["role"] == role:
            self._turns[-1]["content"] += blocks
        else:
            self._turns.append({"role": role, "content": blocks})

    def _answer(self, message: Message) -> None:
        self._calls = {}
        own = same_model(self._model, message.model)
        blocks: list[JSONObject] = []
        shown: list[JSONObject] = []
        for part in message.parts:
            if type(part) is Text and not _blank(part):
                cited = (part.extra or {}).get(CITATIONS)
                blocks.append(_text(part.text) | ({CITATIONS: cited} if cited else {}))
            elif type(part) is Thinking:
                blocks += self._thought(part, message, own)
            elif type(part) is ToolCall:
                blocks.append(self._call(part))
            elif type(part) is Image:
                shown.append(_image(part))
            elif type(part) is Audio:
                raise refuse(part, "anthropic", "at all: leave it out, or put it into words")
        while blocks and blocks[-1]["type"] in _THOUGHTS:
            # An answer that was cut off while the model thought: no answer ends with a thought.
            blocks.pop()
        if blocks:
            self._say("assistant", blocks)
        self._shown += shown

    def _thought(self, part: Thinking, message: Message, own: bool) -> list[JSONObject]:
        """What goes back of a thought: what another model thought is not for this one to read."""
        block = (part.provider_data or {}).get(BLOCK)
        if block is not None:
            kept = own or (block["type"] not in _THOUGHTS and is_claude(message.model or self._model))
            return [dict(block)] if kept else []
        if not own or (part.signature is None and (self._traits.signed or not part.text)):
            return []
        return [{"type": "thinking", "thinking": part.text, "signature": part.signature or ""}]

    def _call(self, call: ToolCall) -> JSONObject:
        told = fitting_id(call.id)
        number = 0
        while told in self._used:
            number += 1
            told = fitting_id(f"{call.id} #{number}")
        self._used.add(told)
        block: JSONObject = {
            "type": "tool_use",
            "id": told,
            "name": fitting_name(call.name),
            "input": arguments_of(call),
        }
        own = call.provider_data or {}
        block.update({key: own[key] for key in CARRIED if key in own})
        self._calls[call.id] = block
        return block

    def _result(self, result: ToolResult) -> JSONObject:
        call = self._calls.get(result.call_id, {})
        block: JSONObject = {"type": "tool_result", "tool_use_id": call.get("id", fitting_id(result.call_id))}
        text = result.text
        failed = result.is_error or result.status is ResultKind.RETRY
        if failed and not text.strip():
            text = _FAILED
        if result.images:
            words = [_text(text)] if text.strip() else []
            block["content"] = [*words, *[_image(image) for image in result.images]]
        elif text.strip():
            block["content"] = text
        if failed:
            block["is_error"] = True
        if (toolset := call.get("toolset_name")) is not None:
            block["toolset_name"] = toolset
        return block


def _said(part: Part) -> JSONObject:
    match part:
        case Text() | Retry():
            return _text(part.text)
        case Image():
            return _image(part)
        case Document():
            return _document(part)
        case Audio():
            raise refuse(part, "anthropic", "at all: leave it out, or put it into words")
        case Thinking() | ToolCall() | ToolResult():
            raise refuse(part, "anthropic", "in a user's message")
        case _:
            assert_never(part)


def _blank(part: Part) -> bool:
    return type(part) in (Text, Retry) and not part.text.strip()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


def _is_no_result(block: JSONObject) -> bool:
    return block["type"] != "tool_result"


def _text(text: str) -> JSONObject:
    return {"type": "text", "text": text}


def _image(part: Image) -> JSONObject:
    media = media_of(part)
    if media.data is None:
        return {"type": "image", "source": {"type": "url", "url": media.url}}
    if media.mime_type not in _IMAGES:
        raise refuse(part, "anthropic", f"of type {media.mime_type!r}: give JPEG, PNG, GIF or WebP")
    return {
        "type": "image",
        "source": {"type": "base64", "media_type": media.mime_type, "data": media.data},
    }


def _document(part: Document) -> JSONObject:
    media = media_of(part)
    if media.data is None and media.mime_type in ("", _PDF):
        source: JSONObject = {"type": "url", "url": media.url}
    elif media.data is not None and media.mime_type == _PDF:
        source = {"type": "base64", "media_type": _PDF, "data": media.data}
    elif (text := text_of(media)) is not None:
        if not text.strip():
            return _text(f"(The document{f' {part.title!r}' if part.title else ''} is empty.)")
        source = {"type": "text", "media_type": "text/plain", "data": text}
    else:
        where = "by an address" if media.data is None else "as data"
        raise refuse(part, "anthropic", f"of type {media.mime_type!r} {where}: give a PDF, or text as data")
    block: JSONObject = {"type": "document", "source": source}
    if part.title:
        block["title"] = part.title
    return block
