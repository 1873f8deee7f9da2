"""Whether a credential holds, and if not, why."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Problem(StrEnum):
    """What is wrong with a credential, or with a chain of them."""

    MALFORMED = "malformed"
    UNKNOWN_ISSUER = "unknown_issuer"
    UNRESOLVED = "unresolved"
    """The issuer's key could not be found out just now."""
    BAD_SIGNATURE = "bad_signature"
    NOT_YET_VALID = "not_yet_valid"
    EXPIRED = "expired"
    REVOKED = "revoked"
    STATUS_UNKNOWN = "status_unknown"
    """Somebody else keeps whether it was revoked, and cannot be asked from here."""

    # Of chains
    NOT_HELD = "not_held"
    """No credential speaks of it."""
    BROKEN_LINK = "broken_link"
    """It was handed on by somebody other than the one whose credential it is."""
    WIDENED = "widened"
    """It was handed on by somebody who did not hold it."""
    LOOP = "loop"
    """It was handed on in a circle."""
    TOO_LONG = "too_long"
    """It was handed on more often than is allowed."""


class Verdict(Struct, frozen=True):
    """True if it holds; else `problem` is for programs, and `reason` for people."""

    problem: Problem | None = None
    reason: str = ""

    def __bool__(self) -> bool:
        return self.problem is None


HOLDS = Verdict()
