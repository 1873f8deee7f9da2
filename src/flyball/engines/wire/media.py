"""Images, sounds and documents as the vendors take them: an address, or a type and its base64."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote_to_bytes

from msgspec import Struct

from flyball.core.errors import UserError
from flyball.core.messages import Audio, Document, Image

_SUFFIXES = {
    "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp",
    "mp3": "audio/mpeg", "wav": "audio/wav", "flac": "audio/flac", "ogg": "audio/ogg", "m4a": "audio/mp4",
    "aac": "audio/aac", "pdf": "application/pdf", "txt": "text/plain", "md": "text/markdown",
    "html": "text/html", "csv": "text/csv", "json": "application/json",
}  # fmt: skip


class Media(Struct, frozen=True):
    """What a part holds: `data` in base64 where it is here, else it is at `url`. Its type may be unknown."""

    mime_type: str
    data: str | None = None
    url: str | None = None


def media_of(part: Image | Audio | Document) -> Media:
    """What a part holds.

    Raises:
        UserError: its data: address is none.
    """
    url = part.url
    if url[:5].lower() != "data:":
        suffix = url.partition("?")[0].rpartition(".")[2].lower()
        return Media(part.mime_type or _SUFFIXES.get(suffix, ""), url=url)
    head, comma, data = url[5:].partition(",")
    if not comma:
        raise UserError(f"a data: address has a comma between its type and its data: {url[:60]!r}")
    kind, *parameters = head.split(";")
    mime_type = part.mime_type or kind
    if not mime_type:
        raise UserError(f"the data: address {url[:60]!r} does not say of which type it is")
    if "base64" in [parameter.strip().lower() for parameter in parameters]:
        return Media(mime_type, data)
    from base64 import b64encode

    return Media(mime_type, b64encode(unquote_to_bytes(data)).decode("ascii"))


def text_of(media: Media) -> str | None:
    """The text of a document that is text and is here; None for any other."""
    if media.data is None or not media.mime_type.startswith("text/"):
        return None
    from base64 import b64decode
    from binascii import Error

    try:
        return b64decode(media.data, validate=True).decode("utf-8")
    except (Error, UnicodeDecodeError) as error:
        raise UserError(f"a document of type {media.mime_type} is no text: {error}") from None


def refuse(part: Any, provider: str, why: str) -> UserError:
    """The error for a part that a provider cannot take."""
    return UserError(
        f"{provider} takes no {type(part).__name__} {why}", provider=provider, part=type(part).__name__
    )
