"""Filters: what of a conversation is handed on to the next agent.

A filter is a function of messages, `(messages)` or `(ctx, messages)`, which may be async. Those here leave a
history that every provider takes: no call is parted from its result, and nobody speaks twice in a row. What a
filter of one's own leaves is checked for that.

    AgentStep(editor, prompt="Shorten it.", history=chain_filters(strip_system_prompts, keep_last_n(6)))
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from msgspec.structs import replace

from flyball.core.encodable import as_text
from flyball.core.errors import UserError
from flyball.core.history import check_history
from flyball.core.messages import Message, Role, Text, ToolCall, ToolResult
from flyball.inference.engine import Engine
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.flow.doing import StepContext
from flyball.orchestrate.flow.functions import function_of

_Left: TypeAlias = Sequence[Message] | Awaitable[Sequence[Message]]
HistoryFilter: TypeAlias = (
    Callable[[Sequence[Message]], _Left] | Callable[[StepContext[Any], Sequence[Message]], _Left]
)
"""What is left of a history."""

SUMMARY = "[Conversation Summary]"
"""What a summary of a conversation begins with."""
_SUMMARIZE = (
    "You are given a conversation between a user and an assistant. Summarise it for whoever goes on with it: "
    "what was asked for, what was found out and decided, what is still open. Keep names, numbers and "
    "identifiers exactly as they are. Give the summary and nothing else."
)


async def filtered(
    history_filter: HistoryFilter, context: StepContext[Any], messages: Sequence[Message]
) -> tuple[Message, ...]:
    """What a filter leaves of a history.

    Raises:
        InvalidMessage: it is no history that every provider takes.
    """
    left = tuple(await function_of(history_filter, "a filter of histories")(context, messages))
    check_history(left)
    return left


def strip_system_prompts(messages: Sequence[Message]) -> Sequence[Message]:
    """Leave out what the agent before was told by its instructions."""
    return [message for message in messages if message.role is not Role.SYSTEM]


def keep_last_n(count: int) -> HistoryFilter:
    """Keep the last `count` messages, and the instructions.

    Where these begin in the middle of an exchange, it is kept from the user's message on: an answer without
    its question, or a result without its call, is nothing that a model can be sent.

    Raises:
        UserError: `count` is negative.
    """
    if count < 0:
        raise UserError(f"keep_last_n takes how many messages are kept, from 0, not {count}")

    def keep_last(messages: Sequence[Message]) -> Sequence[Message]:
        first, rest = _parted(messages)
        return [*first, *rest[_beginning(rest, count) :]]

    return keep_last


def summarize_history(
    model: str | Engine | Agent[Any, str], *, keep_last: int = 0, instructions: str = _SUMMARIZE
) -> HistoryFilter:
    """Put a summary in the place of the conversation, or of all but its last `keep_last` messages.

    The summary is made by a run of its own, recorded under the flow, and counted with the step. It is told to
    the next agent as the user's words, beginning with `[Conversation Summary]`; instructions stay as they
    are. Where there is nothing to summarise nothing is asked.

    Args:
        model: who summarises: a model, or an agent that gives text.
        keep_last: how many messages are kept as they are; see `keep_last_n`.
        instructions: what the model is told to do, where no agent is given.

    Raises:
        UserError: `keep_last` is negative.
    """
    if keep_last < 0:
        raise UserError(f"keep_last= takes how many messages are kept, from 0, not {keep_last}")
    agent: Agent[Any, str] = (
        model if isinstance(model, Agent) else Agent(model, name="summarizer", instructions=instructions)
    )

    async def summarize(context: StepContext[Any], messages: Sequence[Message]) -> Sequence[Message]:
        first, rest = _parted(messages)
        cut = _beginning(rest, keep_last)
        if not cut:
            return messages
        result = await context.run(agent, _transcript(rest[:cut]))
        summary = Text(f"{SUMMARY}\n{result.output}")
        if cut == len(rest):
            return [*first, Message(Role.USER, (summary,))]
        return [*first, replace(rest[cut], parts=(summary, *rest[cut].parts)), *rest[cut + 1 :]]

    return summarize


def chain_filters(*filters: HistoryFilter) -> HistoryFilter:
    """One filter after the other, each with what the one before has left."""

    async def chained(context: StepContext[Any], messages: Sequence[Message]) -> Sequence[Message]:
        for history_filter in filters:
            messages = await filtered(history_filter, context, messages)
        return messages

    return chained


def _parted(messages: Sequence[Message]) -> tuple[Sequence[Message], Sequence[Message]]:
    """The instructions, if there are any, and what was said."""
    begins = 1 if messages and messages[0].role is Role.SYSTEM else 0
    return messages[:begins], messages[begins:]


def _beginning(messages: Sequence[Message], count: int) -> int:
    """Where the last `count` messages begin, or the exchange that they begin in."""
    begins = max(len(messages) - count, 0)
    while 0 < begins < len(messages) and messages[begins].role is not Role.USER:
        begins -= 1
    return begins


def _transcript(messages: Sequence[Message]) -> str:
    """A conversation as text that a model reads."""
    return "\n\n".join([f"{message.role}: {_said(message)}" for message in messages])


def _said(message: Message) -> str:
    said: list[str] = []
    for part in message.parts:
        if isinstance(part, ToolCall):
            said.append(f"[calls {part.name} with {part.args_json}]")
        elif isinstance(part, ToolResult):
            said.append(f"[{part.name} gave: {part.text}]")
        else:
            text = getattr(part, "text", None)
            said.append(f"[{type(part).__name__.lower()}]" if text is None else as_text(text))
    return "\n".join(said)
