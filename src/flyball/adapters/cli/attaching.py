"""A file as what is attached to a message: text as text, images, sound and documents as what they are."""

from __future__ import annotations

from base64 import b64encode
from mimetypes import guess_type
from pathlib import Path

from flyball.core.errors import UserError
from flyball.core.forms.semstreams import Attachment, AttachmentType

_MOST = 20_000_000
"""Bytes that a file may have: it is recorded whole, and sent whole."""


def attachment_in(file: Path) -> Attachment:
    """What a file holds, as an attachment.

    Raises:
        UserError: it cannot be read, is empty, or is too large.
    """
    try:
        with file.expanduser().open("rb") as opened:
            data = opened.read(_MOST + 1)
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror or error}") from error
    if not data or len(data) > _MOST:
        why = f"has more than {_MOST} bytes" if data else "is empty"
        raise UserError(f"{file} {why}: it cannot be attached")
    text = _text(data)
    if text is not None:
        return Attachment(type=AttachmentType.FILE, name=file.name, content=text, size=len(data))
    kind = guess_type(file.name)[0] or "application/octet-stream"
    return Attachment(
        type=AttachmentType.IMAGE if kind.startswith("image/") else AttachmentType.FILE,
        name=file.name,
        content=b64encode(data).decode("ascii"),
        mime_type=kind,
        size=len(data),
    )


def _text(data: bytes) -> str | None:
    """The bytes as text; None where they are none."""
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
