"""UserResponse with its blocks and actions: what a person is answered, over the channel that they came by."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from flyball.core.forms.semstreams.keyed import Always, Keyed, Payload
from flyball.core.forms.semstreams.kinds import Moment
from flyball.core.forms.semstreams.signals import SEVEN
from flyball.core.forms.semstreams.types import Category


class ResponseType(StrEnum):
    """What a response is."""

    TEXT = "text"
    STATUS = "status"
    RESULT = "result"
    ERROR = "error"
    PROMPT = "prompt"
    """Something is asked of the person, such as an approval."""
    STREAM = "stream"
    """A piece of an answer that is not finished."""


class BlockType(StrEnum):
    """What a block shows."""

    TEXT = "text"
    CODE = "code"
    DIFF = "diff"
    FILE = "file"
    PROGRESS = "progress"


class ActionType(StrEnum):
    """How something is pressed."""

    BUTTON = "button"
    REACTION = "reaction"


class ActionStyle(StrEnum):
    """How something to press looks; one that says nothing looks as any other."""

    PRIMARY = "primary"
    DANGER = "danger"
    SECONDARY = "secondary"


class ResponseBlock(Keyed, frozen=True, kw_only=True):
    """A piece of a rich response."""

    NAME: ClassVar[str] = "response_block"

    type: Always[str] = ""
    content: Always[str] = ""
    lang: str = ""

    def validate(self) -> None:
        """Check that the type is known; raises InvalidMessage."""
        self.require_one_of("type", tuple(BlockType))


class ResponseAction(Keyed, frozen=True, kw_only=True):
    """Something to press; `signal` is the type of the signal that is then sent."""

    NAME: ClassVar[str] = "response_action"

    id: Always[str] = ""
    type: Always[str] = ""
    label: Always[str] = ""
    signal: Always[str] = ""
    style: Always[str] = ""

    def validate(self) -> None:
        """Check the id, the type, the style, and that there is such a signal; raises InvalidMessage."""
        self.require("id")
        self.require_one_of("type", tuple(ActionType))
        self.require_one_of("signal", SEVEN)
        if self.style:
            self.require_one_of("style", tuple(ActionStyle))


class UserResponse(Payload, frozen=True, kw_only=True):
    """What goes back to a person; `in_reply_to` is a message's id or a loop's."""

    NAME: ClassVar[str] = Category.USER_RESPONSE

    response_id: Always[str] = ""
    channel_type: Always[str] = ""
    channel_id: Always[str] = ""
    user_id: Always[str] = ""
    in_reply_to: str = ""
    thread_id: str = ""
    type: Always[str] = ""
    content: Always[str] = ""
    blocks: tuple[ResponseBlock, ...] = ()
    actions: tuple[ResponseAction, ...] = ()
    timestamp: Always[Moment] = None

    def validate(self) -> None:
        """Check its id, channel and type, its blocks and its actions; raises InvalidMessage."""
        self.require("response_id", "channel_type", "channel_id")
        self.require_one_of("type", tuple(ResponseType))
        for one in (*self.blocks, *self.actions):
            one.validate()
