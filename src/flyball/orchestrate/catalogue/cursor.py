"""Cursors: where a page ended, as text that is safe in a URL and says nothing by itself.

It names the loop that was looked at last. Where that stands among the others never changes, so the cursor is
good for as long as the loop is there.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode

from flyball.core.errors import InvalidRequest

_MARK = b"1:"
"""What a cursor begins with: the form that it has."""


def write_cursor(loop_id: str) -> str:
    """The cursor of a page that ended with this loop."""
    return urlsafe_b64encode(_MARK + loop_id.encode("utf-8", "surrogatepass")).decode().rstrip("=")


def read_cursor(cursor: str) -> str:
    """The loop that a page ended with.

    Raises:
        InvalidRequest: it is no cursor.
    """
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        data = urlsafe_b64decode(padded)
        if data.startswith(_MARK) and len(data) > len(_MARK):
            loop_id = data[len(_MARK) :].decode("utf-8", "surrogatepass")
            if write_cursor(loop_id) == cursor:
                return loop_id
    except ValueError:
        pass
    raise wrong_cursor(cursor)


def wrong_cursor(cursor: str) -> InvalidRequest:
    """The error for what is no cursor, or one whose loop is gone."""
    return InvalidRequest(
        f"cursor={cursor[:100]!r} is none of this journal's: give the `next` of a page, or leave it out to "
        "begin anew",
        field="cursor",
    )
