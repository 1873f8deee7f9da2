"""The routes: what a server calls for each path, free of any web framework.

    POST /v1/chat/completions             chat_completions(serving, body)
    POST /v1/responses                    responses(serving, body)
    GET  /v1/responses/{id}               retrieve_response(serving, response_id)
    POST /v1/responses/{id}/cancel        cancel_response(serving, response_id)
    DELETE /v1/responses/{id}             delete_response(serving, response_id)
    POST /v1/embeddings                   embeddings(serving, body)
    GET  /v1/models                       models(serving)
    GET  /v1/models/{name}                model(serving, name)

`body` is the request's body, parsed. Each gives a document, which is sent as JSON, or the frames of an event
stream, which are sent as `text/event-stream` as they come, and closed (`aclose`) when the client goes away:
the loop stays as it is recorded. What is refused, or fails before the first frame, raises `Refused`, with
`status`, `headers` and the `document` to send; what fails later is told in the stream.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, TypeAlias

import msgspec

from flyball.adapters.http.openai.answering import (
    Begun,
    accepted,
    answered,
    begin,
    first_piece,
    told_of,
)
from flyball.adapters.http.openai.chat_request import ChatRequest, chat_param, read_chat
from flyball.adapters.http.openai.chat_stream import ChatChunks
from flyball.adapters.http.openai.chat_writing import Envelope, write_chat
from flyball.adapters.http.openai.embeddings import read_embedding, write_embedding
from flyball.adapters.http.openai.errors import Refused, refused_by, refusing, unsupported
from flyball.adapters.http.openai.models import one_model, write_models
from flyball.adapters.http.openai.previous import begin_response, found_response
from flyball.adapters.http.openai.response_request import (
    PREFIX,
    ResponseRequest,
    read_response,
    response_param,
)
from flyball.adapters.http.openai.response_stream import ResponseEvents
from flyball.adapters.http.openai.response_writing import Frame, write_response
from flyball.adapters.http.openai.said import joined
from flyball.adapters.http.openai.serving import Serving, system_named
from flyball.adapters.http.openai.telling import How, Telling
from flyball.core.clock import Clock
from flyball.core.errors import FlyballError, IllegalTransition, NotPermitted
from flyball.inference.embedder import embedded
from flyball.inference.stream import StreamEvent
from flyball.orchestrate.clock import SYSTEM_CLOCK
from flyball.orchestrate.contracts import SystemResponse

Document: TypeAlias = dict[str, Any]
Frames: TypeAlias = AsyncGenerator[bytes]

__all__ = [
    "Document",
    "Frames",
    "Refused",
    "Serving",
    "cancel_response",
    "chat_completions",
    "delete_response",
    "embeddings",
    "model",
    "models",
    "responses",
    "retrieve_response",
]


async def chat_completions(
    serving: Serving, body: object, *, clock: Clock = SYSTEM_CLOCK
) -> Document | Frames:
    """Answer a chat: a ChatCompletion, or the frames of its chunks where the body says `stream`.

    Raises:
        Refused: it cannot be served, or failed.
    """
    asked = read_chat(body)
    begun = await begin(serving, system_named(serving, asked.model), asked.request, chat_param)
    envelope = Envelope(begun.loop_id, asked.model, int(clock.now()), begun.backend)
    if asked.stream:
        first = await first_piece(begun, asked.format, chat_param)
        return _chat_frames(asked, begun, envelope, first)
    told, response = await answered(begun, asked.format, chat_param)
    return write_chat(envelope, told, response, asked.metadata)


async def _chat_frames(
    asked: ChatRequest, begun: Begun, envelope: Envelope, first: StreamEvent | SystemResponse
) -> Frames:
    telling = Telling(begun.how(live=asked.live))
    chunks = ChatChunks(envelope, include_usage=asked.include_usage)
    try:
        for chunk in chunks.begin():
            yield _frame(chunk)
        async for piece in _all(first, begun):
            if isinstance(piece, SystemResponse):
                response = accepted(piece, asked.format, chat_param)
                written = [*chunks.write(telling.end(response)), *chunks.end(response)]
            else:
                written = chunks.write(telling.feed(piece))
            for chunk in written:
                yield _frame(chunk)
        yield b"data: [DONE]\n\n"
    except Exception as error:
        yield _frame(told_of(error, chat_param).document)
    finally:
        await begun.pieces.aclose()


async def responses(serving: Serving, body: object, *, clock: Clock = SYSTEM_CLOCK) -> Document | Frames:
    """Answer a request for a response: a Response, or the frames of its events where the body says `stream`.

    Raises:
        Refused: it cannot be served, or failed.
    """
    asked = read_response(body)
    begun = await begin_response(serving, system_named(serving, asked.model), asked)
    frame = Frame(begun.loop_id, asked.model, int(clock.now()), begun.part, asked.echo)
    if asked.stream:
        first = await first_piece(begun, asked.format, response_param)
        return _response_frames(asked, begun, frame, first)
    told, response = await answered(begun, asked.format, response_param)
    return write_response(frame, told, response)


async def _response_frames(
    asked: ResponseRequest, begun: Begun, frame: Frame, first: StreamEvent | SystemResponse
) -> Frames:
    telling, events = Telling(begun.how(live=asked.live)), ResponseEvents(frame)
    response: SystemResponse | None = None
    try:
        for event in events.begin():
            yield _frame(event, named=True)
        async for piece in _all(first, begun):
            if isinstance(piece, SystemResponse):
                response = accepted(piece, asked.format, response_param)
                written = [*events.write(telling.end(response)), *events.end(response)]
            else:
                written = events.write(telling.feed(piece))
            for event in written:
                yield _frame(event, named=True)
    except Exception as error:
        for event in events.fail(told_of(error, response_param), response):
            yield _frame(event, named=True)
    finally:
        await begun.pieces.aclose()


async def retrieve_response(serving: Serving, response_id: str) -> Document:
    """A response that was given, from its loop's journal: a Response.

    Raises:
        Refused: there is none of that id.
    """
    with refusing(response_param):
        frame, response = await found_response(serving, response_id)
    if response is None:
        return frame.document("in_progress", [])
    if response.error is not None:
        refused = refused_by(response.error, response_param)
        status = "cancelled" if response.error.code.startswith("CANCELLED") else "failed"
        error = {"code": "server_error", "message": refused.message}
        return frame.document(status, [], error=None if status == "cancelled" else error)
    return write_response(frame, joined(Telling(How(frame.loop_id)).end(response)), response)


async def cancel_response(serving: Serving, response_id: str) -> Document:
    """Cancel a response that is under way, or waits for outputs; then it is told as it is.

    Raises:
        Refused: there is none of that id, it is over, or not for who asks to cancel.
    """
    frame, _ = await found_response(serving, response_id)
    try:
        await serving.cancel(frame.loop_id)
    except NotPermitted as error:
        raise refused_by(error, response_param) from error
    except FlyballError as error:
        raise Refused(error.message, param="response_id", code="response_not_cancellable") from error
    return frame.document("cancelled", [])


async def delete_response(serving: Serving, response_id: str) -> Document:
    """Remove a response that is over from the journal, for good.

    Raises:
        Refused: there is none of that id, it is not over, or the journal keeps all that it has.
    """
    frame, _ = await found_response(serving, response_id)
    try:
        deleted = await serving.delete(frame.loop_id)
    except IllegalTransition as error:
        raise Refused(error.message, status=409, param="response_id") from error
    if not deleted:
        raise unsupported("response_id", "the journal of this server keeps all that it has")
    return {"id": f"{PREFIX}{frame.loop_id}", "object": "response", "deleted": True}


async def embeddings(serving: Serving, body: object) -> Document:
    """The vectors of texts: a CreateEmbeddingResponse.

    Raises:
        Refused: it cannot be served, or failed.
    """
    asked = read_embedding(body)
    embedder = serving.embedder(asked.model)
    if embedder is None:
        system_named(serving, asked.model)
        raise unsupported("model", f"{asked.model!r} makes no vectors: its engine has no embeddings")
    with refusing(lambda field: field):
        vectors = await embedded(embedder, asked.texts)
    return write_embedding(asked, vectors)


async def models(serving: Serving) -> Document:
    """The agents, as models."""
    return write_models(serving.agents())


async def model(serving: Serving, name: str) -> Document:
    """One agent, as a model.

    Raises:
        Refused: there is none of that name.
    """
    return one_model(name, serving.agents())


async def _all(
    first: StreamEvent | SystemResponse, begun: Begun
) -> AsyncGenerator[StreamEvent | SystemResponse]:
    yield first
    async for piece in begun.pieces:
        yield piece


def _frame(data: Document, *, named: bool = False) -> bytes:
    """One event of a stream; `named` after its type."""
    event = f"event: {data['type']}\n".encode() if named else b""
    return b"%bdata: %b\n\n" % (event, msgspec.json.encode(data))
