"""Base58, as Bitcoin has it: how keys and signatures are written into DIDs and proofs.

Each run of bytes has exactly one text, so that nobody can write the same signature in another way.
"""

from __future__ import annotations

from flyball.core.errors import IdentityInvalid

_ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_DIGITS = {character: number for number, character in enumerate(_ALPHABET)}
_LONGEST = 1024
"""Characters that are read: the work grows with their square, and a signature has 88."""


def encode(data: bytes) -> str:
    """Bytes as text; zeros at the beginning are kept."""
    number = int.from_bytes(data, "big")
    digits: list[str] = []
    while number:
        number, digit = divmod(number, 58)
        digits.append(_ALPHABET[digit])
    zeros = len(data) - len(data.lstrip(b"\0"))
    return _ALPHABET[0] * zeros + "".join(reversed(digits))


def decode(text: str) -> bytes:
    """The bytes of a text.

    Raises:
        IdentityInvalid: it has a character that is none of the alphabet's, or is too long.
    """
    if len(text) > _LONGEST:
        raise IdentityInvalid(f"a text of base58 has at most {_LONGEST} characters here, not {len(text)}")
    number = 0
    for character in text:
        digit = _DIGITS.get(character)
        if digit is None:
            raise IdentityInvalid(f"{character!r} is no character of base58, in {text[:100]!r}")
        number = number * 58 + digit
    zeros = len(text) - len(text.lstrip(_ALPHABET[0]))
    return bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8, "big")
