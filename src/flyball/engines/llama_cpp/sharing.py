"""One child a model for everybody in this process who names it.

Users are counted: the child ends with the last of them that closes its engine, and in any case at the end of
the process. An engine that is dropped without being closed keeps its child warm for the next one.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from functools import partial

from flyball.engines.llama_cpp.engine import LlamaCppEngine, host_pair
from flyball.engines.llama_cpp.host import Host
from flyball.engines.llama_cpp.locating import locate, named
from flyball.engines.llama_cpp.options import Options
from flyball.inference.model_string import ModelRef


class _Shared:
    """The hosts of one model, and how many use them."""

    def __init__(self, model: str) -> None:
        self.hosts: tuple[Host, Host] = host_pair(partial(locate, model), Options())
        self.users = 0

    def close(self) -> None:
        for host in self.hosts:
            host.close()


_guard = threading.Lock()
_shared: dict[str, _Shared] = {}


class SharedEngine(LlamaCppEngine):
    """An engine whose children others use too; closing it lets go of them."""

    def __init__(self, model: str, shared: _Shared) -> None:
        super().__init__(model, hosts=shared.hosts)
        self._held: _Shared | None = shared

    async def aclose(self) -> None:
        """Let go of the children, which end when nobody else has them. Closing twice does no harm."""
        held, self._held = self._held, None
        if held is not None and _was_last(held):
            await asyncio.to_thread(held.close)


def engine_for(ref: ModelRef) -> LlamaCppEngine:
    """The engine of `local` and `local:<name or path>`: what the entry point `local` gives.

    Raises:
        UnknownModel: there is no such model; the nearest names are in the message.
        ModelFileInvalid: the file is no model.
    """
    named(ref.name)
    path = os.path.expanduser(ref.name)
    model = os.path.abspath(path) if os.path.isfile(path) else ref.name
    with _guard:
        shared = _shared.get(model)
        if shared is None:
            shared = _shared[model] = _Shared(model)
        shared.users += 1
    return SharedEngine(model, shared)


def _was_last(shared: _Shared) -> bool:
    with _guard:
        shared.users -= 1
        return shared.users == 0


def close_all() -> None:
    """End every shared child; the end of the process does it."""
    with _guard:
        left = list(_shared.values())
        _shared.clear()
    for shared in left:
        shared.close()


atexit.register(close_all)
