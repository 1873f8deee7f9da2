"""What the rest of flyball says by Python's own `logging`: lines on stderr, while a command serves others."""

from __future__ import annotations

import logging
import sys
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def logging_to_stderr() -> Generator[None]:
    """Write warnings and worse to stderr, for a block. Where somebody listens already, nothing is changed.

    Nothing of it is left: who calls the command line as a function goes on in a process whose stderr may be
    another by then.
    """
    root = logging.getLogger()
    if root.handlers:
        yield
        return
    lines = logging.StreamHandler(sys.stderr)
    lines.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    level = root.level
    root.addHandler(lines)
    root.setLevel(logging.WARNING)
    try:
        yield
    finally:
        root.removeHandler(lines)
        root.setLevel(level)
