"""Keys of operators, accounts and users: Ed25519, written as NATS writes them (nkeys)."""

from __future__ import annotations

import os
from enum import IntEnum
from typing import Any

from flyball.core.errors import MissingExtra, UserError


class Kind(IntEnum):
    """What a key is of; its public form begins with the letter."""

    ACCOUNT = 0
    OPERATOR = 14 << 3
    USER = 20 << 3


class Key:
    """A key. Who has its seed can sign by it."""

    def __init__(self, seed: str) -> None:
        """The key of a seed.

        Raises:
            UserError: it is none.
            MissingExtra: nkeys is not installed.
        """
        try:
            self._pair: Any = _library().from_seed(bytearray(seed.strip().encode()))
            self.public: str = self._pair.public_key.decode()
        except MissingExtra:
            raise
        except Exception as error:  # the library raises what it likes
            raise UserError(f"this is no seed of a key of NATS: {seed[:2]}…") from error
        self.seed = seed.strip()

    @classmethod
    def new(cls, kind: Kind) -> Key:
        """A new one."""
        return cls(_library().encode_seed(os.urandom(32), int(kind)).decode())

    def sign(self, data: bytes) -> bytes:
        """The signature of some bytes."""
        return self._pair.sign(data)


def _library() -> Any:
    try:
        import nkeys  # pyright: ignore[reportMissingTypeStubs] - it has no types
    except ImportError:
        raise MissingExtra("keys of NATS need nkeys: pip install 'flyball[nats]'") from None
    return nkeys
