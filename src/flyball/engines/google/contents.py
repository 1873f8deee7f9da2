"""A history as Gemini's `contents`: the turns of user and model, and the system instruction before them.

Gemini's rules: the two take turns, and a turn with function calls is followed at once by one with as many
function responses, in the order of the calls. So messages of one side that follow each other are one turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, assert_never

from msgspec import Struct

from flyball.core.messages import (
    Audio,
    Document,
    Image,
    Message,
    Part,
    Retry,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from flyball.engines.google.generations import Generation
from flyball.engines.google.marks import SIGNATURE, marked
from flyball.engines.wire.calls import arguments_of, fitting_name
from flyball.engines.wire.media import media_of, refuse

JSONObject = dict[str, Any]
UNSIGNED = "skip_thought_signature_validator"
"""What Google documents as the signature of a call that Gemini did not make."""
_LATER_SYSTEM = "System message:\n"
_SHOWN = "Shown by {name}:"
_KINDS = {Image: "image/jpeg", Audio: "audio/mpeg", Document: "application/pdf"}
"""What a file is taken for on Vertex AI, which must be told, where nobody knows."""


class History(Struct, frozen=True):
    """What a request says: `system` is the parts of the system instruction."""

    system: list[JSONObject]
    contents: list[JSONObject]


def history_of(messages: Sequence[Message], generation: Generation, *, vertex: bool = False) -> History:
    """A history in Gemini's terms.

    System messages at the beginning are the system instruction; one that comes later is told in its place, in
    the user's turn, because Gemini has no other.

    Raises:
        UserError: a part that Gemini cannot take.
    """
    system: list[JSONObject] = []
    turns = _Turns()
    calls: Sequence[ToolCall] = ()
    begun = max((at for at, message in enumerate(messages) if message.role is Role.USER), default=-1)
    for at, message in enumerate(messages):
        if message.role is Role.ASSISTANT:
            calls = message.tool_calls
            turns.add("model", _model(message, signed=generation.signed and at > begun))
        elif message.role is Role.TOOL:
            turns.add("user", _results(message.tool_results, calls, generation, vertex))
        elif message.role is Role.USER:
            turns.add("user", _said(message.parts, vertex))
        elif turns.told:
            turns.add("user", [{"text": _LATER_SYSTEM + message.text}])
        else:
            system.append({"text": message.text})
    return History(system, turns.told)


class _Turns:
    def __init__(self) -> None:
        self.told: list[JSONObject] = []

    def add(self, role: str, parts: list[JSONObject]) -> None:
        if not parts:
            return
        if self.told and self.told[-1]["role"] == role:
            self.told[-1]["parts"] += parts
        else:
            self.told.append({"role": role, "parts": parts})


def _said(parts: Iterable[Part], vertex: bool) -> list[JSONObject]:
    told: list[JSONObject] = []
    for part in parts:
        match part:
            case Text() | Retry():
                if part.text:
                    told.append({"text": part.text})
            case Document():
                if part.title:
                    told.append({"text": f"{part.title}:"})
                told.append(_media(part, vertex))
            case Image() | Audio():
                told.append(_media(part, vertex))
            case Thinking() | ToolCall() | ToolResult():
                raise refuse(part, "google", "in a user's message")
            case _:
                assert_never(part)
    # A turn has at least one part, also where nothing was said.
    return told or [{"text": ""}]


def _media(part: Image | Audio | Document, vertex: bool) -> JSONObject:
    media = media_of(part)
    if media.data is not None:
        return {"inlineData": {"mimeType": media.mime_type, "data": media.data}}
    kind = media.mime_type or (_KINDS[type(part)] if vertex else "")
    file: JSONObject = {"mimeType": kind} if kind else {}
    return {"fileData": {**file, "fileUri": media.url}}


def _model(message: Message, *, signed: bool) -> list[JSONObject]:
    """What the model said, but for the thoughts of other vendors' models.

    With `signed`, the first call has a signature in any case: what another model began can be gone on with.
    """
    told: list[JSONObject] = []
    for part in message.parts:
        match part:
            case Text():
                if part.text:
                    told.append(_signed({"text": part.text}, part.extra))
            case ToolCall():
                told.append(_call(part, signed))
                signed = False
            case Image() | Audio():
                told.append(_signed(_media(part, vertex=True), part.extra))
            case Thinking():
                told += _thought(part)
            case ToolResult() | Retry() | Document():
                raise refuse(part, "google", "in a model's message")
            case _:
                assert_never(part)
    return told


def _signed(told: JSONObject, data: dict[str, Any] | None) -> JSONObject:
    kept = marked(data)
    if kept and SIGNATURE in kept:
        told[SIGNATURE] = kept[SIGNATURE]
    return told


def _thought(part: Thinking) -> list[JSONObject]:
    kept = marked(part.provider_data)
    if kept is None:
        return []
    told: JSONObject = dict(kept["part"]) if "part" in kept else {"text": part.text}
    if kept.get("thought"):
        told["thought"] = True
    if part.signature is not None:
        told[SIGNATURE] = part.signature
    return [told]


def _call(call: ToolCall, signed: bool) -> JSONObject:
    kept = marked(call.provider_data) or {}
    function: JSONObject = {"name": fitting_name(call.name), "args": arguments_of(call)}
    if "id" in kept:
        function["id"] = kept["id"]
    told: JSONObject = {"functionCall": function}
    if SIGNATURE in kept:
        told[SIGNATURE] = kept[SIGNATURE]
    elif signed:
        told[SIGNATURE] = UNSIGNED
    return told


def _results(
    results: Iterable[ToolResult], calls: Sequence[ToolCall], generation: Generation, vertex: bool
) -> list[JSONObject]:
    places = {call.id: (at, call) for at, call in enumerate(calls)}
    told: list[JSONObject] = []
    shown: list[JSONObject] = []
    for result in sorted(
        results, key=lambda result: places[result.call_id][0] if result.call_id in places else len(calls)
    ):
        _, call = places.get(result.call_id, (0, None))
        response: JSONObject = {
            "name": fitting_name(result.name if call is None else call.name),
            "response": {"error": result.error} if result.error is not None else {"output": _output(result)},
        }
        kept = None if call is None else marked(call.provider_data)
        if kept and "id" in kept:
            response["id"] = kept["id"]
        beside, after = _images(result.images, generation, vertex)
        if beside:
            response["parts"] = beside
        if after:
            shown += [{"text": _SHOWN.format(name=response["name"])}, *after]
        told.append({"functionResponse": response})
    return told + shown


def _output(result: ToolResult) -> Any:
    """What the tool gave, as JSON."""
    return "" if result.content is None else result.content


def _images(
    images: Iterable[Image], generation: Generation, vertex: bool
) -> tuple[list[JSONObject], list[JSONObject]]:
    """The images that go with a function's response, and those that follow all of them in the turn."""
    beside: list[JSONObject] = []
    after: list[JSONObject] = []
    for image in images:
        told = _media(image, vertex)
        fits = generation.media_results and (vertex or "inlineData" in told)
        (beside if fits else after).append(told)
    return beside, after
