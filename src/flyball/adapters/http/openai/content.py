"""What a message says: text, images, sounds and files, as both protocols have them."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from typing import Any

from flyball.adapters.http.openai.errors import Refused, unsupported
from flyball.adapters.http.openai.reading import param_of, place, required_text
from flyball.core.forms.fields import Fields, items, malformed
from flyball.core.messages import JSON, Audio, Document, Image, Part, Text

_ADDRESS = re.compile(
    r"https?://\S+|data:[\w.+-]+/[\w.+-]+(?:;[\w.+-]+=[^;,\s]+)*;base64,[A-Za-z0-9+/=_-]*", re.ASCII
)
_TEXTS = ("text", "input_text", "output_text")
_SOUNDS = {"wav": "audio/wav", "mp3": "audio/mpeg"}


def read_content(value: JSON, where: str, *, only_text: bool = False) -> tuple[Part, ...]:
    """The parts of a message's content, which is text or a list of parts; null says nothing.

    Raises:
        InvalidMessage: it is neither.
        Refused: a part is of a kind that cannot stand here.
    """
    if isinstance(value, str):
        return (Text(value),)
    return tuple([_part(item, at, only_text=only_text) for item, at in items(value, where)])


def read_text(value: JSON, where: str) -> str:
    """Content that is text only, joined.

    Raises:
        InvalidMessage, Refused: see `read_content`.
    """
    return "".join(
        [part.text for part in read_content(value, where, only_text=True) if isinstance(part, Text)]
    )


def _part(value: JSON, where: str, *, only_text: bool) -> Part:
    fields = Fields(value, where)
    kind = required_text(fields, "type")
    if kind in _TEXTS or kind == "refusal":
        key = "refusal" if kind == "refusal" else "text"
        text = fields.any(key)
        if not isinstance(text, str):
            raise malformed(fields.place(key), "text", text)
        return Text(text, {"refusal": True}) if kind == "refusal" else Text(text)
    read = None if only_text else _KINDS.get(kind)
    if read is None:
        raise unsupported(param_of(fields, "type"), f"a part {kind!r} cannot stand here")
    return read(fields)


def _image(fields: Fields) -> Image:
    """`image_url`, which is an object in one protocol and an address in the other."""
    _no_stored_file(fields)
    given, detail = fields.any("image_url"), fields.peek("detail")
    at = fields.place("image_url")
    if isinstance(given, dict):
        inner = Fields(given, at)
        given, at, detail = inner.any("url"), inner.place("url"), inner.any("detail")
    if detail not in (None, "auto", "low", "high", "original"):
        raise malformed(fields.place("detail"), "one of auto, low, high, original", detail)
    return Image(_address(given, at), detail="high" if detail == "original" else detail)


def _sound(fields: Fields) -> Audio:
    inner = Fields(fields.any("input_audio"), fields.place("input_audio"))
    data, form = required_text(inner, "data"), required_text(inner, "format")
    if form not in _SOUNDS:
        raise malformed(inner.place("format"), f"one of {', '.join(_SOUNDS)}", form)
    return Audio(f"data:{_SOUNDS[form]};base64,{_base64(data, inner.place('data'))}", _SOUNDS[form])


def _file(fields: Fields) -> Document:
    """`file`, an object in Chat Completions; `input_file` has the same keys at its own level."""
    inner = Fields(fields.any("file"), fields.place("file")) if fields.peek("file") is not None else fields
    _no_stored_file(inner)
    title, data, url = inner.text("filename") or None, inner.text("file_data"), inner.text("file_url")
    if url:
        return Document(_address(url, inner.place("file_url")), title=title)
    if not data:
        raise Refused(
            "a file needs its data", param=param_of(inner, "file_data"), code="missing_required_parameter"
        )
    if not data.startswith("data:"):
        data = f"data:application/pdf;base64,{_base64(data, inner.place('file_data'))}"
    return Document(_address(data, inner.place("file_data")), title=title)


def _no_stored_file(fields: Fields) -> None:
    if fields.text("file_id"):
        raise unsupported(param_of(fields, "file_id"), "no files are kept here: give the data itself")


def _address(given: Any, where: str) -> str:
    if not isinstance(given, str) or not given:
        raise malformed(where, "an http address or a data: address", given)
    if not _ADDRESS.fullmatch(given):
        raise Refused(
            f"{place(where)} should be an http address or a data: address with base64, but is {given[:80]!r}",
            param=place(where),
            code="invalid_image_url",
        )
    return given


def _base64(data: str, where: str) -> str:
    try:
        b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Refused(
            f"{place(where)} is no base64: {error}", param=place(where), code="invalid_base64"
        ) from error
    return data


_KINDS = {
    "image_url": _image,
    "input_image": _image,
    "input_audio": _sound,
    "file": _file,
    "input_file": _file,
}
