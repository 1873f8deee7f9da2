"""Address: where somebody talks with an agent, and so where they are answered.

A loop that was begun for a person says so in its metadata, under the wire's own names: whoever looks at its
journal knows whom to tell of it, also after a restart, and wherever it is driven.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from flyball.core.forms.fields import filled
from flyball.core.forms.semstreams import (
    ResponseAction,
    ResponseBlock,
    ResponseType,
    UserMessage,
    UserResponse,
    UserSignal,
)
from flyball.orchestrate.places import place_name

_FACTS = ("channel_type", "channel_id", "user_id", "thread_id", "message_id")


class Address(Struct, frozen=True):
    """A person at a place. `message_id` is what they said there, and are answered."""

    channel_type: str
    channel_id: str
    user_id: str = ""
    thread_id: str = ""
    message_id: str = ""

    @classmethod
    def of(cls, said: UserMessage | UserSignal) -> Address:
        """Where something was said."""
        if isinstance(said, UserSignal):
            return cls(said.channel_type, said.channel_id, said.user_id)
        return cls(said.channel_type, said.channel_id, said.user_id, said.thread_id, said.message_id)

    @classmethod
    def of_loop(cls, metadata: dict[str, Any] | None) -> Address | None:
        """For whom a loop with this metadata was begun; None where it was for nobody at a channel."""
        given = metadata or {}
        facts = {name: given[name] for name in _FACTS if isinstance(given.get(name), str)}
        if not (facts.get("channel_type") and facts.get("channel_id")):
            return None
        return cls(**facts)

    @property
    def channel(self) -> str:
        """The name of the channel: `type/id`, and no other one's (see `place_name`)."""
        return place_name(self.channel_type, self.channel_id)

    @property
    def conversation(self) -> str:
        """The conversation that is had here: one a thread, and without threads one a person."""
        within = f"thread:{self.thread_id}" if self.thread_id else f"user:{self.user_id}"
        return place_name(self.channel_type, self.channel_id, within)

    def metadata(self) -> dict[str, Any]:
        """What a loop says that is begun for somebody here."""
        return filled(**{name: getattr(self, name) for name in _FACTS})

    def response(
        self,
        kind: ResponseType,
        content: str,
        name: str,
        at: float,
        *,
        in_reply_to: str = "",
        blocks: Iterable[ResponseBlock] = (),
        actions: Iterable[ResponseAction] = (),
    ) -> UserResponse:
        """Something that is said to who is here; `name` is its id, by which a second one is known."""
        return UserResponse(
            response_id=name,
            channel_type=self.channel_type,
            channel_id=self.channel_id,
            user_id=self.user_id,
            in_reply_to=in_reply_to or self.message_id,
            thread_id=self.thread_id,
            type=str(kind),
            content=content,
            blocks=tuple(blocks),
            actions=tuple(actions),
            timestamp=at,
        )
