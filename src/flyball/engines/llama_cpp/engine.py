"""The embedded engine: requests answered by a model on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from flyball.constraint.protocol import HermesProtocol, ToolProtocol
from flyball.core.messages import Message
from flyball.core.usage import Usage
from flyball.engines.llama_cpp.codec import AnswerReader, call_body, fingerprint, usage_of
from flyball.engines.llama_cpp.faults import check_length
from flyball.engines.llama_cpp.host import Host
from flyball.engines.llama_cpp.locating import locate, named
from flyball.engines.llama_cpp.options import LONGEST, Located, Options
from flyball.engines.llama_cpp.process import Ready
from flyball.engines.llama_cpp.retelling import retold
from flyball.inference.model_string import ModelRef
from flyball.inference.permission import check_model_requests_allowed
from flyball.inference.profile import Profile, profile_for
from flyball.inference.rendered import Prompt
from flyball.inference.request import ModelInfo, Request, Result
from flyball.inference.stream import StreamEvent, close_stream, collect
from flyball.models import Model

PROVIDER = "local"


class LlamaCppEngine:
    """Answers from a model in a child process of its own.

    The child is started by the first call, which waits for the model to be fetched and loaded; after that
    calls may overlap, `parallel` of them at once. Cancelling one frees its caller at once and its slot at the
    next batch. A child that ends is a retryable failure of the calls it was at. The engine may be used from
    one event loop after another. `aclose` ends the child; a later call starts it again.
    """

    def __init__(
        self,
        model: str | Model | Path = "",
        *,
        context: int | None = None,
        parallel: int | None = None,
        threads: int | None = None,
        start_seconds: float = 180.0,
        protocol: ToolProtocol | None = None,
        hosts: tuple[Host, Host] | None = None,
    ) -> None:
        """Make one; nothing is loaded yet.

        Args:
            model: a name of the catalogue, a path, `hf:<owner>/<repo>/<file>.gguf`; "" is the default model.
            context: tokens that each call may use for prompt and answer; what the model was trained for, at
                most 8192, where not given.
            parallel: calls at once.
            threads: where not given, all cores for prompts, and all but one for answers.
            start_seconds: how long loading may take.
            protocol: how tools and schemas are put to the model.
            hosts: children (for answers, for vectors) that are shared; `aclose` leaves them alone.
        """
        self._model = model
        self._options = Options(context, parallel, threads, start_seconds=start_seconds)
        self._protocol = HermesProtocol() if protocol is None else protocol
        self._shared = hosts is not None
        self._host, self._embedder = hosts or host_pair(partial(locate, model), self._options)
        self._known: ModelInfo | None = None

    async def infer(self, request: Request) -> Result:
        """The whole answer.

        Raises:
            ContextExceeded: the prompt is longer than the context; details have the numbers.
            EngineError: the child ended, and it may be tried again.
            FlyballError: the model cannot be had or loaded, or does not take the request.
        """
        return await collect(self.stream(request))

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """The answer as it is made; it raises what `infer` raises."""
        check_model_requests_allowed(PROVIDER)
        # Before anything is loaded: what cannot be put to the model fails at once.
        asked, rendered = self._protocol.question(request), self._protocol.render(request)
        known = self.model_info()
        check_length(rendered.messages, known.name, known.context_window)
        ready = await self._host.ready()
        choice: str | None = None
        used: Usage | None = None
        bodies: list[dict[str, Any]] = []
        if asked is not None:
            bodies.append(call_body(Request(request.messages), asked))
            choice, used = await self._answered(bodies[0], ready.context)
            rendered = self._protocol.render(request, choice)
        bodies.append(call_body(request, rendered))
        reader = AnswerReader(
            request,
            self._protocol,
            model=ready.located.name,
            context=ready.context,
            sent=fingerprint(bodies),
            choice=choice,
            before=used,
        )
        chunks = self._host.ask("chat", bodies[-1])
        try:
            async for chunk in chunks:
                for event in reader.feed(chunk):
                    yield event
        finally:
            await close_stream(chunks)
        for event in reader.close():
            yield event

    async def _answered(self, body: dict[str, Any], context: int) -> tuple[str, Usage | None]:
        """The answer to a short question, and what it used."""
        pieces: list[str] = []
        used: Usage | None = None
        chunks = self._host.ask("chat", body)
        try:
            async for chunk in chunks:
                pieces.append(chunk.get("text") or "")
                if "usage" in chunk:
                    used = usage_of(chunk["usage"], chunk.get("timings", {}), context)
        finally:
            await close_stream(chunks)
        return "".join(pieces), used

    def rendered(self, request: Request, answer: Message | None) -> tuple[Prompt, ...]:
        """See `flyball.inference.rendered.Renders`."""
        return retold(self._protocol, request, answer)

    def model_info(self) -> ModelInfo:
        """The model's name, and how many tokens a call may use."""
        running = self._host.running
        if running is not None:
            return ModelInfo(running.located.name, running.context, PROVIDER)
        if self._known is None:
            name, trained = named(self._model)
            self._known = ModelInfo(name, min(self._options.context or LONGEST, trained or LONGEST), PROVIDER)
        return self._known

    @property
    def profile(self) -> Profile:
        """What it can do: be held to a schema and a grammar; use tools, where its protocol can."""
        row = profile_for(ModelRef(PROVIDER))
        return replace(row, tools=self._protocol.tools, context_window=self.model_info().context_window)

    @property
    def open_calls(self) -> int:
        """How many calls wait for an answer."""
        return self._host.open_calls + self._embedder.open_calls

    async def load(self) -> Ready:
        """Have the model loaded before it is needed; it raises what a call would."""
        check_model_requests_allowed(PROVIDER)
        return await self._host.ready()

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector of length one for each text, from a second child, which the first call of this starts.

        Raises:
            ContextExceeded: a text is too long.
            FlyballError: as `infer` does.
        """
        check_model_requests_allowed(PROVIDER)
        if not texts:
            return []
        answer = await self._one(self._embedder, "embed", {"input": list(texts)})
        return answer["data"]

    async def tokenize(self, text: str) -> list[int]:
        """The tokens of a text, without any that a template would add."""
        return (await self._http("/tokenize", {"content": text}))["tokens"]

    async def prompt_of(self, request: Request) -> str:
        """The text that the model would be given for a request, by its own chat template."""
        rendered = self._protocol.render(request)
        return (await self._http("/apply-template", {"messages": list(rendered.messages)}))["prompt"]

    async def busy_slots(self) -> int:
        """How many calls the model itself is at just now."""
        return sum(slot["is_processing"] for slot in await self._http("/slots"))

    async def aclose(self) -> None:
        """End the children. Calls that are under way fail; what is asked later starts anew."""
        if not self._shared:
            await asyncio.gather(*[asyncio.to_thread(host.close) for host in (self._host, self._embedder)])

    async def _http(self, path: str, body: dict[str, Any] | None = None) -> Any:
        check_model_requests_allowed(PROVIDER)
        return (await self._one(self._host, "http", {"path": path, "body": body}))["answer"]

    @staticmethod
    async def _one(host: Host, op: str, body: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = {}
        chunks = host.ask(op, body)
        try:
            async for chunk in chunks:
                answer = chunk
        finally:
            await close_stream(chunks)
        return answer


def host_pair(locate: Callable[[], Located], options: Options) -> tuple[Host, Host]:
    """The hosts of one model: for answers, and for vectors. Neither is started."""
    return Host(locate, options), Host(locate, replace(options, embedding=True))
