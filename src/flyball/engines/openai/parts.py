"""What both of OpenAI's protocols take in the same way."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from flyball.core.messages import Audio, Document
from flyball.core.tools import ToolDefinition
from flyball.engines.openai.strict import strict_schema
from flyball.engines.wire.media import media_of, refuse, text_of
from flyball.inference.request import OutputObject

JSONObject = dict[str, Any]
_MOST = 256
"""Tools that are remembered; those of requests that came over a wire are new each time."""
_FORMATS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}


def audio(part: Audio) -> JSONObject:
    """A sound, which must be here and be wav or mp3.

    Raises:
        UserError: it is not.
    """
    media = media_of(part)
    kind = _FORMATS.get(media.mime_type)
    if media.data is None or kind is None:
        where = "by an address" if media.data is None else f"of type {media.mime_type!r}"
        raise refuse(part, "openai", f"{where}: give wav or mp3 as a data: address")
    return {"type": "input_audio", "input_audio": {"data": media.data, "format": kind}}


class Paper(Struct, frozen=True):
    """A document as both protocols take it: its `text`, or a file by `name` and `data`, or neither."""

    text: str | None = None
    name: str = ""
    data: str | None = None


def paper_of(part: Document) -> Paper:
    """What is to be sent of a document.

    Raises:
        UserError: its data: address is none, or no text as it says.
    """
    media = media_of(part)
    if (text := text_of(media)) is not None:
        return Paper(f"{part.title}:\n{text}" if part.title else text)
    if media.data is None:
        return Paper()
    name = part.title or "document." + (media.mime_type.rpartition("/")[2] or "pdf")
    return Paper(None, name, f"data:{media.mime_type};base64,{media.data}")


class Functions:
    """Tools as OpenAI takes them, worked out once for each: an agent sends the same ones every turn."""

    def __init__(self, *, strict: bool) -> None:
        """`strict`: the server can hold a model to a tool's parameters."""
        self._strict = strict
        self._known: dict[int, tuple[ToolDefinition, JSONObject]] = {}

    def __call__(self, tool: ToolDefinition) -> JSONObject:
        """A tool's name, description and parameters; held to them where they fit and the server can."""
        known = self._known.get(id(tool))
        if known is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            # The tool is kept with it: so long as it is here, nothing else has its id.
            known = self._known[id(tool)] = (tool, function(tool, strict=self._strict))
        return known[1]


def function(tool: ToolDefinition, *, strict: bool) -> JSONObject:
    """A tool's name, description and parameters; held to them where they fit and the server can."""
    told: JSONObject = {"name": tool.name, "parameters": tool.parameters}
    if tool.description:
        told["description"] = tool.description
    if strict and tool.strict is not False:
        fitted = strict_schema(tool.parameters, nulls=tool.strict is True)
        if fitted is not None:
            told.update(parameters=fitted, strict=True)
    return told


def form(output: OutputObject, *, strict: bool) -> JSONObject:
    """The form of an answer; held to it to the letter where it fits and the server can."""
    told: JSONObject = {"name": output.name, "schema": output.schema}
    if output.description:
        told["description"] = output.description
    if strict and output.strict is not False:
        fitted = strict_schema(output.schema, nulls=output.strict is True)
        if fitted is not None:
            told.update(schema=fitted, strict=True)
    return told
