"""Attachments as the parts of a message, and parts as attachments.

A model reads text, images, sound and documents. What is attached inline becomes one of these; what only has
an address is named to the model: nobody fetches it here, since whoever attaches things would choose what is
fetched. Images, sound and documents that a provider fetches by itself keep their addresses.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from urllib.parse import unquote_to_bytes

from msgspec.structs import replace

from flyball.core.errors import InvalidMessage
from flyball.core.forms.semstreams import Attachment, AttachmentType, UserMessage
from flyball.core.messages import Audio, Document, Image, Message, Part, Text, data_url, user

_TEXTS = ("text/", "application/json", "application/xml", "application/yaml", "application/toml")
_PLAIN = "application/octet-stream"
_PDF = "application/pdf"
_WRITTEN = re.compile(
    r"application/(x-)?(javascript|ecmascript|typescript|sql|sh|shellscript|python|perl|ruby|php|yaml|toml|tex"
    r"|ndjson|graphql|rtf)|[^/]+/.+\+(json|xml|yaml)"
)
"""Kinds besides these that are text, and so may be attached as it stands."""
_TICKS = re.compile("`+")
_MIME = re.compile(r"[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+")
_FETCHED = ("http://", "https://", "data:")
"""What the addresses begin with that a model's provider fetches."""


def message_of(said: UserMessage) -> Message:
    """What somebody said, with what they attached, as a message to a model.

    Raises:
        InvalidMessage: an attachment is none, or has neither a content nor an address.
    """
    texts = [Text(said.content)] if said.content else []
    return user([*texts, *[part_of(one) for one in said.attachments]])


def part_of(attachment: Attachment) -> Part:
    """An attachment as a part of a message.

    Raises:
        InvalidMessage: it is none, or has neither a content nor an address.
    """
    attachment.validate()
    name, kind = attachment.name, _kind(attachment)
    attachment = replace(attachment, mime_type=kind)
    if not (attachment.content or attachment.url):
        raise InvalidMessage(
            f"the attachment {name!r} has neither content nor url: give one of them", field="attachments"
        )
    media = _media(attachment)
    if media is not None:
        return media(_address(attachment), kind or None)
    if not attachment.content:
        if kind == _PDF and attachment.url.startswith(_FETCHED):
            return Document(attachment.url, kind, name or None)
        return Text(f"{name or attachment.type}: {attachment.url}")
    if attachment.type == AttachmentType.CODE or not kind or kind.startswith(_TEXTS):
        return Text(_fenced(name, attachment.content))
    return Document(_address(attachment), kind, name or None)


def attachment_of(part: Part) -> Attachment | None:
    """A part of a message as an attachment; None for what is no medium, such as text."""
    if not isinstance(part, Image | Audio | Document):
        return None
    kind = AttachmentType.IMAGE if isinstance(part, Image) else AttachmentType.FILE
    name = (part.title or "") if isinstance(part, Document) else ""
    head, comma, data = part.url.partition(",")
    if not (comma and head.startswith("data:")):
        mime = part.mime_type or (_PDF if isinstance(part, Document) and part.url.endswith(".pdf") else "")
        return Attachment(type=kind, name=name, url=part.url, mime_type=mime)
    mime = part.mime_type or head[5:].partition(";")[0]
    raw = b64decode(data) if head.endswith(";base64") else unquote_to_bytes(data)
    return Attachment(type=kind, name=name, content=_content(raw, mime), mime_type=mime, size=len(raw))


def _content(raw: bytes, mime: str) -> str:
    """What an attachment holds: text as it is, all else as base64."""
    if mime.startswith(_TEXTS):
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return b64encode(raw).decode("ascii")  # it is no text, whatever it is said to be
    return b64encode(raw).decode("ascii")


def _kind(attachment: Attachment) -> str:
    """The kind of an attachment, without its parameters, in small letters; empty where it says none.

    Raises:
        InvalidMessage: it is none.
    """
    kind = attachment.mime_type.partition(";")[0].strip().lower()
    if kind and not _MIME.fullmatch(kind):
        raise InvalidMessage(f"mime_type is {kind[:60]!r}, and not such as image/png", field="attachments")
    return kind


def _media(attachment: Attachment) -> type[Image] | type[Audio] | None:
    if attachment.type == AttachmentType.IMAGE or attachment.mime_type.startswith("image/"):
        return Image
    return Audio if attachment.mime_type.startswith("audio/") else None


def _address(attachment: Attachment) -> str:
    """Where it is, or itself; content that is no base64 is text, where its kind is one.

    Raises:
        InvalidMessage: it is of another kind and no base64, or at an address that nobody fetches.
    """
    if not attachment.content:
        if not attachment.url.startswith(_FETCHED):
            raise InvalidMessage(
                f"the address {attachment.url[:100]!r} of an attachment is none of the web's",
                field="attachments",
            )
        return attachment.url
    kind = attachment.mime_type or ("image/png" if attachment.type == AttachmentType.IMAGE else _PLAIN)
    try:
        b64decode(attachment.content, validate=True)
    except (NotBase64, ValueError):
        if _media(attachment) is not None or not _WRITTEN.fullmatch(kind):
            raise InvalidMessage(
                f"the content of the attachment {attachment.name!r} is no base64, which {kind} has to be",
                field="attachments",
            ) from None
        return data_url(attachment.content.encode(), kind)
    return f"data:{kind};base64,{attachment.content}"


def _fenced(name: str, content: str) -> str:
    """Text that was attached, set off from what was said; a fence that is longer than any in it."""
    longest = max([len(run) for run in _TICKS.findall(content)], default=0)
    fence = "`" * max(3, longest + 1)
    return f"{name}\n{fence}\n{content}\n{fence}" if name else f"{fence}\n{content}\n{fence}"
