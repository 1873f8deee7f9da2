"""The server that runs here for this user, and which one is meant where none is named."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from flyball.runtime.nats.connection import NatsOptions
from flyball.runtime.places import data_folder

NATS = "FLYBALL_NATS"
"""The variable that names servers where nothing else does."""
CREDS = "FLYBALL_NATS_CREDS"
"""The one that names a file with credentials for them."""
MONITORING = "FLYBALL_NATS_MONITORING"
"""The one that names the addresses of their monitoring."""


def server_folder() -> Path:
    """Where the data of this machine's own server is."""
    return data_folder() / "nats"


def _note() -> Path:
    return server_folder() / "running.json"


@contextmanager
def announced(options: NatsOptions) -> Generator[None]:
    """Tell other processes of this user, inside the block, of a server that runs here."""
    note = _note()
    descriptor = os.open(note, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.encode(options))
    try:
        yield
    finally:
        note.unlink(missing_ok=True)


def running_here() -> NatsOptions | None:
    """How to come to the server that `flyball up` runs here; None if it does not."""
    try:
        return msgspec.json.decode(_note().read_bytes(), type=NatsOptions)
    except (OSError, msgspec.DecodeError):
        return None


def meant() -> NatsOptions | None:
    """The servers that are meant where none is named: those of $FLYBALL_NATS, or the one that runs here."""
    named = os.environ.get(NATS)
    if not named:
        return running_here()
    return NatsOptions(
        addresses(named),
        credentials=os.environ.get(CREDS) or None,
        monitoring=addresses(os.environ.get(MONITORING, "")),
    )


def addresses(named: str) -> tuple[str, ...]:
    """Addresses that are written with commas between them."""
    return tuple([one.strip() for one in named.split(",") if one.strip()])
