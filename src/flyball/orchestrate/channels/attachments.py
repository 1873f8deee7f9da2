"""Attachments as the parts of a message, and parts as attachments.

A model reads text, images, sound and documents. What is attached inline becomes one of these; what only has
an address is named to the model: nobody fetches it here, since whoever attaches things would choose what is
fetched. Images, sound and documents that a provider fetches by itself keep their addresses.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as NotBase64

from flyball.core.errors import InvalidMessage
from flyball.core.forms.semstreams import Attachment, AttachmentType, UserMessage
from flyball.core.messages import Audio, Document, Image, Message, Part, Text, data_url, user

_TEXTS = ("text/", "application/json", "application/xml", "application/yaml", "application/toml")
_PLAIN = "application/octet-stream"
_FENCE = "```"


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
    name, kind = attachment.name, attachment.mime_type
    if not (attachment.content or attachment.url):
        raise InvalidMessage(
            f"the attachment {name!r} has neither content nor url: give one of them", field="attachments"
        )
    media = _media(attachment)
    if media is not None:
        return media(_address(attachment), kind or None)
    if not attachment.content:
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
        return Attachment(type=kind, name=name, url=part.url, mime_type=part.mime_type or "")
    mime, content = part.mime_type or head[5:].partition(";")[0], data
    if not head.endswith(";base64"):
        content = b64encode(data.encode()).decode("ascii")
    return Attachment(type=kind, name=name, content=content, mime_type=mime, size=len(content) * 3 // 4)


def _media(attachment: Attachment) -> type[Image] | type[Audio] | None:
    if attachment.type == AttachmentType.IMAGE or attachment.mime_type.startswith("image/"):
        return Image
    return Audio if attachment.mime_type.startswith("audio/") else None


def _address(attachment: Attachment) -> str:
    """Where it is, or itself; content that is no base64 is taken for text.

    Raises:
        InvalidMessage: an image or a sound that is no base64.
    """
    if not attachment.content:
        return attachment.url
    kind = attachment.mime_type or ("image/png" if attachment.type == AttachmentType.IMAGE else _PLAIN)
    try:
        b64decode(attachment.content, validate=True)
    except (NotBase64, ValueError):
        if _media(attachment) is not None:
            raise InvalidMessage(
                f"the content of the attachment {attachment.name!r} is no base64", field="attachments"
            ) from None
        return data_url(attachment.content.encode(), kind)
    return f"data:{kind};base64,{attachment.content}"


def _fenced(name: str, content: str) -> str:
    """Text that was attached, set off from what was said; a fence that is longer than any in it."""
    fence = _FENCE
    while fence in content:
        fence += "`"
    return f"{name}\n{fence}\n{content}\n{fence}" if name else f"{fence}\n{content}\n{fence}"
