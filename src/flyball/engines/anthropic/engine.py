"""Anthropic's models, from Anthropic."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from flyball.engines.anthropic.caching import Cache
from flyball.engines.anthropic.codec import MessagesCodec
from flyball.engines.anthropic.thinking import takes_long
from flyball.engines.wire.addresses import checked
from flyball.engines.wire.aio import AioTransport, Timeouts
from flyball.engines.wire.engine import HTTPEngine, Identity
from flyball.engines.wire.transport import Transport
from flyball.inference.engine import Engine
from flyball.inference.model_string import ModelRef
from flyball.inference.profile import Profile, profile_for
from flyball.inference.registry import require_key
from flyball.inference.request import ModelInfo, Request, Result
from flyball.inference.stream import collect

PROVIDER = "anthropic"
ADDRESS = "https://api.anthropic.com"
_KEY, _TOKEN = "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"
_TIMEOUTS = Timeouts()


class MessagesEngine(HTTPEngine):
    """Answers by the Messages API. One that may take long is streamed, also to who wants it whole.

    A server that says nothing for minutes is given up by what stands between, and by our own time-out.
    """

    async def infer(self, request: Request) -> Result:
        """See `Engine.infer`."""
        if takes_long(request.settings, self._info.name):
            return await collect(self.stream(request))
        return await super().infer(request)


class AnthropicEngine(MessagesEngine):
    """Answers from Anthropic, or from a server that speaks its protocol.

        AnthropicEngine("claude-opus-5-5")
        AnthropicEngine("claude-sonnet-5-5", cache=True)
        AnthropicEngine("claude-haiku-4-5", betas=["interleaved-thinking-2025-05-14"])

    It keeps the promises of `HTTPEngine`; its connections are its own, and end with the event loop or by
    `aclose`.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        betas: Sequence[str] = (),
        cache: Cache = False,
        profile: Profile | None = None,
        timeouts: Timeouts = _TIMEOUTS,
        transport: Transport | None = None,
    ) -> None:
        """Make one; nothing is opened yet.

        Args:
            model: its name.
            api_key: the key; without it, ANTHROPIC_API_KEY, or the token in ANTHROPIC_AUTH_TOKEN.
            base_url: where the server is, without `/v1/messages`; without it, ANTHROPIC_BASE_URL.
            headers: more headers to send with every call.
            betas: features to switch on that are not for everybody yet.
            cache: whether what is sent is kept for the next request, for five minutes or an hour (`"1h"`).
            profile: what the model can do, where what is known of it is not right.
            timeouts: how long the server may take.
            transport: how it is reached; without it, over HTTP.

        Raises:
            ConfigurationFailure: there is no key, or the address is none.
        """
        known = profile or profile_for(ModelRef(PROVIDER, model))
        told = base_url or os.environ.get("ANTHROPIC_BASE_URL", "").strip() or ADDRESS
        address = checked(told, PROVIDER)
        super().__init__(
            MessagesCodec(f"{address}/v1/messages", model, betas=betas, cache=cache),
            transport or AioTransport(timeouts=timeouts, server=PROVIDER),
            ModelInfo(model, known.context_window, PROVIDER),
            profile=known,
            identity=Identity({**_proof(api_key), **(headers or {})}),
        )


def engine_for(ref: ModelRef) -> Engine:
    """The engine for a model string."""
    return AnthropicEngine(ref.name, base_url=ref.base_url)


def _proof(key: str | None) -> Mapping[str, str]:
    key = key or os.environ.get(_KEY, "").strip()
    if key:
        return {"x-api-key": key}
    return {"Authorization": f"Bearer {require_key(PROVIDER, _KEY, _TOKEN)}"}
