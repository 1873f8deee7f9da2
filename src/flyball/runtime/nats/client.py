"""The client library's client, with the one thing changed that costs most: how headers are read.

The library looks at every character of every header's name, for every message. Names are few, and are looked
at once here. The result is the same; a test holds both to it.
"""

from __future__ import annotations

from nats.aio.client import Client

_MOST = 1_000
"""How many names are kept in mind: anybody may send any."""
_names: dict[bytes, str] = {}
"""Header names as text; an empty text for one that counts as none."""


class FastClient(Client):
    """nats-py's client."""

    @staticmethod
    def _parse_header_lines(raw: bytes) -> dict[str, str]:
        headers: dict[str, str] = {}
        for line in raw.split(b"\r\n"):
            name, mark, value = line.partition(b":")
            if not mark:
                continue
            key = _names.get(name)
            if key is None:
                key = _read_name(name)
            if key:
                headers[key] = value.strip().decode("utf-8", "replace")
        return headers


def _read_name(name: bytes) -> str:
    """A header's name as text; nothing of one that is not ASCII, or has a blank inside."""
    try:
        key = name.strip().decode("ascii")
    except UnicodeDecodeError:
        key = ""
    if any(letter.isspace() for letter in key):
        key = ""
    if len(_names) < _MOST:
        _names[name] = key
    return key
