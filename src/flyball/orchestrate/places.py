"""Names of places: of a channel, of a conversation there."""

from __future__ import annotations


def place_name(*parts: str) -> str:
    """The name of what these parts say, with `/` between them: no two lists of parts have the same.

    Within a part `/` is written `%2F`, and `%` is `%25`; what has neither of them stands as it is.
    """
    return "/".join([part.replace("%", "%25").replace("/", "%2F") for part in parts])
