"""The cache's folder: whole files by their hash, names that point at them, and a place for what arrives.

blobs/<sha256>.gguf     whole and checked, never changed
names/<key>.json        a `Record`: a name and the blob it means
incoming/<key>-…        what is being fetched; whoever holds the lock of the key owns it
locks/<key>             one lock a model
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import msgspec

from flyball.core.errors import MissingExtra, ModelStorageFailed
from flyball.locks import locked, try_locked
from flyball.models.model import Model
from flyball.models.record import Record

VARIABLE = "FLYBALL_HOME"
"""The environment variable that names flyball's own folder."""

_NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
_SPARE = 64 * 1024 * 1024
"""What is left free for everybody else when a model is fetched."""


def models_folder() -> Path:
    """Where model files are kept: in `$FLYBALL_HOME`, or in the platform's cache folder for flyball.

    Raises:
        MissingExtra: the variable is not set, and the library that knows the platform's folder is not there.
    """
    home = os.environ.get(VARIABLE, "").strip()
    if home:
        return Path(home).expanduser() / "models"
    try:
        from platformdirs import user_cache_path
    except ImportError as error:
        raise MissingExtra(
            "the cache folder of this platform is found with platformdirs, which is not installed: "
            f"pip install 'flyball[local]', or set {VARIABLE}",
            extra="local",
        ) from error
    return user_cache_path("flyball", appauthor=False) / "models"


class Folder:
    """The cache. Reading asks for nothing to be there; what writes makes the folders that it needs."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = models_folder() if path is None else path

    def blob(self, sha256: str, size: int) -> Path | None:
        """The file with this hash where it is there, and as long as it should be."""
        path = self.blob_path(sha256)
        try:
            return path if path.stat().st_size == size else None
        except OSError:
            return None

    def blob_path(self, sha256: str) -> Path:
        """Where the file with this hash belongs."""
        return self.path / "blobs" / f"{sha256}.gguf"

    def record(self, model: Model) -> Record | None:
        """What the model's name points at, if anything."""
        return _read(self.path / "names" / f"{model.key}.json")

    def records(self) -> list[Record]:
        """Every name whose blob is there, in order."""
        read = [_read(path) for path in (self.path / "names").glob("*.json")]
        whole = [record for record in read if record is not None and self.blob(record.sha256, record.size)]
        return sorted(whole, key=lambda record: record.name)

    def write_record(self, model: Model, record: Record) -> None:
        """Let the model's name point at a blob."""
        with self.faults("write"), tempfile.TemporaryDirectory(dir=self.path / "incoming") as scratch:
            written = Path(scratch) / "record"
            written.write_bytes(msgspec.json.encode(record))
            written.replace(self.path / "names" / f"{model.key}.json")

    def forget(self, model: Model, sha256: str) -> None:
        """Remove the model's name, and the blob where no other name points at it."""
        with self.faults("remove from"):
            (self.path / "names" / f"{model.key}.json").unlink(missing_ok=True)
            if all(record.sha256 != sha256 for record in self.records()):
                self.blob_path(sha256).unlink(missing_ok=True)

    def prepare(self) -> None:
        """Make the folders.

        Raises:
            ModelStorageFailed: that is not possible; the message says why, and how to choose another place.
        """
        with self.faults("write to"):
            for name in ("blobs", "names", "incoming", "locks"):
                (self.path / name).mkdir(parents=True, exist_ok=True)
            # A folder that is there already may still refuse a file.
            tempfile.TemporaryFile(dir=self.path / "incoming").close()

    def locked(self, model: Model, waiting: Callable[[], None]) -> AbstractContextManager[None]:
        """Be the only one that fetches or removes this model."""
        return locked(self.path / "locks" / model.key, waiting)

    def sweep(self, mine: Model) -> None:
        """Remove what fetching left behind when its process was killed. The lock of `mine` is held."""
        for left in (self.path / "incoming").iterdir():
            key = left.name.partition("-")[0]
            if key == mine.key:
                _remove(left)
            elif (self.path / "locks" / key).exists():
                with try_locked(self.path / "locks" / key) as free:
                    if free:
                        _remove(left)

    def check_room(self, model: Model, size: int) -> None:
        """Do nothing where a file of this size still fits.

        Raises:
            ModelStorageFailed: it does not; details `needed` and `free`, in bytes.
        """
        free = shutil.disk_usage(self.path).free
        if size + _SPARE > free:
            raise ModelStorageFailed(
                f"{model.name} needs {_mb(size + _SPARE)} in {self.path}, and {_mb(free)} are free there: "
                f"make room, or set {VARIABLE} to a folder on another disk",
                model=model.name,
                path=str(self.path),
                needed=size + _SPARE,
                free=free,
            )

    @contextmanager
    def incoming(self, model: Model) -> Generator[Path]:
        """A folder for what is being fetched, gone after the block unless the process was killed."""
        with self.faults("write to"):
            scratch = Path(tempfile.mkdtemp(prefix=f"{model.key}-", dir=self.path / "incoming"))
        try:
            yield scratch
        finally:
            _remove(scratch)

    @contextmanager
    def faults(self, doing: str) -> Generator[None]:
        """Turn what the file system refuses into flyball's error."""
        try:
            yield
        except OSError as error:
            raise self._fault(error, doing) from error

    def _fault(self, error: OSError, doing: str) -> ModelStorageFailed:
        if error.errno in _NO_ROOM:
            wrong, remedy = "the disk is full", "make room"
        elif error.errno == errno.EROFS:
            wrong, remedy = "its file system is read-only", "mount it for writing"
        elif isinstance(error, PermissionError):
            wrong, remedy = "this user may not write there", "change its permissions"
        else:
            wrong, remedy = error.strerror or str(error), "make it a folder that can be written"
        return ModelStorageFailed(
            f"cannot {doing} the folder for models, {self.path}: {wrong}: {remedy}, "
            f"or set {VARIABLE} to another one",
            path=str(self.path),
        )


def _read(path: Path) -> Record | None:
    # A record that cannot be read is worth as much as none: the model is fetched again, and it written anew.
    with suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(path.read_bytes(), type=Record)
    return None


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _mb(size: int) -> str:
    return f"{size / 1_000_000:,.0f} MB"
