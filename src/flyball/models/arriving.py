"""A file that arrives in pieces: it is hashed as it is written, and takes its place only when it is right."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from flyball.core.errors import ModelHashMismatch
from flyball.models.gguf import read_header
from flyball.models.model import Model


class Arriving:
    """The temporary file of one download. Leaving the block closes it, in any case."""

    def __init__(self, path: Path) -> None:
        """Open it, under a name that is free, on the disk where the file will stay."""
        self._path = path
        self._file = path.open("wb")
        self._hash = hashlib.sha256()
        self.size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def write(self, piece: bytes) -> None:
        """Take the next piece."""
        self._file.write(piece)
        self._hash.update(piece)
        self.size += len(piece)

    def settle(self, model: Model, expected: str, place: Callable[[str], Path]) -> tuple[Path, str]:
        """Move the file to its place, and give that and its hash. It is durable there before this returns.

        Args:
            model: whose file this is.
            expected: the hash that it must have, or "" where none is known.
            place: where a file with a given hash belongs.

        Raises:
            ModelHashMismatch: it has another hash than it must have.
            ModelFileInvalid: the catalogue does not vouch for it, and it is no whole GGUF file.
        """
        actual = self._hash.hexdigest()
        if expected and actual != expected:
            raise ModelHashMismatch(
                f"what came for {model.name} is not that model: its sha256 is {actual}, not {expected} "
                f"({self.size:,} bytes)",
                model=model.name,
                expected=expected,
                actual=actual,
            )
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        if not model.sha256:
            read_header(self._path, model.name)
        final = place(actual)
        self._path.replace(final)
        _sync_folder(final.parent)
        return final, actual


def _sync_folder(path: Path) -> None:
    if os.name == "posix":
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
