"""Keys: Ed25519, written as multikeys (`z6Mk…` public, `z3u2…` secret).

`cryptography` does the mathematics. It is imported when the first key is used, and not before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flyball.core.errors import IdentityInvalid, MissingExtra
from flyball.identity import base58
from flyball.identity.did import DID, KEY

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_BASE58 = "z"
_PUBLIC, _SECRET = b"\xed\x01", b"\x80\x26"
"""What says which kind of key follows."""
_LENGTH = 32


class SigningKey:
    """A secret key, which signs. Nothing but `secret` gives it away."""

    __slots__ = ("_key", "public")

    def __init__(self, seed: bytes) -> None:
        self._key: Ed25519PrivateKey = _ed25519().Ed25519PrivateKey.from_private_bytes(seed)
        self.public: bytes = self._key.public_key().public_bytes_raw()
        """The public key, of 32 bytes."""

    @classmethod
    def new(cls) -> SigningKey:
        """A key that nobody else has."""
        return cls(_ed25519().Ed25519PrivateKey.generate().private_bytes_raw())

    @classmethod
    def read(cls, secret: str) -> SigningKey:
        """The key that `secret` gave.

        Raises:
            IdentityInvalid: the text is no secret key.
        """
        return cls(_decoded(secret, _SECRET, "a secret key"))

    @property
    def secret(self) -> str:
        """The key as text: for where it is kept, and nobody else."""
        return _BASE58 + base58.encode(_SECRET + self._key.private_bytes_raw())

    @property
    def did(self) -> DID:
        """The did:key of this key."""
        return DID.key(written(self.public))

    def sign(self, data: bytes) -> bytes:
        """A signature, the same each time."""
        return self._key.sign(data)

    def __repr__(self) -> str:
        return f"<SigningKey of {self.did}>"


def signed_by(public: bytes, signature: bytes, data: bytes) -> bool:
    """Whether the owner of a public key has signed something."""
    from cryptography.exceptions import InvalidSignature

    try:
        _ed25519().Ed25519PublicKey.from_public_bytes(public).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True


def written(public: bytes) -> str:
    """A public key as text."""
    return _BASE58 + base58.encode(_PUBLIC + public)


def read_public(text: str) -> bytes:
    """The public key that a text is.

    Raises:
        IdentityInvalid: it is none, or of another kind than Ed25519.
    """
    return _decoded(text, _PUBLIC, "a public key of Ed25519")


def key_of(did: DID) -> bytes:
    """The public key that a did:key is.

    Raises:
        IdentityInvalid: it is no did:key of Ed25519.
    """
    if did.method != KEY:
        raise IdentityInvalid(f"{did} is no did:key", where="did")
    return read_public(did.id)


def _decoded(text: str, prefix: bytes, what: str) -> bytes:
    data = base58.decode(text[1:]) if text.startswith(_BASE58) else b""
    if not data.startswith(prefix) or len(data) != len(prefix) + _LENGTH:
        # The text itself may be a secret: it is not told.
        raise IdentityInvalid(f"this is no text of {what}, which is multibase and begins with {_BASE58!r}")
    return data[len(prefix) :]


def _ed25519() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise MissingExtra(
            "keys and signatures need cryptography: pip install 'flyball[identity]'"
        ) from error
    return ed25519
