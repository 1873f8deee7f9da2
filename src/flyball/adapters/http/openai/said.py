"""What a client is told of an answer, piece by piece, in either protocol; and all of it joined."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, assert_never

from msgspec import Struct


class Thought(Struct, frozen=True):
    """More of what the model thinks."""

    text: str


class Words(Struct, frozen=True):
    """More of the answer's text."""

    text: str


class Call(Struct, frozen=True):
    """A call of one of the client's tools begins; its arguments follow. `id` names its loop, too."""

    number: int
    id: str
    name: str


class Arguments(Struct, frozen=True):
    """More of a call's arguments."""

    number: int
    text: str


Said: TypeAlias = Thought | Words | Call | Arguments


class JoinedCall(Struct, frozen=True):
    """A call of one of the client's tools."""

    id: str
    name: str
    arguments: str = ""


class Joined(Struct, frozen=True):
    """All that was told."""

    thoughts: str = ""
    text: str = ""
    calls: tuple[JoinedCall, ...] = ()


def joined(told: Iterable[Said]) -> Joined:
    """What was told, as a whole."""
    thoughts: list[str] = []
    words: list[str] = []
    calls: list[Call] = []
    arguments: list[list[str]] = []
    for one in told:
        match one:
            case Thought():
                thoughts.append(one.text)
            case Words():
                words.append(one.text)
            case Call():
                calls.append(one)
                arguments.append([])
            case Arguments():
                arguments[one.number].append(one.text)
            case _:
                assert_never(one)
    made = [
        JoinedCall(call.id, call.name, "".join(texts)) for call, texts in zip(calls, arguments, strict=True)
    ]
    return Joined("".join(thoughts), "".join(words), tuple(made))
