"""What was said in a loop, and what a conversation goes on from after it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from flyball.core.events import Event, Outcome, Started
from flyball.core.messages import Message, Role, assistant, user
from flyball.orchestrate.contracts.asked import conversation_in
from flyball.orchestrate.flow_state import FlowState
from flyball.orchestrate.machines import AnyState
from flyball.orchestrate.projections.summary import answer_of


def counts_after(events: Sequence[Event], state: AnyState) -> tuple[Message, ...]:
    """What a conversation goes on from after a loop whose outcome is decided: what has led to answers.

    That is what was said in it, if it was answered. Of one that failed, was stopped or refused, it is what
    that one went on from itself: what it was asked would only fail again, with whatever is said next.
    """
    if state.outcome is Outcome.SUCCESS:
        return said_in(state)
    if isinstance(state, FlowState):
        asked = conversation_in(state.input)
        return () if asked is None else asked.history
    history = events[0].history if events and isinstance(events[0], Started) else ()
    return tuple([message for message in history if message.role is not Role.SYSTEM])


def lately(messages: Sequence[Message], most: int) -> Sequence[Message]:
    """The last so many messages or fewer, from one of a person's on; more, where the last turn has more."""
    if len(messages) <= most:
        return messages
    asked = [number for number, message in enumerate(messages) if message.role is Role.USER]
    recent = [number for number in asked if number >= len(messages) - most] or asked[-1:]
    return messages[recent[0] :] if recent else ()


def said_in(state: AnyState) -> tuple[Message, ...]:
    """What was said in a loop that is over, with what was said before it; not the instructions.

    Each loop has the agent's instructions anew.
    """
    if not isinstance(state, FlowState):
        return tuple([message for message in state.history if message.role is not Role.SYSTEM])
    asked = conversation_in(state.input)
    if asked is None:
        return ()
    before = (*asked.history, *([] if asked.prompt is None else [user(asked.prompt)]))
    answer = answer_of(state)
    return (*before, assistant(answer)) if answer else before
