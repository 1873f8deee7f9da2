"""What stands in a text in base64, in hexadecimal digits, or in letters that cannot be seen (Unicode's tags),
wherever it begins and however it is broken up.

The characters of the encoding are taken out of the text, without all that stands between them (lines, spaces,
quotes), and decoded from each place in a group at which it may begin. So nothing has to be guessed of where a
piece begins or ends, however many there are, and it takes time in proportion to the text. What comes out as
text is given; the most of it comes out as none.
"""

from __future__ import annotations

import re
from binascii import a2b_base64
from collections.abc import Iterator

_NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/]+")
_HEX_MARK = re.compile(r"0x|\\[xu]|[uU]\+(?:00)?|&#x", re.IGNORECASE)
_NOT_HEX = re.compile(r"[^0-9a-fA-F]+")
_URL_SAFE = str.maketrans("-_", "+/")
_NO_TAG = re.compile("[^\U000e0020-\U000e007e]+")
_AS_ASCII = {0xE0000 + code: code for code in range(0x20, 0x7F)}
_SAID = re.compile("[^\x00-\x08\x0e-\x1f\x7f-\x9f\ufffd]{12,}")
"""A row of characters that may be text: of bytes by chance, few are."""


def decoded(text: str) -> Iterator[str]:
    """What may be text in what a text says encoded. The text is in plain letters."""
    both = [_NOT_BASE64.sub("", one) for one in (text, text.translate(_URL_SAFE))]
    for characters in dict.fromkeys(both):
        for start in range(4):
            yield from _texts(_from_base64(characters[start:]))
    digits = _NOT_HEX.sub("", _HEX_MARK.sub("", text))
    for start in range(2):
        stop = len(digits) - (len(digits) - start) % 2
        yield from _texts(bytes.fromhex(digits[start:stop]))


def in_tags(text: str) -> str:
    """What a text says in tags: letters of ASCII that nobody sees, and a model may read."""
    return "" if text.isascii() else _NO_TAG.sub("", text).translate(_AS_ASCII)


def _from_base64(characters: str) -> bytes:
    """The bytes of characters of base64; one that is left over says nothing."""
    left = len(characters) % 4
    whole = characters[:-1] if left == 1 else characters
    return a2b_base64(whole + "=" * (-len(whole) % 4))


def _texts(data: bytes) -> list[str]:
    return _SAID.findall(data.decode("utf-8", "replace"))
