"""UserMessage and Attachment: what a person says, whatever channel it came by."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

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
    """Something attached to a message: where to fetch it, or its content if it is small."""

    NAME: ClassVar[str] = "attachment"

    type: Always[str] = ""
    name: Always[str] = ""
    url: str = ""
    content: str = ""
    mime_type: str = ""
    size: int = 0

    def validate(self) -> None:
        """Check that the type is known; raises InvalidMessage."""
        self.require_one_of("type", tuple(AttachmentType))


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
