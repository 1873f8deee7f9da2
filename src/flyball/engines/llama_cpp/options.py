"""How a model is loaded."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from msgspec import Struct

LONGEST = 8_192
"""Tokens that a call may use unless more are asked for: memory grows with it, whether it is used or not."""


class Located(Struct, frozen=True):
    """A model's file, its name, and the context it was trained for (0: not known)."""

    path: Path
    name: str
    context_window: int = 0


class Options(Struct, frozen=True):
    """What the user chose; None is left to the engine.

    `context`: tokens of prompt and answer together that each call may use. `parallel`: calls at once.
    `threads`: where not given, all cores read a prompt, and all but one write an answer: its threads wait for
    each other at every token, and the last core would bring less than it takes from everybody else.
    `start_seconds`: how long loading may take.
    """

    context: int | None = None
    parallel: int | None = None
    threads: int | None = None
    embedding: bool = False
    start_seconds: float = 180.0

    def load(self, located: Located) -> dict[str, Any]:
        """The frame that tells the child what to load."""
        trained = located.context_window or LONGEST
        context = min(self.context or LONGEST, trained)
        parallel = self.parallel or (2 if cores() <= 2 else 4)
        if self.embedding:
            context, parallel = min(context, 2048), 1
        return {
            "path": str(located.path),
            "context": context,
            "parallel": parallel,
            "threads": self.threads or max(cores() - 1, 1),
            "prompt_threads": self.threads or cores(),
            "batch": 128,
            "cache_mib": 512,
            "embedding": self.embedding,
        }


def cores() -> int:
    """The cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
