"""How loops are named on the wire: subjects made of ids that anybody may have chosen.

A subject's tokens are set apart by dots, and some characters mean something in them. An id that is no plain
word is therefore written in another way, and no two ids are written alike:

    order-17        as it is: letters, digits, `-` and `_`
    =YS5i           any other text, in base64
    ~Zk3…           the hash of an id that is too long for a subject; who needs the id itself reads the entry
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from hashlib import sha256
from zlib import crc32

from flyball.core.errors import UserError

_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,128}", re.ASCII)
_SALT = re.compile(r"\b(fly\.[jn]\.\d+)-[^.\s]+", re.IGNORECASE)
_INBOXES = ("_INBOX.", "_R_.")
"""What subjects of answers begin with: those that users make, and those that servers do between accounts."""
_LONGEST = 128
"""Bytes of an id that are written out: a server takes subjects of a few thousand, all in all."""


def token(name: str) -> str:
    """An id as one token of a subject. Different ids give different tokens.

    Raises:
        UserError: it is empty, or no Unicode text.
    """
    if _PLAIN.fullmatch(name):
        return name
    if not name:
        raise UserError("a loop needs an id: the loop id is empty")
    try:
        data = name.encode()
    except UnicodeEncodeError as error:
        raise UserError(f"the loop id {name!r} is no Unicode text: {error}") from error
    mark, data = ("=", data) if len(data) <= _LONGEST else ("~", sha256(data).digest())
    return mark + urlsafe_b64encode(data).decode().rstrip("=")


def is_inbox(subject: str) -> bool:
    """Whether a subject is one for answers: who asks may name any, and is answered on no other."""
    return subject.startswith(_INBOXES)


def bucket_key(name: str) -> str:
    """An id as a key of a bucket: its token, in the letters that a key may have."""
    return token(name).replace("~", "==")


def partition(name: str, partitions: int) -> int:
    """The partition that a token belongs to: the same for everybody, for as long as their number stays."""
    return crc32(name.encode()) % partitions


class LoopSubjects:
    """The subjects of one loop's journal."""

    __slots__ = ("all", "noticed", "stream", "token")

    def __init__(self, loop_id: str, partitions: int, salt: str = "") -> None:
        self.token = token(loop_id)
        number = partition(self.token, partitions)
        self.stream = journal_stream(number)
        """The stream that has its entries."""
        self.all = f"fly.j.{_salted(number, salt)}.{self.token}.>"
        """All its entries."""
        self.noticed = f"fly.n.{_salted(number, salt)}.{self.token}.>"
        """Where it is told that an entry was stored."""

    def entry(self, kind: str) -> str:
        """The subject of an entry of a kind."""
        return f"{self.all[:-1]}{kind}"


ENTRIES = "fly.j."
"""What the subjects of entries begin with."""
BEGIN = "begin"
"""The kind of a loop's first entry."""


def journal_stream(number: int) -> str:
    """The stream of a partition."""
    return f"JOURNAL_{number}"


def journal_subjects(number: int, salt: str = "") -> str:
    """All subjects of a partition. `salt`: see `Layout`."""
    return f"fly.j.{_salted(number, salt)}.>"


def noticed_subjects(number: int, salt: str = "") -> str:
    """Where a partition tells what was stored."""
    return f"fly.n.{_salted(number, salt)}.>"


def beginnings(number: int, salt: str = "") -> str:
    """The first entries of a partition's loops."""
    return entries(number, BEGIN, salt)


def entries(number: int, kind: str, salt: str = "") -> str:
    """The entries of a kind of a partition's loops."""
    return f"fly.j.{_salted(number, salt)}.*.{kind}"


def unsalted(text: str) -> str:
    """A text that may name subjects of journals, for people and logs: without their salt, which is a secret.

    It keeps who cannot read journals from naming their subjects; see `Layout`.
    """
    return _SALT.sub(r"\1", text)


def _salted(number: int, salt: str) -> str:
    return f"{number}-{salt}" if salt else str(number)
