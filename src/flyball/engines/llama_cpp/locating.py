"""From what the user named to a model's file, fetched where it is not there yet."""

from __future__ import annotations

import logging
import time
from pathlib import Path

from flyball.engines.llama_cpp.options import Located
from flyball.models import DEFAULT, Model, Progress, cached, pull, pull_unnamed
from flyball.models.gguf import read_header
from flyball.models.hearing import heard
from flyball.models.reference import read_reference

_LOG = logging.getLogger("flyball.local")
_EVERY = 10.0
"""Seconds between two lines of the log while a model is fetched."""


def locate(model: str | Model | Path) -> Located:
    """The model's file; "" is the default, or the small one where that cannot be had. It may take minutes.

    Raises:
        UnknownModel: there is no such model.
        ModelFileInvalid: the file is no model.
        ModelDownloadFailed: it is not here and cannot be fetched.
        ModelStorageFailed: there is no room for it.
    """
    return heard(lambda progress: _found(model, progress))


def _found(model: str | Model | Path, progress: Progress | None) -> Located:
    if model != "":
        return _fetched(_read(model), progress)
    unnamed = pull_unnamed(progress=progress or _Logged(DEFAULT))
    if unnamed.warning:
        _LOG.warning("%s", unnamed.warning)
    return _located(unnamed.path, unnamed.model)


def named(model: str | Model | Path) -> tuple[str, int]:
    """The name and the trained context of a model, as far as they are known before it is loaded."""
    known = DEFAULT if model == "" else _read(model)
    if isinstance(known, Path):
        return known.stem, read_header(known).context_length
    return known.name, known.context_window


def _read(model: str | Model | Path) -> Model | Path:
    return model if isinstance(model, Model) else read_reference(str(model))


def _fetched(model: Model | Path, progress: Progress | None) -> Located:
    if isinstance(model, Path):
        header = read_header(model)
        return Located(model, model.stem, header.context_length)
    return _located(cached(model) or pull(model, progress=progress or _Logged(model)), model)


def _located(path: Path, model: Model) -> Located:
    return Located(path, model.name, model.context_window or read_header(path).context_length)


class _Logged:
    """Tells the log how far it is, now and then."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._last: float | None = None

    def __call__(self, done: int, total: int, what: str) -> None:
        if self._last is None:
            self._last = time.monotonic()
            name, size = self._model.name, self._model.size // 1_000_000
            _LOG.warning("%s is not on this disk yet and is fetched (%d MB)", name, size)
        if time.monotonic() - self._last >= _EVERY:
            self._last = time.monotonic()
            _LOG.warning("%s, %d of %d MB", what, done // 1_000_000, total // 1_000_000)
