"""The codec of the Responses API."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from flyball.engines.openai.chat.codec import HEADERS
from flyball.engines.openai.parts import Functions
from flyball.engines.openai.responses.decode import ResponsesReader, responses_result
from flyball.engines.openai.responses.encode import responses_body
from flyball.engines.wire.codec import StreamReader
from flyball.engines.wire.transport import Call
from flyball.inference.request import Request, Result


class ResponsesCodec:
    """Speaks the Responses API, for one model. `thinks`: it is one that reasons before it answers."""

    def __init__(self, url: str, model: str, provider: str, *, thinks: bool) -> None:
        self._url = url
        self._model = model
        self._provider = provider
        self._thinks = thinks
        self._functions = Functions(strict=True)
        self._encode = msgspec.json.Encoder().encode

    def call(self, request: Request, *, stream: bool) -> Call:
        """See `Codec.call`."""
        body = responses_body(
            request,
            self._model,
            thinks=self._thinks,
            stream=stream,
            functions=self._functions,
            provider=self._provider,
        )
        return Call(self._url, HEADERS, self._encode(body))

    def result(self, request: Request, body: bytes, headers: Mapping[str, str]) -> Result:
        """See `Codec.result`."""
        del request
        return responses_result(body, headers, self._provider, self._model)

    def reader(self, request: Request, headers: Mapping[str, str]) -> StreamReader:
        """See `Codec.reader`."""
        del request
        return ResponsesReader(headers, self._provider, self._model)
