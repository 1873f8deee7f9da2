"""Which failures each pattern can end with, and which it recovers from: pagantic's matrix, as data."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from flyball.core.errors import FailureCategory
from flyball.orchestrate.lifecycle.phases import Mode

_INFERENCE, _TOOL = FailureCategory.INFERENCE, FailureCategory.TOOL
_CONSTRAINT, _VALIDATION = FailureCategory.CONSTRAINT, FailureCategory.VALIDATION
_ORCHESTRATION, _CANCELLATION = FailureCategory.ORCHESTRATION, FailureCategory.CANCELLATION


class Failures(Struct, frozen=True):
    """What may become of the failures in a pattern.

    A category that is in both is recovered from as far as that goes: by repair, by asking again, by another
    replica; if nothing helps, the pattern ends with it. What is set up wrongly is told before any of them
    begins, by all.
    """

    emits: frozenset[FailureCategory]
    recovers: frozenset[FailureCategory]


FAILURES: Mapping[Mode, Failures] = {
    Mode.CHAT: Failures(frozenset({_INFERENCE, _TOOL, _CANCELLATION}), frozenset({_TOOL})),
    Mode.STRUCTURED: Failures(
        frozenset({_INFERENCE, _CONSTRAINT, _VALIDATION, _CANCELLATION}),
        frozenset({_CONSTRAINT, _VALIDATION}),
    ),
    Mode.PLAN: Failures(frozenset(FailureCategory), frozenset({_CONSTRAINT, _VALIDATION, _TOOL})),
    Mode.REDUNDANT: Failures(
        frozenset({_INFERENCE, _CONSTRAINT, _ORCHESTRATION, _CANCELLATION}),
        frozenset({_INFERENCE, _CONSTRAINT}),
    ),
}
"""The matrix: `tests/orchestrate/test_taxonomy.py` proves each of its cells."""
