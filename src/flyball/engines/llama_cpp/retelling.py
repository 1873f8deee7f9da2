"""What llama.cpp was given for a request, told again from the request and its answer."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from flyball.constraint.protocol import ToolProtocol
from flyball.core.messages import Message
from flyball.engines.llama_cpp.codec import CHOICE, SENT, call_body, fingerprint
from flyball.inference.rendered import Prompt
from flyball.inference.request import Request


def retold(protocol: ToolProtocol, request: Request, answer: Message | None) -> tuple[Prompt, ...]:
    """The question before the turn, if there was one, and the turn. It follows `LlamaCppEngine.stream`.

    Raises:
        FlyballError: the request cannot be put to the model.
    """
    recorded = (answer.extra if answer is not None else None) or {}
    asked = protocol.question(request)
    if asked is None:
        return _told([("the turn", call_body(request, protocol.render(request)))], recorded)
    question = ("which tools does the turn need?", call_body(Request(request.messages), asked))
    choice = recorded.get(CHOICE)
    if not isinstance(choice, str):
        (prompt,) = _told([question], {})
        return (replace(prompt, decides=True),)
    turn = ("the turn", call_body(request, protocol.render(request, choice)))
    first, second = _told([question, turn], recorded)
    return (replace(first, answer=choice, decides=True), second)


def _told(given: list[tuple[str, dict[str, Any]]], recorded: dict[str, Any]) -> tuple[Prompt, ...]:
    exact = fingerprint([body for _, body in given]) == recorded[SENT] if SENT in recorded else None
    prompts: list[Prompt] = []
    for about, body in given:
        settings = dict(body)
        messages = tuple(settings.pop("messages"))
        prompts.append(Prompt(about, messages, settings.pop("grammar", None), settings, exact=exact))
    return tuple(prompts)
