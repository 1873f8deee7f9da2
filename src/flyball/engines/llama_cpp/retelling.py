"""What llama.cpp was given for a request, told again from the request and its answer."""

from __future__ import annotations

from msgspec.structs import replace

from flyball.constraint.protocol import Rendered, ToolProtocol
from flyball.core.messages import Message
from flyball.engines.llama_cpp.codec import call_body
from flyball.inference.rendered import Prompt
from flyball.inference.request import Request

CHOICE = "choice"
"""Where a message has what was chosen before its turn."""


def retold(protocol: ToolProtocol, request: Request, answer: Message | None) -> tuple[Prompt, ...]:
    """The question before the turn, if there was one, and the turn. It follows `LlamaCppEngine.stream`.

    Raises:
        FlyballError: the request cannot be put to the model.
    """
    asked = protocol.question(request)
    if asked is None:
        return (_prompt("the turn", request, protocol.render(request)),)
    found = (answer.extra or {}).get(CHOICE) if answer is not None else None
    choice = found if isinstance(found, str) else None
    question = _prompt("which tools does the turn need?", Request(request.messages), asked)
    question = replace(question, answer=choice, decides=True)
    if choice is None:
        return (question,)
    return (question, _prompt("the turn", request, protocol.render(request, choice)))


def _prompt(about: str, request: Request, rendered: Rendered) -> Prompt:
    settings = call_body(request, rendered)
    messages = tuple(settings.pop("messages"))
    return Prompt(about, messages, settings.pop("grammar", None), settings)
