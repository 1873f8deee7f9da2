"""Exit codes: what a script learns without reading anything. They are stable, as the codes of errors are."""

from __future__ import annotations

import signal
from collections.abc import Mapping

from flyball.core.errors import (
    CancelledSignal,
    CancelledTimeout,
    FailureCategory,
    FlyballError,
    SystemError,  # noqa: A004 - pagantic's name for it
    UserError,
)

OK = 0
UNEXPECTED = 1
"""A fault in flyball itself; for `doctor`: something that is needed is broken."""
USAGE = 2
"""The command was written wrongly, or asked for what cannot be."""
TIMEOUT = 124
"""The deadline passed, as `timeout` has it."""
BROKEN_PIPE = 141
"""Who read the output has gone, as a shell has it."""

BY_CATEGORY: Mapping[FailureCategory, int] = {
    FailureCategory.CONFIGURATION: 3,
    FailureCategory.INFERENCE: 4,
    FailureCategory.TOOL: 5,
    FailureCategory.CONSTRAINT: 6,
    FailureCategory.VALIDATION: 7,
    FailureCategory.ORCHESTRATION: 8,
    FailureCategory.CANCELLATION: 9,
}

SIGNAL = "signal"
"""The detail of an error that holds the number of the signal which stopped this process."""
RUN = "run"
"""The detail of an error that holds the id of the run which it left as it is recorded."""


def stopped(number: int, told: BaseException | None = None) -> CancelledSignal:
    """The error of a command that a signal stopped, with what it told about it itself."""
    word = "interrupted" if number == signal.SIGINT else f"stopped by {signal.Signals(number).name}"
    more = told if isinstance(told, CancelledSignal) else None
    error = CancelledSignal(f"{word}: {more.message}" if more else word)
    error.details = {**(more.details if more else {}), SIGNAL: int(number)}
    return error


def exit_code(error: FlyballError | SystemError) -> int:
    """The exit code of an error."""
    number = (error.details or {}).get(SIGNAL)
    if isinstance(number, int):
        return 128 + number
    if error.code == CancelledTimeout.code:
        return TIMEOUT
    if error.code == UserError.code:
        return USAGE
    return BY_CATEGORY[error.category]
