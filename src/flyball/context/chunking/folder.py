"""load_folder: the files of a folder in chunks, and a report of those that could not be read."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from flyball.context.chunk import Chunk
from flyball.context.chunking.code import chunk_code
from flyball.context.chunking.markdown import chunk_markdown
from flyball.context.chunking.patterns import matching
from flyball.context.chunking.size import DEFAULT, ChunkSize
from flyball.context.chunking.text import chunk_text
from flyball.core.encodable import clean_text
from flyball.core.errors import KnowledgeFailed, UserError

PATTERNS = ("*.md", "*.markdown", "*.txt", "*.rst", "*.py")
"""Which files are read unless others are named."""
MAX_BYTES = 2_000_000
"""How large a file may be."""

Chunker: TypeAlias = Callable[[str, str, ChunkSize], list[Chunk]]

_PROSE = (".txt", ".rst", ".text", ".log", "")
_MARKDOWN = (".md", ".markdown")


class Skipped(Struct, frozen=True):
    """A file that was not read, and why."""

    source: str
    reason: str


class Loaded(Struct, frozen=True):
    """What a folder gave: the chunks of its files, by name and in their order, and the files left out."""

    chunks: tuple[Chunk, ...]
    skipped: tuple[Skipped, ...] = ()

    @property
    def documents(self) -> dict[str, list[Chunk]]:
        """The chunks of each file, such as `Index.replace` takes them."""
        found: dict[str, list[Chunk]] = {}
        for chunk in self.chunks:
            found.setdefault(chunk.document, []).append(chunk)
        return found


def load_folder(
    path: str | os.PathLike[str],
    patterns: Sequence[str] = PATTERNS,
    *,
    size: ChunkSize = DEFAULT,
    max_bytes: int = MAX_BYTES,
    on_error: Literal["skip", "raise"] = "skip",
) -> Loaded:
    r"""Read the files of a folder and of those below it, and cut each as its kind is cut.

    Sources are relative to the folder, with `/`. Line ends become `\n`, and a byte order mark is left out.
    What cannot be read is left out and reported: folders that may not be, and files that may not be, are no
    text (bytes that are no UTF-8, or zeros), too large, or no plain files. Links to folders are not followed,
    so that no circle of them can be walked; neither are links to files outside the folder. Hidden files and
    folders, whose names begin with a dot, are left out without a word, unless a pattern names them.

    It reads from the disk: from async code call it by `asyncio.to_thread`.

    Args:
        path: the folder.
        patterns: which files; see `patterns.matching`.
        size: how large chunks are.
        max_bytes: how large a file may be.
        on_error: `"raise"` to have the first file that cannot be read raised.

    Raises:
        UserError: there is no such folder.
        KnowledgeFailed: with `on_error="raise"`, a file cannot be read.
    """
    if isinstance(patterns, str):
        raise UserError(f"patterns= takes several patterns, such as patterns=[{patterns!r}], not one text")
    name: str = os.fspath(path)
    root = os.path.abspath(name)
    if not os.path.isdir(root):
        raise UserError(f"there is no folder {root}: load_folder() takes one that is there")
    chunks: list[Chunk] = []
    skipped: list[Skipped] = []
    unread: list[OSError] = []
    for file in sorted(_names(root, patterns, unread.append)):
        source = clean_text(file)
        try:
            text = _read(root, file, max_bytes)
        except (OSError, ValueError) as error:
            reason = _reason(error)
            if on_error == "raise":
                raise KnowledgeFailed(f"{source} could not be read: {reason}", doing="read") from error
            skipped.append(Skipped(source, reason))
            continue
        chunks += chunker_for(source)(text, source, size)
    for error in unread:
        source = clean_text(os.path.relpath(str(error.filename), root).replace(os.sep, "/"))
        if on_error == "raise":
            raise KnowledgeFailed(f"{source} could not be read: {_reason(error)}", doing="read") from error
        skipped.append(Skipped(source, _reason(error)))
    return Loaded(tuple(chunks), tuple(skipped))


def chunker_for(source: str) -> Chunker:
    """How a file is cut, by its name: as Markdown, as text, or as code."""
    ending = os.path.splitext(source)[1].lower()
    if ending in _MARKDOWN:
        return chunk_markdown
    return chunk_text if ending in _PROSE else chunk_code


def _names(root: str, patterns: Sequence[str], unread: Callable[[OSError], None]) -> Iterator[str]:
    """The files below a folder that are meant, relative to it; `unread` is told of folders that cannot be."""
    wanted = [(matching(pattern), "/." in f"/{pattern.removeprefix('./')}") for pattern in patterns]
    for folder, folders, files in os.walk(root, onerror=unread, followlinks=False):
        folders.sort()
        for file in files:
            name = os.path.relpath(os.path.join(folder, file), root).replace(os.sep, "/")
            hidden = "/." in f"/{name}"
            if any(pattern.match(name) and (dotted or not hidden) for pattern, dotted in wanted):
                yield name


def _read(root: str, name: str, max_bytes: int) -> str:
    """A file's text.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no text, or too large; with the reason.
    """
    path = os.path.join(root, name)
    real = os.path.realpath(path, strict=True)
    if os.path.commonpath([real, os.path.realpath(root)]) != os.path.realpath(root):
        raise ValueError("it is a link out of the folder")
    # Opened without waiting, and looked at once it is open: a pipe would otherwise be waited for for ever.
    descriptor = os.open(real, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("it is no plain file")
        raw = file.read(max_bytes + 1)
    if len(raw) > max_bytes:
        raise ValueError(f"it has {max(found.st_size, len(raw))} bytes, and max_bytes is {max_bytes}")
    if b"\0" in raw:
        raise ValueError("it is no text: there are zero bytes in it")
    return raw.decode("utf-8-sig").replace("\r\n", "\n")


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"it is no UTF-8 text: byte {error.start} is {error.object[error.start]:#04x}"
    return clean_text((error.strerror or str(error)) if isinstance(error, OSError) else str(error))
