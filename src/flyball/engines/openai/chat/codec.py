"""The codec of Chat Completions."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from flyball.engines.openai.chat.decode import ChatReader, chat_result
from flyball.engines.openai.chat.encode import chat_body
from flyball.engines.openai.dialect import Dialect, Schemas
from flyball.engines.openai.parts import Functions
from flyball.engines.openai.written import read_written, reading_written
from flyball.engines.wire.codec import StreamReader
from flyball.engines.wire.transport import Call
from flyball.inference.request import Request, Result

HEADERS = {"Content-Type": "application/json"}


class ChatCodec:
    """Speaks Chat Completions in a server's dialect, for one model."""

    def __init__(self, url: str, model: str, dialect: Dialect, provider: str) -> None:
        self._url = url
        self._model = model
        self._dialect = dialect
        self._provider = provider
        self._functions = Functions(strict=dialect.schemas is Schemas.STRICT)
        self._encode = msgspec.json.Encoder().encode

    def call(self, request: Request, *, stream: bool) -> Call:
        """See `Codec.call`."""
        body = chat_body(request, self._model, self._dialect, stream=stream, functions=self._functions)
        return Call(self._url, HEADERS, self._encode(body))

    def result(self, request: Request, body: bytes, headers: Mapping[str, str]) -> Result:
        """See `Codec.result`."""
        result = chat_result(body, headers, self._provider, self._model)
        return read_written(result, request) if self._dialect.written else result

    def reader(self, request: Request, headers: Mapping[str, str]) -> StreamReader:
        """See `Codec.reader`."""
        reader = ChatReader(headers, self._provider, self._model)
        return reading_written(reader, request) if self._dialect.written else reader
