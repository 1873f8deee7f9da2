"""Who hears of a model that is fetched because it is asked: one for the process, set by its program."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from flyball.core.errors import ModelDownloadFailed
from flyball.models.pulling import Progress

T = TypeVar("T")
Again: TypeAlias = Callable[[ModelDownloadFailed], object]

_progress: Progress | None = None
_again: Again | None = None


def set_progress(progress: Progress | None, again: Again | None = None) -> None:
    """Let a function be told how far the fetching of a model is (see `flyball.models.Progress`).

    Without one the log is told (`flyball.local`, as a warning: nobody should wait for minutes and not know
    why).

    Args:
        progress: told how far it is; what it raises ends the download.
        again: called with why a model could not be fetched, in the thread of who waits for it. When it
            returns, that is tried again; what it raises is raised. Without one, the failure is.
    """
    global _progress, _again
    _progress, _again = progress, again


def heard(pull: Callable[[Progress | None], T]) -> T:
    """What a function pulls that is given whom to tell; it is called again as the program wants it.

    Raises:
        FlyballError: what `pull` raises.
    """
    while True:
        try:
            return pull(_progress)
        except ModelDownloadFailed as failed:
            if _again is None:
                raise
            _again(failed)
