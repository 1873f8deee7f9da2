"""What a name of the cache points at: a small file beside the blobs."""

from __future__ import annotations

from msgspec import Struct


class Record(Struct, frozen=True, omit_defaults=True):
    """One name of the cache: which blob it is, how long that is, and where it came from."""

    name: str
    sha256: str
    size: int
    source: str = ""
