"""What a model was really given, by engines that put a request into words of their own.

An engine whose runtime takes messages, tools and schemas as they are has nothing to add to the request. One
that asks first, adds words or makes a grammar says here what became of it, so that a recorded run can be
explained to the last word without keeping anything twice: it follows from the request and the answer.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from flyball.core.messages import Message
from flyball.inference.request import Request


class Prompt(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """One thing that a model was given, as its runtime was given it.

    `about` says in a few words what it is for. `settings` is all that went with it besides the messages and
    the grammar. `answer` is what came back where the turn's own message does not hold it; `decides` says that
    what was given next hangs on it. `exact` says whether it is, to the letter, what was given then: no, where
    the engine's words have changed since; None, where nothing was recorded to tell.
    """

    about: str
    messages: tuple[dict[str, str], ...]
    grammar: str | None = None
    settings: dict[str, Any] | None = None
    answer: str | None = None
    decides: bool = False
    exact: bool | None = None


@runtime_checkable
class Renders(Protocol):
    """An engine that can say again how it put a request to its model."""

    def rendered(self, request: Request, answer: Message | None) -> tuple[Prompt, ...]:
        """What the model was given for a request, in order. Pure: nothing is loaded, and nothing is asked.

        `answer` is the message that came back, or None where none is recorded. It ends with a prompt that
        `decides` where what that came to is not recorded.

        Raises:
            FlyballError: the request cannot be put to the model.
        """
        ...
