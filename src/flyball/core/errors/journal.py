"""What goes wrong with journals."""

from __future__ import annotations

from flyball.core.errors.orchestration import OrchestrationFailure


class JournalFailure(OrchestrationFailure):
    """The journal could not be read or written: the disk is full, the file is locked."""

    code = "ORCHESTRATION_JOURNAL_FAILED"


class JournalConflict(JournalFailure):
    """Somebody else appended first: details `loop_id`, `expected`, `actual`."""

    code = "ORCHESTRATION_JOURNAL_CONFLICT"
    retryable = True


class LoopTakenOver(JournalConflict):
    """Another driver resumed this loop; this one has stopped and lost nothing that was recorded."""

    code = "ORCHESTRATION_LOOP_TAKEN_OVER"
    retryable = False


class JournalCorrupt(JournalFailure):
    """The journal's bytes are not events of a loop."""

    code = "ORCHESTRATION_JOURNAL_CORRUPT"


class JournalTooNew(JournalFailure):
    """A newer flyball wrote this; details `version`, or the event's `kind`, and `supported`."""

    code = "ORCHESTRATION_JOURNAL_TOO_NEW"


class JournalFull(JournalFailure):
    """There is no room for more: an account's quota is used up; details `tenant`. What is there is safe."""

    code = "ORCHESTRATION_JOURNAL_FULL"
    retryable = True


class JournalUnreachable(JournalFailure):
    """The server that has the journal does not answer; whether the last append was taken is not known."""

    code = "ORCHESTRATION_JOURNAL_UNREACHABLE"
    retryable = True


class LoopNotFound(JournalFailure):
    """The journal holds no such loop."""

    code = "ORCHESTRATION_LOOP_NOT_FOUND"
