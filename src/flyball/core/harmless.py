"""Text of others, made harmless: it does nothing to a terminal but to be read, and hides nothing.

What a model, a tool or a journal says may hold characters that are orders to a terminal (ANSI escapes), that
turn the order of what is read around (bidi controls), or that cannot be seen at all. None of them is needed
to read a text, and each of them can be used to show somebody something else than what is there.

    ␛[2J            an escape sequence: its first character is a picture, the rest are letters
    ⟨U+202E⟩        a bidi control, or any other character that is not to be seen

What is left as it is: line ends, tabs, and the two joiners where words and emoji are written with them.
"""

from __future__ import annotations

import re

_INVISIBLE = (
    "\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufeff\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""All format characters of Unicode, and what else has no shape; but not what chooses how emoji are drawn."""
_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
_SURROGATES = "\ud800-\udfff"
_JOINER = "\u200c\u200d"
_WORD = f"[^\x00-\x7f{_JOINER}]"
_LINE_END = re.compile("\r\n")
_ANY = re.compile(f"(?P<joins>(?<={_WORD})[{_JOINER}](?={_WORD}))|[{_CONTROLS}{_INVISIBLE}{_SURROGATES}]")


def harmless(text: str) -> str:
    r"""The text with a visible mark for each character that is an order, or not to be seen.

    Of `\r\n` the line end is left. Text that has none of them is given back as it is; doing it twice does
    nothing more.
    """
    if text.isprintable() and not _ANY.search(text):
        return text
    return _ANY.sub(_marked, _LINE_END.sub("\n", text))


def _marked(found: re.Match[str]) -> str:
    code = ord(found.group())
    if found.lastgroup == "joins":
        return found.group()
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    return f"⟨U+{code:04X}⟩"
