"""Canned answers: the forms a test may write them in, and the messages they become."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from msgspec.json import encode
from msgspec.structs import replace

from flyball.core.article import a
from flyball.core.errors import InvalidMessage, UserError
from flyball.core.messages import FinishReason, Message, Part, Role, Text, ToolCall
from flyball.core.usage import Usage
from flyball.inference.request import Request, Result

Args: TypeAlias = Mapping[str, Any] | str | None
"""A call's arguments: a mapping, or the JSON text as a model would write it (also a malformed one)."""

Answer: TypeAlias = (
    str | Message | Result | ToolCall | Sequence[ToolCall] | Exception | Callable[[Request], "Answer"]
)
"""What may stand for an answer; a function is asked with the request and gives one of the others."""


def text_answer(text: str, usage: Usage | None = None) -> Message:
    """An answer of text."""
    return Message(Role.ASSISTANT, (Text(text),), usage=usage, finish_reason=FinishReason.STOP)


def tool_call_answer(name: str, args: Args = None, id: str = "", usage: Usage | None = None) -> Message:  # noqa: A002 - the field's name
    """An answer that calls one tool. Without an id the engine gives one, the same each time."""
    return multi_tool_call_answer(tool_call(name, args, id), usage=usage)


def multi_tool_call_answer(*calls: ToolCall, usage: Usage | None = None) -> Message:
    """An answer that calls several tools at once, in this order."""
    return Message(Role.ASSISTANT, calls, usage=usage, finish_reason=FinishReason.TOOL_CALL).check()


def tool_call(name: str, args: Args = None, id: str = "") -> ToolCall:  # noqa: A002 - the field's name
    """One call, for `multi_tool_call_answer`."""
    return ToolCall(id, name, args if isinstance(args, str) else encode(args or {}).decode("utf-8"))


def result_of(answer: Answer, request: Request, model: str) -> Result:
    """The result that an answer stands for, as a model of this name would give it for the request.

    What the answer leaves open is filled in: the model's name, why it stopped, the ids of calls. Its name
    and timestamp are left out, since no stream carries them.

    Raises:
        Exception: the answer is that exception.
        InvalidMessage: the message is no assistant's.
        UserError: it is nothing that can stand for an answer.
    """
    while callable(answer):
        answer = answer(request)
    if isinstance(answer, Exception):
        raise answer
    if isinstance(answer, Result):
        return Result(_settled(answer.message, request, model), answer.request_id)
    return Result(_settled(_message(answer), request, model))


def _message(answer: object) -> Message:
    if isinstance(answer, str):
        return text_answer(answer)
    if isinstance(answer, Message):
        return answer
    if isinstance(answer, ToolCall):
        return multi_tool_call_answer(answer)
    if isinstance(answer, Sequence):
        calls = [call for call in cast("Sequence[object]", answer) if isinstance(call, ToolCall)]
        if calls and len(calls) == len(cast("Sequence[object]", answer)):
            return multi_tool_call_answer(*calls)
    raise UserError(
        f"{answer!r:.200} cannot stand for an answer: give text, a Message, a Result, a ToolCall or a list "
        "of them, an exception, or a function from the request to one of these"
    )


def _settled(message: Message, request: Request, model: str) -> Message:
    if message.role is not Role.ASSISTANT:
        raise InvalidMessage(f"an answer is an assistant's message, and this is {a(message.role)} message")
    calls = message.tool_calls
    parts = message.parts
    if any(not call.id for call in calls):
        parts = tuple(_with_ids(parts, request))
    return Message(
        Role.ASSISTANT,
        parts,
        usage=message.usage,
        model=message.model or model,
        finish_reason=message.finish_reason or (FinishReason.TOOL_CALL if calls else FinishReason.STOP),
        extra=message.extra,
    )


def _with_ids(parts: tuple[Part, ...], request: Request) -> Iterator[Part]:
    """Calls without an id get `call_1`, `call_2`, … on from what the history holds.

    They follow from the request alone, so that a fresh engine that takes over a history gives no id twice.
    """
    taken = {call.id for message in request.messages for call in message.tool_calls}
    taken |= {part.id for part in parts if isinstance(part, ToolCall)}
    number = sum(len(message.tool_calls) for message in request.messages)
    for part in parts:
        if isinstance(part, ToolCall) and not part.id:
            number += 1
            while f"call_{number}" in taken:
                number += 1
            yield replace(part, id=f"call_{number}")
        else:
            yield part
