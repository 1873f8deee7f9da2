"""The codec of the Messages API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from flyball.engines.anthropic.caching import Cache
from flyball.engines.anthropic.decode import messages_result
from flyball.engines.anthropic.encode import SAMPLING, messages_body
from flyball.engines.anthropic.streaming import MessagesReader
from flyball.engines.wire.codec import StreamReader
from flyball.engines.wire.transport import Call
from flyball.inference.request import Request, Result

HEADERS = {"Content-Type": "application/json"}
VERSION = "2026-10-21"
"""The version of the API that is spoken."""
SAMPLED = "2023-06-01"
"""The one before it, for what only that takes: a temperature."""


class MessagesCodec:
    """Speaks the Messages API for one model."""

    def __init__(
        self,
        url: str,
        model: str,
        *,
        provider: str = "anthropic",
        betas: Sequence[str] = (),
        cache: Cache = False,
    ) -> None:
        self._url = url
        self._model = model
        self._provider = provider
        self._cache: Cache = cache
        self._encode = msgspec.json.Encoder().encode
        self._betas = betas_header(betas)

    def call(self, request: Request, *, stream: bool) -> Call:
        """See `Codec.call`."""
        body = messages_body(request, self._model, stream=stream, cache=self._cache)
        version = VERSION if SAMPLING.isdisjoint(body) else SAMPLED
        headers = {**HEADERS, "anthropic-version": version, **self._betas}
        return Call(self._url, headers, self._encode(body))

    def result(self, request: Request, body: bytes, headers: Mapping[str, str]) -> Result:
        """See `Codec.result`."""
        del request
        return messages_result(body, headers, self._provider, self._model)

    def reader(self, request: Request, headers: Mapping[str, str]) -> StreamReader:
        """See `Codec.reader`."""
        del request
        return MessagesReader(headers, self._provider, self._model)


def betas_header(betas: Sequence[str]) -> dict[str, str]:
    """What switches these features on."""
    return {"anthropic-beta": ",".join(betas)} if betas else {}
