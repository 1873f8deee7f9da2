"""The embedded model's file, fetched with a progress bar where it is not there yet."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from flyball.adapters.cli.screen import err
from flyball.core.errors import UnknownModel
from flyball.inference.model_string import ModelRef, parse_model
from flyball.inference.registry import DEFAULT as REGISTRY

if TYPE_CHECKING:
    from flyball.models import Progress

T = TypeVar("T")
LOCAL = "local"
_ROOM = 80
"""How wide a terminal is that has room for a bar beside the words."""
_GRACE = 1.0
"""Seconds that a download has to end in when it is cancelled."""


async def fetched(model: str) -> str:
    """A model string whose file is on this disk; any other than the embedded engine's as it is.

    Where the default cannot be had, the small model takes its place, and a line says so.

    Raises:
        UnknownModel: the string cannot be read, or there is no such model.
        ModelDownloadFailed, ModelStorageFailed: the file cannot be had.
    """
    ref = read_model(model)
    if ref.provider != LOCAL:
        return model
    from flyball import models

    if models.cached(ref.name or models.DEFAULT) is not None:
        return model
    if ref.name:
        await fetch(ref.name)
        return model
    unnamed = await _shown(lambda progress: models.pull_unnamed(progress=progress))
    if not unnamed.warning:
        return model
    err().print(unnamed.warning, style="yellow", soft_wrap=True)
    return f"{LOCAL}:{unnamed.model.name}"


def read_model(model: str) -> ModelRef:
    """A model string, read; who leaves `local:` out of a name of the catalogue is told so."""
    try:
        return parse_model(model, REGISTRY.providers)
    except UnknownModel as error:
        from flyball.models import near_names

        near = [f"{LOCAL}:{name}" for name in near_names(model)]
        if not near:
            raise
        raise UnknownModel(
            f"the model {model[:100]!r} names no known provider; did you mean "
            f"{' or '.join([repr(name) for name in near])}, which runs on this machine? "
            f"({LOCAL}:NAME is a model of `flyball models`)",
            providers=list(REGISTRY.providers),
            near=near,
        ) from error


async def fetch(wanted: str) -> Path:
    """Pull a model's file, with a progress bar on a terminal. Cancelling ends the download.

    Raises:
        UnknownModel, ModelDownloadFailed, ModelStorageFailed, ...: see `flyball.models.pull`.
    """
    from flyball import models

    return await _shown(lambda progress: models.pull(wanted, progress=progress))


async def _shown(pull: Callable[[Progress], T]) -> T:
    """What a function pulls, in a thread, with a bar that shows how far it is."""
    with Bar() as bar:
        return await pulled(pull, bar.tell)


async def pulled(pull: Callable[[Progress], T], tell: Progress) -> T:
    """What a function pulls, in a thread; `tell` is told how far it is. Cancelling ends the download."""
    stop = threading.Event()

    def progress(done: int, total: int, what: str) -> None:
        if stop.is_set():
            raise InterruptedError("the download was cancelled")
        tell(done, total, what)

    pulling = asyncio.ensure_future(asyncio.to_thread(pull, progress))
    try:
        return await asyncio.shield(pulling)
    except asyncio.CancelledError:
        stop.set()
        # It hears that at its next piece. Where none comes it is left: the next one to pull sweeps up.
        if (await asyncio.wait([pulling], timeout=_GRACE))[0]:
            pulling.exception()
        raise


class Bar:
    """A progress bar on stderr; where that is no terminal, a line for each thing that is being done."""

    def __init__(self) -> None:
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            ProgressColumn,
            TaskProgressColumn,
            TextColumn,
            TransferSpeedColumn,
        )
        from rich.table import Column

        what = TextColumn(
            "{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)
        )
        columns: tuple[ProgressColumn, ...] = (what, TaskProgressColumn())
        if err().width >= _ROOM:
            columns = (what, BarColumn(24), DownloadColumn(), TransferSpeedColumn())
        self._progress = Progress(*columns, console=err(), transient=True, expand=True)
        self._task = self._progress.add_task("", total=None)
        self._last = ""
        self.tell: Callable[[int, int, str], None] = self._draw if err().is_terminal else self._say

    def __enter__(self) -> Bar:
        if err().is_terminal:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if err().is_terminal:  # stopping what was never started writes an empty line
            self._progress.stop()

    def _draw(self, done: int, total: int, what: str) -> None:
        self._progress.update(self._task, description=what, completed=done, total=total or None)

    def _say(self, done: int, total: int, what: str) -> None:
        if what != self._last:
            self._last = what
            size = f" ({total / 1e6:,.0f} MB)" if total else ""
            err().print(f"{what}{size}")
