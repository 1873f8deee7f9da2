"""Histories that every provider takes: what that means, checked where one comes in from outside."""

from __future__ import annotations

from collections.abc import Sequence

from flyball.core.article import a
from flyball.core.errors import InvalidMessage
from flyball.core.messages import Message, Role, Text, ToolCall, ToolResult

_USER, _ASSISTANT, _TOOL = Role.USER, Role.ASSISTANT, Role.TOOL


def check_history(history: Sequence[Message], *, complete: bool = False) -> None:
    """Check that a history is valid: one leading system message at most, no empty message, every call
    answered exactly once by the message that follows, nobody speaking twice in a row, and in no message
    what its role cannot carry.

    Args:
        history: the messages.
        complete: whether it is about to be sent, and so must end with what the model can answer.

    Raises:
        InvalidMessage: with the number of the message that does not fit, and why.
    """
    before: Role | None = None
    calls: tuple[str, ...] = ()
    for number, message in enumerate(history):
        if type(message) is not Message or type(message.role) is not Role:
            raise InvalidMessage(
                f"message {number} of the history is no Message with a Role: {message!r:.200}", number=number
            )
        role, parts = message.role, message.parts
        plain = len(parts) == 1 and type(parts[0]) is Text
        if (
            plain
            and not calls
            and ((role is _USER and before is _ASSISTANT) or (role is _ASSISTANT and before is _USER))
        ):
            before = role  # the usual message: a look at the table of roles costs more than all of this
            continue
        if calls or role is _TOOL or role not in _AFTER[before] or not parts:
            _check_place(number, message, before, calls)
            calls = ()
        if not plain:
            message.check()
            if role is _ASSISTANT:
                calls = tuple([part.id for part in parts if type(part) is ToolCall])
                if len(set(calls)) != len(calls):
                    raise InvalidMessage(
                        f"message {number} of the history has doubled call ids: {list(calls)}", number=number
                    )
        before = role
    if calls:
        raise InvalidMessage(
            f"the history ends with unanswered tool calls: {', '.join(calls)}; "
            "results that came later are given as deferred_results="
        )
    if complete and before not in (_USER, _TOOL):
        raise InvalidMessage(f"a history that is sent ends with a user or a tool message, not with {before}")


def _check_place(number: int, message: Message, before: Role | None, calls: tuple[str, ...]) -> None:
    """The slow look at a message that does not simply carry on the conversation."""
    role = message.role
    if not message.parts:
        wrong = "it is empty"
    elif calls and role is not _TOOL:
        wrong = f"the tool calls before it are not answered: {', '.join(calls)}"
    elif role not in _AFTER[before]:
        wrong = f"{a(role)} message cannot follow {f'{a(before)} message' if before else 'nothing'}"
    else:
        answered = [part.call_id for part in message.parts if type(part) is ToolResult]
        if sorted(answered) == sorted(calls) and calls:
            return
        wrong = f"it answers {answered}, but the calls before it are {list(calls)}"
    raise InvalidMessage(f"message {number} of the history ({role}) is not valid: {wrong}", number=number)


_AFTER: dict[Role | None, tuple[Role, ...]] = {
    None: (Role.SYSTEM, Role.USER),
    Role.SYSTEM: (Role.USER,),
    Role.USER: (Role.ASSISTANT,),
    Role.ASSISTANT: (Role.USER, Role.TOOL),
    Role.TOOL: (Role.USER, Role.ASSISTANT),
}
