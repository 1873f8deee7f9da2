"""OpenAI's protocol as operations: what `openai.routes` gives, behind the same gate as all else."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from flyball.adapters.http.asking import Answer, Asking, Stream
from flyball.adapters.http.openai import routes
from flyball.adapters.http.openai.errors import Refused
from flyball.adapters.http.operations import Operation
from flyball.adapters.http.tokens import Scope
from flyball.core.signals import Signal, SignalType
from flyball.inference.embedder import Embedder
from flyball.orchestrate.contracts import SystemRequest
from flyball.orchestrate.permissions import owned
from flyball.orchestrate.system import System


class Fault(Struct, frozen=True):
    """What went wrong, as OpenAI's clients read it."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class OpenAIError(Struct, frozen=True):
    """The body of an answer that tells what went wrong."""

    error: Fault


class _Served:
    """The service of who asks, as these protocols see it."""

    def __init__(self, asking: Asking) -> None:
        self._service = asking.service
        self._asking = asking

    def agents(self) -> Sequence[str]:
        """The names that a client may ask for, as `model`."""
        return tuple(self._service.systems)

    def system(self, name: str) -> System | None:
        """The system that serves under a name."""
        return self._service.systems.get(name)

    def embedder(self, name: str) -> Embedder | None:
        """The engine behind an agent, if it makes vectors."""
        return self._service.embedder(name)

    def owned(self, request: SystemRequest) -> SystemRequest:
        """A request, with whose it is."""
        return replace(request, metadata=owned(request.metadata, self._asking.person))

    async def check_answer(self, loop_id: str) -> None:
        """See that who asks may give a loop results that it waits for."""
        await self._service.check(loop_id, SignalType.FEEDBACK, self._asking.person)

    async def cancel(self, loop_id: str) -> None:
        """Cancel a loop."""
        signal = Signal(SignalType.CANCEL, by=self._asking.principal.name)
        await self._service.signal(loop_id, signal, who=self._asking.person)

    async def delete(self, loop_id: str) -> bool:
        """Remove a loop for good."""
        return await self._service.delete(loop_id)


async def create_chat_completion(asking: Asking) -> Answer | Stream:
    """Answer a chat."""
    return await _answered(routes.chat_completions(_Served(asking), await _body(asking)))


async def create_response(asking: Asking) -> Answer | Stream:
    """Answer a request for a response."""
    body: Any = await _body(asking)
    if isinstance(body, dict) and "previous_response_id" in cast("dict[str, Any]", body):
        asking.allow(Scope.READ)  # it goes on from what was said there
    return await _answered(routes.responses(_Served(asking), cast("Any", body)))


async def retrieve_response(asking: Asking) -> Answer | Stream:
    """A response that was given."""
    return await _answered(routes.retrieve_response(_Served(asking), asking.values["response_id"]))


async def cancel_response(asking: Asking) -> Answer | Stream:
    """Cancel a response that is under way."""
    return await _answered(routes.cancel_response(_Served(asking), asking.values["response_id"]))


async def delete_response(asking: Asking) -> Answer | Stream:
    """Remove a response that is over."""
    return await _answered(routes.delete_response(_Served(asking), asking.values["response_id"]))


async def create_embedding(asking: Asking) -> Answer | Stream:
    """The vectors of texts."""
    return await _answered(routes.embeddings(_Served(asking), await _body(asking)))


async def list_openai_models(asking: Asking) -> Answer | Stream:
    """The agents, as models."""
    return await _answered(routes.models(_Served(asking)))


async def read_openai_model(asking: Asking) -> Answer | Stream:
    """An agent, as a model."""
    return await _answered(routes.model(_Served(asking), asking.values["model"]))


async def _body(asking: Asking) -> Any:
    """What is asked of an agent whose model is here; see `Asking.have_model`."""
    body = await asking.json()
    named = cast("dict[str, Any]", body).get("model") if isinstance(body, dict) else None
    if isinstance(named, str):
        await asking.have_model(named)
    return cast("Any", body)


async def _answered(asked: Awaitable[dict[str, Any] | AsyncGenerator[bytes]]) -> Answer | Stream:
    try:
        given = await asked
    except Refused as refused:
        return Answer(refused.document, refused.status, refused.headers)
    return Answer(given) if isinstance(given, dict) else Stream(given)


def openai_operations() -> list[Operation]:
    """The operations of OpenAI's protocol."""

    def operation(
        method: str, path: str, summary: str, perform: Callable[[Asking], Any], **more: Any
    ) -> Operation:
        options: dict[str, Any] = {"scope": Scope.RUN, "tag": "openai", "fault": OpenAIError, **more}
        options.setdefault("gives", {200: dict[str, Any]})
        options["problems"] = (400, 404, 409, 500, 502, 504)
        return Operation(method, path, summary, perform, **options)

    body: dict[str, Any] = {"body": dict[str, Any]}
    told: dict[str, Any] = {**body, "gives": {200: (dict[str, Any], Stream)}, "long": True}
    return [
        operation(
            "POST", "/v1/chat/completions", "Chat with an agent or a model", create_chat_completion, **told
        ),
        operation("POST", "/v1/responses", "Ask an agent or a model for a response", create_response, **told),
        operation(
            "GET",
            "/v1/responses/{response_id}",
            "A response that was given",
            retrieve_response,
            scope=Scope.READ,
        ),
        operation(
            "POST",
            "/v1/responses/{response_id}/cancel",
            "Cancel a response",
            cancel_response,
            scope=Scope.SIGNAL,
        ),
        operation(
            "DELETE",
            "/v1/responses/{response_id}",
            "Remove a response for good",
            delete_response,
            scope=Scope.ADMIN,
        ),
        operation("POST", "/v1/embeddings", "The vectors of texts", create_embedding, **body),
        operation(
            "GET", "/v1/models", "The agents and models, as models", list_openai_models, scope=Scope.READ
        ),
        operation("GET", "/v1/models/{model}", "One of them", read_openai_model, scope=Scope.READ),
    ]
