"""The embedded model's file, fetched with a progress bar where it is not there yet."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from flyball.adapters.cli.screen import err
from flyball.core.errors import ModelDownloadFailed
from flyball.inference.model_string import parse_model
from flyball.inference.registry import DEFAULT as REGISTRY

if TYPE_CHECKING:
    from flyball.models import Model

LOCAL = "local"


async def fetched(model: str) -> str:
    """A model string whose file is on this disk; any other than the embedded engine's as it is.

    Where the default cannot be had, the smallest model takes its place, and a line says so.

    Raises:
        UnknownModel: the string cannot be read, or there is no such model.
        ModelDownloadFailed, ModelStorageFailed: the file cannot be had.
    """
    ref = parse_model(model, REGISTRY.providers)
    if ref.provider != LOCAL:
        return model
    from flyball.models import DEFAULT, SMALL, cached

    wanted: Model | str = ref.name or DEFAULT
    if cached(wanted) is not None:
        return model
    try:
        await fetch(wanted)
    except ModelDownloadFailed as error:
        if ref.name:
            raise
        err().print(f"{error.message}. Using {SMALL.name}, which is smaller", style="yellow")
        if cached(SMALL) is None:
            await fetch(SMALL)
        return f"{LOCAL}:{SMALL.name}"
    return model


async def fetch(wanted: Model | str) -> Path:
    """Pull a model's file, with a progress bar on a terminal. Cancelling ends the download.

    Raises:
        UnknownModel, ModelDownloadFailed, ModelStorageFailed, ...: see `flyball.models.pull`.
    """
    from flyball.models import pull

    stop = threading.Event()
    with _Bar() as bar:

        def progress(done: int, total: int, what: str) -> None:
            if stop.is_set():
                raise InterruptedError("the download was cancelled")
            bar.tell(done, total, what)

        pulling = asyncio.ensure_future(asyncio.to_thread(pull, wanted, progress=progress))
        try:
            return await asyncio.shield(pulling)
        except asyncio.CancelledError:
            stop.set()
            await asyncio.wait([pulling])
            pulling.exception()
            raise


class _Bar:
    """A progress bar on stderr; where that is no terminal, a line for each thing that is being done."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
        self._progress = Progress(*columns, console=err(), transient=True)
        self._task = self._progress.add_task("", total=None)
        self._last = ""
        self.tell: Callable[[int, int, str], None] = self._draw if err().is_terminal else self._say

    def __enter__(self) -> _Bar:
        if err().is_terminal:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def _draw(self, done: int, total: int, what: str) -> None:
        self._progress.update(self._task, description=what, completed=done, total=total or None)

    def _say(self, done: int, total: int, what: str) -> None:
        if what != self._last:
            self._last = what
            size = f" ({total / 1e6:,.0f} MB)" if total else ""
            err().print(f"{what}{size}")
