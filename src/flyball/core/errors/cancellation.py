"""What was ended from outside."""

# ruff: noqa: N818 - the categories and many of the errors bear pagantic's and gollem's names

from __future__ import annotations

from flyball.core.errors.root import FailureCategory, FlyballError


class Cancellation(FlyballError):
    """The run was ended from outside."""

    code = "CANCELLED_SIGNAL"
    category = FailureCategory.CANCELLATION


class CancelledTimeout(Cancellation):
    """The deadline passed."""

    code = "CANCELLED_TIMEOUT"


class CancelledSignal(Cancellation):
    """Somebody cancelled: details `by`, `reason`."""
