"""The Messages API as Vertex AI has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

import msgspec

from flyball.engines.anthropic.caching import Cache
from flyball.engines.anthropic.codec import HEADERS, VERSION, betas_header
from flyball.engines.anthropic.decode import messages_result
from flyball.engines.anthropic.encode import SAMPLING, messages_body
from flyball.engines.anthropic.streaming import MessagesReader
from flyball.engines.wire.codec import StreamReader
from flyball.engines.wire.transport import Call
from flyball.inference.request import Request, Result

PROVIDER = "vertex-anthropic"
SAMPLED = "vertex-2023-10-16"
"""The version before the current one, for what only that takes: a temperature."""


class VertexCodec:
    """Speaks the Messages API for one model of a project, in a region."""

    def __init__(
        self,
        address: str,
        model: str,
        *,
        project: str,
        region: str,
        betas: Sequence[str] = (),
        cache: Cache = False,
    ) -> None:
        place = f"projects/{quote(project, safe='')}/locations/{quote(region, safe='')}"
        self._url = f"{address}/{place}/publishers/anthropic/models/{quote(model, safe='@')}"
        self._model = model
        self._cache: Cache = cache
        self._headers = {**HEADERS, **betas_header(betas)}
        self._encode = msgspec.json.Encoder().encode

    def call(self, request: Request, *, stream: bool) -> Call:
        """See `Codec.call`."""
        body = messages_body(request, self._model, stream=stream, cache=self._cache)
        body.pop("model", None)
        body.setdefault("anthropic_version", VERSION if SAMPLING.isdisjoint(body) else SAMPLED)
        what = "streamRawPredict" if stream else "rawPredict"
        return Call(f"{self._url}:{what}", self._headers, self._encode(body))

    def result(self, request: Request, body: bytes, headers: Mapping[str, str]) -> Result:
        """See `Codec.result`."""
        del request
        return messages_result(body, headers, PROVIDER, self._model)

    def reader(self, request: Request, headers: Mapping[str, str]) -> StreamReader:
        """See `Codec.reader`."""
        del request
        return MessagesReader(headers, PROVIDER, self._model)
