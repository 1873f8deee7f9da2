"""Gemini's models: from the Gemini API, and on Vertex AI."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping

from flyball.core.errors import ConfigurationFailure, UserError
from flyball.engines.google.codec import GoogleCodec
from flyball.engines.google.encode import Asking
from flyball.engines.google.generations import generation_of
from flyball.engines.google.places import gemini_url, vertex_url
from flyball.engines.wire.addresses import checked
from flyball.engines.wire.aio import AioTransport, Timeouts
from flyball.engines.wire.engine import Credentials, HTTPEngine, Identity
from flyball.engines.wire.google_auth import GoogleCredentials
from flyball.engines.wire.transport import Transport
from flyball.engines.wire.two_steps import TwoStepEngine
from flyball.inference.engine import Engine
from flyball.inference.model_string import ModelRef
from flyball.inference.profile import Profile, profile_for
from flyball.inference.registry import require_key
from flyball.inference.request import ModelInfo, Request, Result
from flyball.inference.stream import StreamEvent, close_stream
from flyball.inference.wrapper import WrapperEngine

KEY_VARIABLES = ("GOOGLE_API_KEY", "GEMINI_API_KEY")
PROJECT_VARIABLE = "GOOGLE_CLOUD_PROJECT"
LOCATION_VARIABLE = "GOOGLE_CLOUD_LOCATION"
_ANYWHERE = "global"
_TIMEOUTS = Timeouts()


class GoogleEngine(WrapperEngine):
    """Answers from Gemini.

        GoogleEngine("gemini-3.8-flash")
        GoogleEngine("gemini-4-argon", vertex=True, project="my-project", location="eu")
        GoogleEngine("gemini-2.5-flash", safety={"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"})

    It keeps the promises of `HTTPEngine`; its connections are its own, and end with the event loop or by
    `aclose`.
    Generations before 3 take tools and a schema in two steps: see `TwoStepEngine`.
    """

    def __init__(
        self,
        model: str,
        *,
        vertex: bool = False,
        api_key: str | None = None,
        credentials: Credentials | None = None,
        project: str | None = None,
        location: str | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeouts: Timeouts = _TIMEOUTS,
        transport: Transport | None = None,
        profile: Profile | None = None,
        safety: Mapping[str, str] | None = None,
    ) -> None:
        """Make one; nothing is opened yet.

        Args:
            model: its name; a whole one (`tunedModels/…`, `projects/…/endpoints/…`) is taken as it is.
            vertex: whether it is asked on Vertex AI.
            api_key: the key; without it, that of the environment. On Vertex AI a key is used only if it is
                given here, in place of credentials and project (what Google calls express mode).
            credentials: what gives the headers that prove who asks; without it, and on Vertex AI, this
                machine's default ones.
            project: on Vertex AI, whose model it is; without it, the environment's, or the credentials'.
            location: on Vertex AI, where it is; without it, the environment's, or `global`.
            base_url: another address, up to and without the version (`/v1beta`).
            headers: more headers to send with every call.
            timeouts: how long the server may take.
            transport: how it is reached; without it, over HTTP.
            profile: what the model can do, where what is known of it is not right.
            safety: thresholds by category, as Google names them (`HARM_CATEGORY_…`: `BLOCK_…`).

        Raises:
            ConfigurationFailure: there is no key, or the address is none.
            UserError: there is no model, or a key and credentials at once.
        """
        if not model:
            raise UserError("a Gemini model has a name, such as 'gemini-3.8-flash'")
        if api_key is not None and credentials is not None:
            raise UserError("a key and credentials prove the same: give one of them")
        self._provider = "vertex" if vertex else "google"
        self._model = model
        self._base_url = None if base_url is None else checked(base_url, self._provider)
        self._location = location or os.environ.get(LOCATION_VARIABLE, "").strip() or _ANYWHERE
        self._project = project or os.environ.get(PROJECT_VARIABLE, "").strip() or None
        sent = dict(headers or {})
        if credentials is None and (api_key is not None or not vertex):
            sent["x-goog-api-key"] = api_key or require_key(self._provider, *KEY_VARIABLES)
        elif credentials is None:
            credentials = GoogleCredentials(provider=self._provider)
        self._keyed = credentials is None
        self._identity = Identity(sent, credentials)
        self._transport = transport or AioTransport(timeouts=timeouts, server=self._provider)
        self._known = profile or profile_for(ModelRef(self._provider, model.rpartition("/")[2]))
        self._asking = Asking(generation_of(model), vertex, dict(safety or {}))
        super().__init__(self._made())

    @property
    def profile(self) -> Profile:
        """What the model can do."""
        return self._known

    async def infer(self, request: Request) -> Result:
        """See `Engine.infer`."""
        await self._find_project()
        return await self.engine.infer(request)

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """See `Engine.stream`."""
        await self._find_project()
        pieces = self.engine.stream(request)
        try:
            async for piece in pieces:
                yield piece
        finally:
            await close_stream(pieces)

    async def _find_project(self) -> None:
        """On Vertex AI, whose model it is: the credentials may say so, where nobody else does."""
        if self._provider != "vertex" or self._project is not None or self._keyed:
            return
        if self._model.startswith("projects/"):
            return
        found = self._identity.credentials
        self._project = await found.project() if isinstance(found, GoogleCredentials) else None
        if self._project is None:
            raise ConfigurationFailure(
                f"Vertex AI wants to know the project: set the environment variable {PROJECT_VARIABLE}, "
                "or pass project=",
                provider=self._provider,
                variables=[PROJECT_VARIABLE],
            )
        self.engine = self._made()

    def _made(self) -> Engine:
        if self._provider == "vertex":
            project = None if self._keyed else self._project
            url = vertex_url(self._model, project, self._location, self._base_url)
        else:
            url = gemini_url(self._model, self._base_url)
        made = HTTPEngine(
            GoogleCodec(url, self._model, self._provider, self._asking),
            self._transport,
            ModelInfo(self._model, self._known.context_window, self._provider),
            profile=self._known,
            identity=self._identity,
        )
        return made if self._asking.generation.tools_with_schema else TwoStepEngine(made)


def engine_for(ref: ModelRef) -> GoogleEngine:
    """The engine for a model string of either provider."""
    return GoogleEngine(ref.name, vertex=ref.provider == "vertex", base_url=ref.base_url)
