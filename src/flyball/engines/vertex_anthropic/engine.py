"""Anthropic's models, from Google's cloud."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping, Sequence

from flyball.core.errors import ConfigurationFailure
from flyball.engines.anthropic.caching import Cache
from flyball.engines.anthropic.engine import MessagesEngine
from flyball.engines.vertex_anthropic.codec import PROVIDER, VertexCodec
from flyball.engines.wire.addresses import checked
from flyball.engines.wire.aio import AioTransport, Timeouts
from flyball.engines.wire.engine import Credentials, Identity
from flyball.engines.wire.google_auth import GoogleCredentials
from flyball.engines.wire.transport import Transport
from flyball.inference.engine import Engine
from flyball.inference.model_string import ModelRef
from flyball.inference.permission import check_model_requests_allowed
from flyball.inference.profile import Profile, profile_for
from flyball.inference.request import ModelInfo, Request, Result
from flyball.inference.stream import StreamEvent, close_stream

PROJECT = ("ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_CLOUD_PROJECT")
REGION = ("CLOUD_ML_REGION", "GOOGLE_CLOUD_LOCATION")
"""Where a project and a region come from; the first is for Claude alone, and goes before Google's own."""

_WIDE = {"global": "aiplatform", "us": "aiplatform.us.rep", "eu": "aiplatform.eu.rep"}
"""The hosts of what is more than one region."""
_TIMEOUTS = Timeouts()


class VertexAnthropicEngine(MessagesEngine):
    """Answers from Claude on Vertex AI.

        VertexAnthropicEngine("claude-opus-5-5", project="my-project", region="global")

    It keeps the promises of `HTTPEngine`; its connections are its own, and end with the event loop or by
    `aclose`. Where nobody names the project, it is that of the credentials, looked for at the first call.
    """

    def __init__(
        self,
        model: str,
        *,
        project: str | None = None,
        region: str | None = None,
        credentials: Credentials | None = None,
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
            model: its name, as Vertex AI has it (`claude-sonnet-4-5@20250929`).
            project: the project; without it, GOOGLE_CLOUD_PROJECT, or that of the credentials.
            region: where it runs, or `global`; without it, CLOUD_ML_REGION or GOOGLE_CLOUD_LOCATION.
            credentials: what gives the headers that prove who asks; without it, Google's default ones.
            base_url: where the server is, up to `/v1`; without it, ANTHROPIC_VERTEX_BASE_URL, or Google's.
            headers: more headers to send with every call.
            betas: features to switch on that are not for everybody yet.
            cache: whether what is sent is kept for the next request, for five minutes or an hour (`"1h"`).
            profile: what the model can do, where what is known of it is not right.
            timeouts: how long the server may take.
            transport: how it is reached; without it, over HTTP.

        Raises:
            ConfigurationFailure: nobody says in which region, or in which project and nobody can be asked.
        """
        known = profile or profile_for(ModelRef(PROVIDER, model))
        self._model = model
        self._region = region or _from_environment(REGION)
        if not self._region:
            raise ConfigurationFailure(
                f"nobody said in which region {model!r} runs: set the environment variable "
                f"{' or '.join(REGION)}, or give region= ('global' is any)",
                provider=PROVIDER,
                variables=list(REGION),
            )
        told = base_url or _from_environment(("ANTHROPIC_VERTEX_BASE_URL",)) or _host(self._region)
        self._address = checked(told, PROVIDER)
        self._betas = tuple(betas)
        self._cache: Cache = cache
        self._proofs = credentials or GoogleCredentials(provider=PROVIDER)
        self._project = project or _from_environment(PROJECT)
        if not self._project and not isinstance(self._proofs, GoogleCredentials):
            raise _no_project()
        super().__init__(
            self._made(self._project),
            transport or AioTransport(timeouts=timeouts, server=PROVIDER),
            ModelInfo(model, known.context_window, PROVIDER),
            profile=known,
            identity=Identity(dict(headers or {}), self._proofs),
        )

    async def infer(self, request: Request) -> Result:
        """See `Engine.infer`."""
        if not self._project:
            await self._find_project()
        return await super().infer(request)

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """See `Engine.stream`."""
        if not self._project:
            await self._find_project()
        pieces = super().stream(request)
        try:
            async for piece in pieces:
                yield piece
        finally:
            await close_stream(pieces)

    async def _find_project(self) -> None:
        check_model_requests_allowed(PROVIDER)
        assert isinstance(self._proofs, GoogleCredentials)
        found = await self._proofs.project()
        if not found:
            raise _no_project()
        self._project = found
        self._codec = self._made(found)

    def _made(self, project: str) -> VertexCodec:
        return VertexCodec(
            self._address,
            self._model,
            project=project,
            region=self._region,
            betas=self._betas,
            cache=self._cache,
        )


def engine_for(ref: ModelRef) -> Engine:
    """The engine for a model string."""
    return VertexAnthropicEngine(ref.name, base_url=ref.base_url)


def _from_environment(names: Sequence[str]) -> str:
    return next((told for name in names if (told := os.environ.get(name, "").strip())), "")


def _host(region: str) -> str:
    return f"https://{_WIDE.get(region, f'{region}-aiplatform')}.googleapis.com/v1"


def _no_project() -> ConfigurationFailure:
    return ConfigurationFailure(
        "nobody said which project pays, and the credentials do not tell: set the environment variable "
        f"{' or '.join(PROJECT)}, or give project=",
        provider=PROVIDER,
        variables=list(PROJECT),
    )
