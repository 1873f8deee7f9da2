"""Models that a server's agents have and this disk has not: fetched while it serves, until they are here."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncGenerator, Iterable
from contextlib import ExitStack, asynccontextmanager

from msgspec import Struct, field

from flyball.adapters.cli.fetching import LOCAL, Bar, pulled, read_model
from flyball.adapters.cli.screen import err
from flyball.core.backoff import Backoff
from flyball.core.errors import FlyballError, ModelBeingFetched, ModelDownloadFailed

_log = logging.getLogger("flyball.local")

PAUSES = Backoff(2.0, 2.0, 120.0)
"""How long is waited before a model is tried again that could not be fetched."""
_EVERY = 10.0
"""Seconds between two lines of the log while one is fetched."""
_SOONEST, _LATEST = 1.0, 60.0
"""Within how many seconds callers are told to come again."""
_POLL = 0.1


class _Awaited(Struct):
    """A model that is not here: how far it is, or why it did not come, and when it is tried again."""

    name: str
    reference: str
    began: float = 0.0
    done: int = 0
    total: int = 0
    failed: FlyballError | None = None
    again: float = 0.0
    here: asyncio.Event = field(default_factory=asyncio.Event)

    def told(self, now: float) -> ModelBeingFetched:
        """What who asks for it is told: nothing that only the log should say."""
        percent = min(99, 100 * self.done // self.total) if self.total else None
        if self.failed is not None:
            after = max(self.again - now, 0.0)
            message = (
                f"the model {self.name} could not be fetched ({_reason(self.failed)}): "
                f"it is tried again in {after:.0f} s"
            )
            return ModelBeingFetched(
                message, model=self.name, percent=None, retry_after=_soon(after), problem=self.failed.code
            )
        left = (now - self.began) * (self.total - self.done) / self.done if self.done else _SOONEST
        how_far = "" if percent is None else f" ({percent} %)"
        return ModelBeingFetched(
            f"the model {self.name} is being fetched{how_far}",
            model=self.name,
            percent=percent,
            retry_after=_soon(left),
        )


def _soon(seconds: float) -> int:
    return round(min(max(seconds, _SOONEST), _LATEST))


def _reason(error: FlyballError) -> str:
    """Why, in a few words; where the model was asked for elsewhere, too, the log says so."""
    tried = error.details.get("tried")
    return f"{tried[0]['source']}: {tried[0]['problem']}" if tried else error.code


class Arrivals:
    """The models that are not here yet, fetched until they are. See `arriving`."""

    def __init__(self, models: Iterable[str], pauses: Backoff = PAUSES) -> None:
        """Look which are missing.

        Raises:
            UnknownModel: a string cannot be read, or there is no such model.
            ModelFileInvalid: a file is no model.
        """
        found = [(model, _missing(model)) for model in dict.fromkeys(models)]
        self._awaited = {model: _Awaited(*named) for model, named in found if named is not None}
        self._pauses = pauses
        self._ending = threading.Event()
        self._fetching: list[asyncio.Task[None]] = []
        self._one = asyncio.Lock()
        self._shown = ExitStack()
        self._bar: Bar | None = None

    def missing(self, model: str | None = None) -> FlyballError | None:
        """Why a model cannot be asked yet (None: any of them); None where it can."""
        now = time.monotonic()
        for name, awaited in self._awaited.items():
            if model is None or name == model:
                return awaited.told(now)
        return None

    async def wait(self, model: str) -> None:
        """Wait until a model is here."""
        if (awaited := self._awaited.get(model)) is not None:
            await awaited.here.wait()

    def begin(self) -> None:
        """Begin to fetch them."""
        if self._awaited and not self._fetching:
            self._bar = self._shown.enter_context(Bar()) if err().is_terminal else None
            self._fetching = [asyncio.create_task(self._fetch(model)) for model in list(self._awaited)]

    async def end(self) -> None:
        """Fetch no more; who waits for a model in a thread is told that it could not be fetched."""
        self._ending.set()
        for task in self._fetching:
            task.cancel()
        await asyncio.gather(*self._fetching, return_exceptions=True)
        self._shown.close()

    def again(self, failed: ModelDownloadFailed) -> None:
        """Wait, in the thread of an engine that could not have its model, until it is here.

        Raises:
            ModelDownloadFailed: it never will be: the server ends.
        """
        wanted = failed.details.get("model")
        awaited = next((one for one in self._awaited.values() if one.name == wanted), None)
        while not self._ending.wait(_EVERY if awaited is None else _POLL):
            if awaited is None or awaited.here.is_set():
                return
        raise failed

    def heard(self, done: int, total: int, what: str) -> None:
        """How far an engine's own fetching is, which waits for ours.

        Raises:
            InterruptedError: the server ends.
        """
        if self._ending.is_set():
            raise InterruptedError("the server ends")

    async def _fetch(self, model: str) -> None:
        awaited, tries = self._awaited[model], 0
        while True:
            try:
                async with self._one:  # one after the other: the first is here the sooner
                    awaited.began, awaited.done, awaited.total = time.monotonic(), 0, 0
                    awaited.failed = None
                    await _pull(awaited, _Told(awaited, self._bar))
                break
            except FlyballError as error:
                tries += 1
                pause = self._pauses.wait(tries)
                awaited.failed, awaited.again = error, time.monotonic() + pause
                _log.warning("%s It is tried again in %.0f s", error.message.rstrip(".") + ".", pause)
                await asyncio.sleep(pause)
        del self._awaited[model]
        awaited.here.set()
        _log.warning("the model %s is here", awaited.name)
        if not self._awaited:
            self._shown.close()


class _Told:
    """How far a model is: kept for who asks, and shown by a bar, or by a line of the log now and then."""

    def __init__(self, awaited: _Awaited, bar: Bar | None) -> None:
        self._awaited = awaited
        self._bar = bar
        self._last = float("-inf")

    def __call__(self, done: int, total: int, what: str) -> None:
        self._awaited.done, self._awaited.total = done, total
        if self._bar is not None:
            self._bar.tell(done, total, what)
        elif time.monotonic() - self._last >= _EVERY:
            self._last = time.monotonic()
            _log.warning("%s, %d of %d MB", what, done // 1_000_000, total // 1_000_000)


async def _pull(awaited: _Awaited, told: _Told) -> None:
    from flyball import models

    if awaited.reference:
        await pulled(lambda progress: models.pull(awaited.reference, progress=progress), told)
        return
    unnamed = await pulled(lambda progress: models.pull_unnamed(progress=progress), told)
    if unnamed.warning:
        _log.warning("%s", unnamed.warning)


def _missing(model: str) -> tuple[str, str] | None:
    """The name of a model that is to be fetched, and how it is asked for ("": the default); else None."""
    ref = read_model(model)
    if ref.provider != LOCAL:
        return None
    from flyball import models

    if models.cached(ref.name or models.DEFAULT) is not None:
        return None
    return ref.name or models.DEFAULT.name, ref.name


@asynccontextmanager
async def arriving(models: Iterable[str], pauses: Backoff = PAUSES) -> AsyncGenerator[Arrivals]:
    """Models, of which those that are not here are fetched within the block, once `begin` is called.

    An engine that is asked meanwhile waits: a loop does not fail because its model is on its way.

    Raises:
        UnknownModel, ModelFileInvalid: a model cannot be.
    """
    arrivals = Arrivals(models, pauses)
    if arrivals.missing() is None:
        yield arrivals
        return
    from flyball.models import set_progress

    set_progress(arrivals.heard, arrivals.again)
    try:
        yield arrivals
    finally:
        await arrivals.end()
        set_progress(None)
