"""cached: a model that is not asked again what it has answered before.

model = cached("openai:gpt-5", "answers.db", ttl=3600)
"""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator
from math import inf

import msgspec
from msgspec.structs import replace

from flyball.core.errors import ConfigurationFailure, UnexpectedModelBehavior, UserError
from flyball.core.messages import JSON, FinishReason, Message, Role
from flyball.core.usage import Usage
from flyball.inference.cache.key import request_key
from flyball.inference.cache.sqlite import SQLiteCache
from flyball.inference.cache.store import AnswerStore, MemoryCache
from flyball.inference.cut import events_of
from flyball.inference.engine import Engine
from flyball.inference.notes import CACHED, without_notes
from flyball.inference.registry import DEFAULT, Registry, resolve_engine
from flyball.inference.request import Request, Result
from flyball.inference.stream import Assembler, Finish, StreamEvent, close_stream
from flyball.inference.wrapper import WrapperEngine

_log = logging.getLogger("flyball.models")
_WHOLE = (FinishReason.STOP, FinishReason.TOOL_CALL)
"""How an answer ends that is kept."""
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Result).decode


class CachedEngine(WrapperEngine):
    """An engine that is asked only what is not in a store. All else is the engine's own.

    An answer from the store is the one that was given, but that it counts no tokens: what it used then is in
    its message's `extra`, as `cached`. It is streamed as well, a piece a part. Requests that are equal and
    under way at once are each asked.
    """

    def __init__(
        self, engine: Engine, store: AnswerStore, *, ttl: float | None = None, owned: bool = False
    ) -> None:
        """`ttl`: for how many seconds an answer is kept. `owned`: whether closing closes the store, too."""
        super().__init__(engine)
        if not isinstance(store, AnswerStore):  # pyright: ignore[reportUnnecessaryIsInstance] - anybody's
            raise UserError(f"a cache keeps answers in a store, which has get() and put(), not in {store!r}")
        if ttl is not None and (isinstance(ttl, bool) or not 0 < ttl < inf):
            raise UserError(f"ttl={ttl!r}: an answer is kept for a number of seconds, or None for no end")
        self.store = store
        self.ttl = ttl
        self._owned = owned

    async def infer(self, request: Request) -> Result:
        """See `Engine.infer`."""
        key = request_key(request, self.engine.model_info())
        found = await self._found(key)
        if found is not None:
            return found
        result = await self.engine.infer(request)
        await self._keep(key, result)
        return result

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """See `Engine.stream`. An answer that is not in the store comes as it is made."""
        key = request_key(request, self.engine.model_info())
        found = await self._found(key)
        if found is not None:
            for event in events_of(found.message, None, found.request_id):
                yield event
            return
        joined = _Joined()
        pieces = self.engine.stream(request)
        try:
            async for piece in pieces:
                joined.feed(piece)
                if type(piece) is Finish and (result := joined.result()) is not None:
                    await self._keep(key, result)
                yield piece
        finally:
            await close_stream(pieces)

    async def aclose(self) -> None:
        """Let go of what the engine holds, and of the store, if it is this one's own."""
        close = getattr(self.store, "aclose", None) if self._owned else None
        try:
            await super().aclose()
        finally:
            if close is not None:
                await close()

    async def _found(self, key: str | None) -> Result | None:
        if key is None:
            return None
        try:
            kept = await self.store.get(key)
            return None if kept is None else _decode(kept)
        except ConfigurationFailure:
            raise
        except Exception as error:
            _log.warning(
                "a cache could not be read, and the model is asked: %s: %s", type(error).__name__, error
            )
            return None

    async def _keep(self, key: str | None, result: Result) -> None:
        if key is None or not _is_whole(result):
            return
        try:
            await self.store.put(key, _encode(_as_kept(result)), self.ttl)
        except ConfigurationFailure:
            raise
        except Exception as error:
            _log.warning("an answer could not be cached: %s: %s", type(error).__name__, error)


class _Joined:
    """An answer, joined from its pieces on their way; none, where they make none, as its reader will say."""

    __slots__ = ("_assembler",)

    def __init__(self) -> None:
        self._assembler: Assembler | None = Assembler()

    def feed(self, piece: StreamEvent) -> None:
        try:
            if self._assembler is not None:
                self._assembler.feed(piece)
        except UnexpectedModelBehavior:
            self._assembler = None

    def result(self) -> Result | None:
        return None if self._assembler is None else self._assembler.result()


def _is_whole(result: Result) -> bool:
    message = result.message
    return message.role is Role.ASSISTANT and bool(message.parts) and result.finish_reason in _WHOLE


def _as_kept(result: Result) -> Result:
    """An answer as it is given again: it says where it comes from, and has cost nothing."""
    message, used = without_notes(result.message), result.usage
    told: dict[str, JSON] = msgspec.to_builtins(used)
    again = Message(
        message.role,
        message.parts,
        message.name,
        usage=Usage(context_tokens=used.context_tokens, context_window=used.context_window),
        model=message.model,
        finish_reason=message.finish_reason,
        extra={**(message.extra or {}), CACHED: {"usage": told}},
    )
    return replace(result, message=again, around=None)


def cached(
    model: str | Engine,
    store: AnswerStore | str | os.PathLike[str] | None = None,
    *,
    ttl: float | None = None,
    registry: Registry = DEFAULT,
) -> CachedEngine:
    """A model that is not asked again what it has answered before.

    Args:
        model: a model string, or an engine.
        store: where answers are kept: a store, the path of a SQLite file, or nothing for memory.
        ttl: for how many seconds an answer is kept; None for no end.
        registry: where a model string is looked up.

    Raises:
        UserError: `store` or `ttl` cannot be.
        ConfigurationFailure: there is no such model (see `Registry.resolve`).
    """
    engine = resolve_engine(model, registry)
    if store is None:
        return CachedEngine(engine, MemoryCache(), ttl=ttl)
    if isinstance(store, str | os.PathLike):
        return CachedEngine(engine, SQLiteCache(store), ttl=ttl, owned=True)
    return CachedEngine(engine, store, ttl=ttl)
