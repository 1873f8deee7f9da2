"""That something was found which should not pass, and what was done about it, as it is recorded."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Severity(StrEnum):
    """How bad it is."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


class Action(StrEnum):
    """What was done about it, in SemStreams' words."""

    BLOCKED = "blocked"
    """It did not pass."""
    REDACTED = "redacted"
    """Something else passed in its place."""
    FLAGGED = "flagged"
    """It passed, because it was not bad enough."""
    LOGGED = "logged"
    """It passed, because nothing is held up under this policy."""


class Finding(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True, gc=False):
    """What a filter found, and what was done about it. The text itself is not in it.

    `by` is the interceptor in which the filter stands. `again`: an earlier turn had what it is in, too.
    """

    by: str
    filter: str
    kind: str
    severity: Severity
    action: Action
    count: int = 1
    again: bool = False
