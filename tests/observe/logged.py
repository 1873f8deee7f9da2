"""What is logged about those who watch."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager

_LOGGER = logging.getLogger("flyball.observe")


class _Keeping(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@contextmanager
def logged() -> Generator[list[logging.LogRecord]]:
    """All that is logged within the block; nothing of it goes elsewhere."""
    handler, before = _Keeping(), _LOGGER.propagate
    _LOGGER.addHandler(handler)
    _LOGGER.propagate = False
    try:
        yield handler.records
    finally:
        _LOGGER.removeHandler(handler)
        _LOGGER.propagate = before
