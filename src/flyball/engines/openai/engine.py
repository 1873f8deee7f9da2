"""OpenAI's models, and any server that speaks OpenAI's protocol."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import Any, Literal, cast

import msgspec
from msgspec.structs import replace

from flyball.core.errors import ModelUnavailable, UnexpectedModelBehavior, UserError
from flyball.engines.openai.chat.codec import HEADERS, ChatCodec
from flyball.engines.openai.dialect import OPENAI, Dialect
from flyball.engines.openai.responses.codec import ResponsesCodec
from flyball.engines.openai.servers import Server, address_of, key_of, server_named
from flyball.engines.wire.aio import AioTransport, Timeouts
from flyball.engines.wire.codec import Codec
from flyball.engines.wire.engine import Credentials, HTTPEngine, Identity
from flyball.engines.wire.secrets import Discreet
from flyball.engines.wire.transport import Call, Transport
from flyball.engines.wire.two_steps import TwoStepEngine
from flyball.inference.engine import Engine
from flyball.inference.model_string import ModelRef
from flyball.inference.profile import Profile, profile_for
from flyball.inference.request import ModelInfo, Request, Result
from flyball.inference.stream import StreamEvent, close_stream
from flyball.inference.wrapper import WrapperEngine

API = Literal["chat", "responses"]
_TIMEOUTS = Timeouts()


class OpenAIEngine(WrapperEngine):
    """Answers from OpenAI, or from a server that speaks its protocol.

        OpenAIEngine("gpt-5")
        OpenAIEngine("qwen3", server="vllm", base_url="http://gpu1:8000/v1")
        OpenAIEngine("", server="llama-cpp")        # whatever model is loaded there

    It keeps the promises of `HTTPEngine`. Its connections are its own; they end with the event loop, or by
    `aclose`.
    """

    def __init__(
        self,
        model: str = "",
        *,
        server: str = "openai",
        api: API | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        credentials: Credentials | None = None,
        headers: Mapping[str, str] | None = None,
        dialect: Dialect | None = None,
        profile: Profile | None = None,
        timeouts: Timeouts = _TIMEOUTS,
        transport: Transport | None = None,
    ) -> None:
        """Make one; nothing is opened yet.

        Args:
            model: its name; where it is empty, the first model that the server has.
            server: what it is (see `flyball.engines.openai.servers`), which decides where it is, its dialect
                and its key.
            api: `responses` or `chat`; without it, Responses for OpenAI and Azure and Chat for all others.
            base_url: where it is, up to and without `/chat/completions`.
            api_key: the key; without it, the server's own environment variable.
            credentials: what gives the headers that prove who asks, in place of a key.
            headers: more headers to send with every call.
            dialect: what is different about it, where the server's own dialect is not right.
            profile: what the model can do, where what is known of it is not right.
            timeouts: how long the server may take.
            transport: how it is reached; without it, over HTTP.

        Raises:
            ConfigurationFailure: nobody says where the server is, or its key is missing.
        """
        kind = server_named(server)
        spoken = dialect or kind.dialect
        self._address = address_of(server, kind, base_url)
        self._provider = server
        self._model = model
        self._spoken = spoken
        self._api: API = api or ("responses" if server in ("openai", "azure") else "chat")
        if self._api not in ("chat", "responses"):
            raise UserError(f"api is 'chat' or 'responses', not {self._api!r}")
        self._identity = _identity(server, kind, api_key, credentials, headers)
        self._transport = transport or AioTransport(timeouts=timeouts, server=server)
        self._profile = profile or _profile(server, model, spoken)
        self._info = ModelInfo(model or "default", self._profile.context_window, server)
        super().__init__(self._made(model))

    @property
    def profile(self) -> Profile:
        """What the model can do."""
        return self._profile

    def model_info(self) -> ModelInfo:
        """Which model answers; of one that was left out, only that it is the server's own choice."""
        return self._info

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text, by the server's `/embeddings`.

        Raises:
            FlyballError: as a model call would.
        """
        if not texts:
            return []
        if not self._model:
            await self._find_model()
        body = msgspec.json.encode({"model": self._model, "input": list(texts)})
        answer = await self._asked(self._url("/embeddings"), body)
        try:
            rows = sorted(cast("list[Any]", answer["data"]), key=lambda row: row["index"])
            return [row["embedding"] for row in rows]
        except (KeyError, TypeError) as error:
            raise UnexpectedModelBehavior(f"{self._provider} gave no vectors: no {error}") from error

    async def models(self) -> list[str]:
        """The models that the server has.

        Raises:
            FlyballError: it cannot be reached, or does not say.
        """
        answer = await self._asked(self._url("/models"), None)
        try:
            return [row["id"] for row in answer["data"]]
        except (KeyError, TypeError) as error:
            raise UnexpectedModelBehavior(f"{self._provider} lists no models: no {error}") from error

    async def infer(self, request: Request) -> Result:
        """See `Engine.infer`."""
        if not self._model:
            await self._find_model()
        return await self.engine.infer(request)

    def stream(self, request: Request) -> AsyncIterator[StreamEvent]:
        """See `Engine.stream`."""
        return self.engine.stream(request) if self._model else self._found(request)

    async def _found(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        await self._find_model()
        pieces = self.engine.stream(request)
        try:
            async for piece in pieces:
                yield piece
        finally:
            await close_stream(pieces)

    async def _find_model(self) -> None:
        found = await self.models()
        if not found:
            raise ModelUnavailable(
                f"{self._provider} at {self._address} has no model", provider=self._provider
            )
        self._model = found[0]
        self.engine = self._made(self._model)

    async def _asked(self, url: str, body: bytes | None) -> Any:
        reply = await self._plain.ask(Call(url, HEADERS, body, "GET" if body is None else "POST"))
        with Discreet(self._identity.headers):
            return self._read(reply)

    def _read(self, reply: bytes) -> Any:
        try:
            return msgspec.json.decode(reply)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise UnexpectedModelBehavior(
                f"{self._provider} answered with no JSON: {error}",
                body=reply[:500].decode("utf-8", "replace"),
            ) from error

    def _made(self, model: str) -> Engine:
        codec: Codec
        if self._api == "responses":
            codec = ResponsesCodec(
                self._url("/responses"), model, self._provider, thinks=self._profile.thinking
            )
        else:
            codec = ChatCodec(self._url("/chat/completions"), model, self._spoken, self._provider)
        self._plain = HTTPEngine(
            codec,
            self._transport,
            replace(self._info, name=model) if model else self._info,
            profile=self._profile,
            identity=self._identity,
        )
        return self._plain if self._spoken.tools_with_schema else TwoStepEngine(self._plain)

    def _url(self, path: str) -> str:
        if self._provider != "azure":
            return self._address + path
        # Azure's own address has deployments and versions; its newer one is OpenAI's.
        version = os.environ.get("OPENAI_API_VERSION", "").strip()
        if not version or path == "/responses":
            return f"{self._address}/openai/v1{path}"
        return f"{self._address}/openai/deployments/{self._model}{path}?api-version={version}"


def engine_for(ref: ModelRef) -> Engine:
    """The engine for a model string of any of these servers."""
    return OpenAIEngine(ref.name, server=ref.provider, base_url=ref.base_url)


def _profile(server: str, model: str, dialect: Dialect) -> Profile:
    if server in ("openai", "azure"):
        return profile_for(ModelRef("openai", model))
    known = dialect.profile
    if server == "openrouter":
        return replace(known, parallel_tool_calls=True, images=True)
    return known


def _identity(
    name: str,
    server: Server,
    key: str | None,
    credentials: Credentials | None,
    headers: Mapping[str, str] | None,
) -> Identity:
    sent = dict(headers or {})
    if credentials is None and (found := key_of(name, server, key)) is not None:
        if name == "azure":
            sent["api-key"] = found
        else:
            sent["Authorization"] = f"Bearer {found}"
    if server.dialect is OPENAI:
        for header, variable in (
            ("OpenAI-Organization", "OPENAI_ORG_ID"),
            ("OpenAI-Project", "OPENAI_PROJECT_ID"),
        ):
            if value := os.environ.get(variable, "").strip():
                sent[header] = value
    return Identity(sent, credentials)
