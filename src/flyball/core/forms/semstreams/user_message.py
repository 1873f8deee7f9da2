"""UserMessage and Attachment: what a person says, whatever channel it came by."""

from __future__ import annotations

from codecs import BOM_UTF8
from enum import StrEnum
from typing import ClassVar, cast

from flyball.core.errors import InvalidMessage
from flyball.core.forms.semstreams.keyed import Always, Keyed, Payload
from flyball.core.forms.semstreams.kinds import Labels, Moment
from flyball.core.forms.semstreams.types import Category


class AttachmentType(StrEnum):
    """What may be attached."""

    FILE = "file"
    IMAGE = "image"
    CODE = "code"
    URL = "url"


class Attachment(Keyed, frozen=True, kw_only=True):
    """Something attached to a message: where to fetch it, or its content if it is small.

    The content is text, or base64. `size` is the number of bytes that it stands for, 0 where nobody says. It
    need not have a name: what was pasted has none.
    """

    NAME: ClassVar[str] = "attachment"

    type: Always[str] = ""
    name: Always[str] = ""
    url: str = ""
    content: str = ""
    mime_type: str = ""
    size: int = 0

    def validate(self) -> None:
        """Check that the type is known, the name one that can be shown, the size true; or InvalidMessage."""
        self.require_one_of("type", tuple(AttachmentType))
        if self.name and not (self.name.isprintable() and self.name.strip()):
            raise InvalidMessage(
                f"name in an {self.NAME} is {self.name[:60]!r}: give one that can be printed, or none",
                field="name",
            )
        fits = _sizes(self.content) if self.content else ()
        if self.size < 0 or (self.size and fits and self.size not in fits):
            there = " or ".join(map(str, fits)) or "0 or more"
            raise InvalidMessage(
                f"size in an {self.NAME} is {self.size}: give the bytes of its content ({there}), or none",
                field="size",
            )


def _sizes(content: str) -> tuple[int, ...]:
    """How many bytes a content may stand for: as text, perhaps behind a byte order mark, or as base64."""
    length = len(content)
    text = length if content.isascii() else len(content.encode(errors="surrogatepass"))
    texts = (text, text + len(BOM_UTF8))
    return texts if length % 4 else (*texts, length // 4 * 3 - (length - len(content.rstrip("="))))


class UserMessage(Payload, frozen=True, kw_only=True):
    """A person's message. `reply_to` is the loop that it goes on with."""

    NAME: ClassVar[str] = Category.USER_MESSAGE

    message_id: Always[str] = ""
    channel_type: Always[str] = ""
    channel_id: Always[str] = ""
    user_id: Always[str] = ""
    content: Always[str] = ""
    attachments: tuple[Attachment, ...] = ()
    reply_to: str = ""
    thread_id: str = ""
    metadata: Labels = None
    context_request_id: str = ""
    timestamp: Always[Moment] = None

    def validate(self) -> None:
        """Check that it says who, where and what, and what is attached; raises InvalidMessage."""
        self.require("message_id", "channel_type", "channel_id", "user_id")
        if not self.content and not self.attachments:
            raise InvalidMessage(
                "either content or attachments must be present in a user_message, and both are empty",
                field="content",
            )
        for one in self.attachments:
            one.validate()
        labels: object = self.metadata
        if labels is not None and not _are_labels(labels):
            raise InvalidMessage(
                f"metadata in a user_message must be texts by name; it is {str(labels)[:100]}",
                field="metadata",
            )


def _are_labels(value: object) -> bool:
    """Whether something is what `Labels` says: a program need not have read it off a wire, which looks."""
    if not isinstance(value, dict):
        return False
    labels = cast("dict[object, object]", value)
    return all(isinstance(name, str) and isinstance(label, str) for name, label in labels.items())
