"""Where a provider keeps what it knows: in memory, or in a folder that is nobody else's to read.

A folder may be used by several processes: each thing has a file of its own, which is there whole or not at
all, and of two who make the same thing at once the first wins, and both are told so.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Protocol

from flyball.core.errors import IdentityStorageFailed
from flyball.locks import locked


class Store(Protocol):
    """Things by kind and name. What is written is durable when the method returns."""

    def get(self, kind: str, name: str) -> bytes | None:
        """A thing, or None."""
        ...

    def put(self, kind: str, name: str, data: bytes) -> None:
        """Keep a thing, in the place of one with the same name."""
        ...

    def add(self, kind: str, name: str, data: bytes) -> bytes:
        """Keep a thing, unless there is one with the same name; gives the one that is there now."""
        ...

    def remove(self, kind: str, name: str) -> bool:
        """Forget a thing; whether it was there."""
        ...

    def alone(self) -> AbstractContextManager[None]:
        """Read, change and put something inside the block while nobody else does."""
        ...

    def all(self, kind: str) -> list[bytes]:
        """All things of a kind."""
        ...


class MemoryStore:
    """A store that ends with the process."""

    def __init__(self) -> None:
        self._things: dict[str, dict[str, bytes]] = {}
        self._lock = Lock()

    def get(self, kind: str, name: str) -> bytes | None:
        """See `Store.get`."""
        return self._things.get(kind, {}).get(name)

    def put(self, kind: str, name: str, data: bytes) -> None:
        """See `Store.put`."""
        self._things.setdefault(kind, {})[name] = data

    def add(self, kind: str, name: str, data: bytes) -> bytes:
        """See `Store.add`."""
        return self._things.setdefault(kind, {}).setdefault(name, data)

    def remove(self, kind: str, name: str) -> bool:
        """See `Store.remove`."""
        return self._things.get(kind, {}).pop(name, None) is not None

    def all(self, kind: str) -> list[bytes]:
        """See `Store.all`."""
        return list(self._things.get(kind, {}).values())

    def alone(self) -> AbstractContextManager[None]:
        """See `Store.alone`."""
        return _holding(self._lock)


class FolderStore:
    """A store in a folder: folders are 0700, files 0600; names become hashes, so that any text is one.

    All methods raise IdentityStorageFailed where the folder cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, kind: str, name: str) -> bytes | None:
        """See `Store.get`."""
        return self._read(self._path(kind, name))

    def put(self, kind: str, name: str, data: bytes) -> None:
        """See `Store.put`."""
        path = self._path(kind, name)
        try:
            self._written(path, data).replace(path)
            _sync(path.parent)
        except OSError as error:
            raise _failed(path, "written", error) from error

    def add(self, kind: str, name: str, data: bytes) -> bytes:
        """See `Store.add`."""
        path = self._path(kind, name)
        try:
            beside = self._written(path, data)
            try:
                # A link fails where something is already; a rename would put it out of the way.
                os.link(beside, path)
            except FileExistsError:
                pass
            finally:
                beside.unlink()
            _sync(path.parent)
        except OSError as error:
            raise _failed(path, "written", error) from error
        return self._read(path) or data

    def remove(self, kind: str, name: str) -> bool:
        """See `Store.remove`."""
        path = self._path(kind, name)
        try:
            path.unlink()
            _sync(path.parent)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _failed(path, "removed", error) from error
        return True

    def all(self, kind: str) -> list[bytes]:
        """See `Store.all`."""
        folder = self.folder / kind
        try:
            found = sorted(folder.glob("*.json"))
        except OSError as error:
            raise _failed(folder, "read", error) from error
        return [data for path in found if (data := self._read(path)) is not None]

    @contextmanager
    def alone(self) -> Generator[None]:
        """See `Store.alone`: also of other processes nobody does."""
        path = self.folder / "lock"
        with ExitStack() as held:
            try:
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                path.touch(mode=0o600)
                held.enter_context(locked(path))
            except OSError as error:
                raise _failed(path, "written", error) from error
            yield

    def _path(self, kind: str, name: str) -> Path:
        return self.folder / kind / f"{sha256(name.encode()).hexdigest()[:40]}.json"

    def _read(self, path: Path) -> bytes | None:
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _failed(path, "read", error) from error

    def _written(self, path: Path, data: bytes) -> Path:
        """A file beside another, with what that one is to hold; durable."""
        for folder in (self.folder, path.parent):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            with suppress(OSError):
                beside.unlink()
            raise
        return beside


@contextmanager
def _holding(lock: Lock) -> Generator[None]:
    with lock:
        yield


def _sync(folder: Path) -> None:
    """Have a folder itself written: a new name in it is durable only then."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _failed(path: Path, what: str, error: OSError) -> IdentityStorageFailed:
    return IdentityStorageFailed(
        f"{path} cannot be {what}: {error.strerror or error}; give a folder that is yours", path=str(path)
    )
