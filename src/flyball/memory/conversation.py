"""Conversation: the three memories of somebody who talks, under one policy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from flyball.core.messages import Message
from flyball.memory.buffer import ConversationBuffer
from flyball.memory.policy import MemoryPolicy
from flyball.memory.session import SessionState
from flyball.memory.working import WorkingMemory


class ConversationSnapshot(Struct, frozen=True, omit_defaults=True):
    """What outlives a conversation, as far as its policy allows; it can be written as JSON."""

    messages: tuple[Message, ...] = ()
    session: dict[str, Any] = {}


class Conversation:
    """What was said (`buffer`), what was decided (`session`), what the turn at hand works with (`working`).

        talk = Conversation(MemoryPolicy(max_messages=40))
        result = await agent.run("Hello!", messages=talk.messages())
        talk.end_turn(result.messages)

    Args:
        policy: how much is kept, and what outlives the conversation.
    """

    def __init__(self, policy: MemoryPolicy | None = None) -> None:
        self.policy = policy or MemoryPolicy()
        self.buffer = ConversationBuffer(policy=self.policy)
        self.session = SessionState()
        self.working = WorkingMemory()

    def messages(self) -> list[Message]:
        """What was said, as a list of its own, ready for `run(messages=...)`."""
        return self.buffer.messages()

    def end_turn(self, messages: Iterable[Message]) -> None:
        """Keep what a turn came to, and forget what it worked with; the context only if it is ephemeral.

        Args:
            messages: the whole history as it is now, such as a result's `messages`.

        Raises:
            InvalidMessage: they are no valid history.
            MemoryFull: they are too many, and nothing may be left out.
        """
        self.buffer.load(messages)
        self.working.reset(keep_context=not self.policy.ephemeral_context)

    def snapshot(self) -> ConversationSnapshot:
        """What outlives the conversation."""
        return ConversationSnapshot(
            tuple(self.messages()) if self.policy.persist_conversation else (),
            self.session.snapshot() if self.policy.persist_session else {},
        )

    def restore(self, snapshot: ConversationSnapshot) -> None:
        """Go on from what a conversation left; what is at hand is forgotten.

        Raises:
            InvalidMessage: its messages are no valid history.
            MemoryFull: they are too many, and nothing may be left out.
        """
        self.buffer.load(snapshot.messages)
        self.session.restore(snapshot.session)
        self.working.reset()
