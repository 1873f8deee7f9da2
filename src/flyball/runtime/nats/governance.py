"""Violations on the wire: a stream of their own, in SemStreams' form, kept for 90 days."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from flyball.core.forms.times import stamp
from flyball.orchestrate.projections import PolicyViolation
from flyball.runtime.nats.connection import Connection
from flyball.runtime.nats.layout import make
from flyball.runtime.nats.subjects import GOVERNANCE, GOVERNANCE_SUBJECTS

_DAY = 24 * 3600.0
_KEPT = 90 * _DAY


async def make_governance(connection: Connection, replicas: int) -> None:
    """Make the stream, unless it is there.

    Raises:
        UserError: the server does not make it; the message says why.
    """
    from nats.js.api import StorageType, StreamConfig

    if connection.identity.is_set_up_for:
        return
    config = StreamConfig(
        GOVERNANCE,
        description="what filters found in flyball's loops; it follows from the journals",
        subjects=[GOVERNANCE_SUBJECTS],
        max_age=_KEPT,
        storage=StorageType.FILE,
        num_replicas=replicas,
        # They are few, and a projector may come back after hours: doubles are known for a day.
        duplicate_window=_DAY,
        allow_direct=True,
    )
    await make(connection, GOVERNANCE, partial(connection.js.add_stream, config))


def write_violation(violation: PolicyViolation) -> bytes:
    """A violation as SemStreams writes one: never with the text that it is about."""
    one: dict[str, Any] = {
        "violation_id": violation.id,
        "filter_type": violation.filter,
        "severity": violation.severity,
        "timestamp": stamp(violation.at),
        "user_id": violation.user_id,
        "session_id": violation.session_id,
        "channel_id": violation.channel,
        "action_taken": violation.action,
        "details": {
            "kind": violation.kind,
            "count": violation.count,
            "direction": violation.direction,
            "filter_chain": violation.by,
        },
        "metadata": {"loop_id": violation.loop_id, "turn": violation.turn, "event": violation.number},
    }
    return msgspec.json.encode(one)
