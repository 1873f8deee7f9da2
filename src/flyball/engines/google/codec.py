"""The codec of `generateContent`."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from flyball.engines.google.decode import GoogleReader, generated
from flyball.engines.google.encode import Asking, generate_body
from flyball.engines.wire.codec import StreamReader
from flyball.engines.wire.transport import Call
from flyball.inference.request import Request, Result

HEADERS = {"Content-Type": "application/json"}


class GoogleCodec:
    """Speaks `generateContent`, and its stream, for one model."""

    def __init__(self, url: str, model: str, provider: str, asking: Asking) -> None:
        self._url = url
        self._model = model
        self._provider = provider
        self._asking = asking
        self._encode = msgspec.json.Encoder().encode

    def call(self, request: Request, *, stream: bool) -> Call:
        """See `Codec.call`."""
        method = ":streamGenerateContent?alt=sse" if stream else ":generateContent"
        return Call(self._url + method, HEADERS, self._encode(generate_body(request, self._asking)))

    def result(self, request: Request, body: bytes, headers: Mapping[str, str]) -> Result:
        """See `Codec.result`."""
        return generated(request, body, headers, self._provider, self._model)

    def reader(self, request: Request, headers: Mapping[str, str]) -> StreamReader:
        """See `Codec.reader`."""
        return GoogleReader(request, headers, self._provider, self._model)
