"""Replies on disk, one line each, so that a run that was broken off goes on where it stopped.

A reply is found again by everything that it depends on: model, method, settings, the task as it was asked,
and the version of the code. So a changed task or a changed flyball is asked anew, and nothing has to be
thrown away.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct

from bench import SOURCE
from bench.control.methods import Reply
from bench.control.tasks import FOLDER, Task
from flyball.core.settings import ModelSettings

FILE = FOLDER / ".results" / "replies.jsonl"


class _Line(Struct, frozen=True):
    key: str
    model: str
    method: str
    task: str
    version: str
    reply: Reply


class Results:
    """The replies that are known, and a file that they are written to as they come."""

    def __init__(self, file: Path, version: str, settings: ModelSettings) -> None:
        self._file = file
        self._version = version
        self._settings = settings
        self._known = dict(_read(file))

    def get(self, model: str, method: str, task: Task) -> Reply | None:
        """The reply, if it is known."""
        return self._known.get(self._key(model, method, task))

    def put(self, model: str, method: str, task: Task, reply: Reply) -> None:
        """Keep a reply; it is in the file when this returns."""
        key = self._key(model, method, task)
        self._known[key] = reply
        self._file.parent.mkdir(parents=True, exist_ok=True)
        line = msgspec.json.encode(_Line(key, model, method, task.id, self._version, reply))
        with self._file.open("ab") as file:
            # A line that was cut when a run was killed must not swallow this one.
            file.write((b"\n" if _is_cut(self._file) else b"") + line + b"\n")

    def _key(self, model: str, method: str, task: Task) -> str:
        asked = (model, method, self._version, self._settings, task.id, task)
        return sha256(msgspec.json.encode(asked)).hexdigest()


def code_version(sources: Iterable[Path] = (SOURCE, FOLDER)) -> str:
    """A name for the code as it is now: a hash of flyball's source and of what stands here."""
    digest = sha256()
    for folder in sources:
        for file in sorted(folder.rglob("*.py")):
            digest.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def _read(file: Path) -> Iterable[tuple[str, Reply]]:
    if not file.exists():
        return
    for line in file.read_bytes().splitlines():
        try:
            read = msgspec.json.decode(line, type=_Line)
        except msgspec.DecodeError:
            continue  # cut when a run was killed: that task is asked again
        yield read.key, read.reply


def _is_cut(file: Path) -> bool:
    with file.open("rb") as opened:
        if opened.seek(0, 2) == 0:
            return False
        opened.seek(-1, 2)
        return opened.read(1) != b"\n"
