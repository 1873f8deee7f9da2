"""Which model answers where the user named none: the default, or the small one where that cannot be had."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from flyball.core.errors import ModelDownloadFailed
from flyball.models.catalogue import DEFAULT, SMALL
from flyball.models.model import Model
from flyball.models.pulling import Progress, cached, pull


class Unnamed(Struct, frozen=True):
    """The model that answers, and its file. `missed` says why it is not the default, if it is not."""

    model: Model
    path: Path
    missed: ModelDownloadFailed | None = None

    @property
    def warning(self) -> str:
        """What the user should know about it; empty where the default answers."""
        if self.missed is None:
            return ""
        return (
            f"the default model cannot be had, so {self.model.name} answers, which is smaller and cannot "
            f"choose tools: {self.missed.message}"
        )


def pull_unnamed(*, progress: Progress | None = None) -> Unnamed:
    """The default model's file, or the small one's where no place gives the default. It blocks, as `pull`.

    Args:
        progress: told how far it is; what it raises ends the download.

    Raises:
        ModelDownloadFailed: neither can be had; the default is what is missed.
        ModelStorageFailed: there is no room for it: the small one would not be what was asked for.
    """
    try:
        return Unnamed(DEFAULT, cached(DEFAULT) or pull(DEFAULT, progress=progress))
    except ModelDownloadFailed as missed:
        try:
            path = cached(SMALL) or pull(SMALL, progress=progress)
        except ModelDownloadFailed:
            raise missed from None
        return Unnamed(SMALL, path, missed)
