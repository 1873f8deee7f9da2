"""RunSnapshot in gollem's JSON."""

from __future__ import annotations

from msgspec import json

from flyball.core.forms.fields import Fields, decoded, entered, filled, written
from flyball.core.forms.gollem.messages import encode_messages, messages_from
from flyball.core.forms.gollem.notes import kept, unknown_of
from flyball.core.forms.gollem.parts import note_of_time
from flyball.core.forms.gollem.tools import run_usage_from, write_run_usage
from flyball.core.forms.times import ZERO_TIME, seconds, stamp
from flyball.core.messages import JSON
from flyball.core.snapshot import RunSnapshot
from flyball.core.usage import RunUsage

_SNAPSHOT = frozenset(
    {
        "messages",
        "usage",
        "last_input_tokens",
        "retries",
        "tool_retries",
        "run_id",
        "parent_run_id",
        "run_step",
        "run_start_time",
        "prompt",
        "tool_state",
        "timestamp",
    }
)


def encode_run_snapshot(snapshot: RunSnapshot) -> dict[str, JSON]:
    """A snapshot as JSON.

    Raises:
        InvalidMessage: a message has content that the form cannot hold, or a time is none.
    """
    known: dict[str, JSON] = {
        "messages": encode_messages(snapshot.messages),
        "usage": write_run_usage(snapshot.usage),
        "last_input_tokens": snapshot.last_input_tokens,
        "retries": snapshot.retries,
        "run_id": snapshot.run_id,
        "run_step": snapshot.run_step,
        "run_start_time": _time(snapshot, "run_start_time", snapshot.run_start_time),
        "prompt": snapshot.prompt,
        "timestamp": _time(snapshot, "timestamp", snapshot.timestamp),
    }
    known |= filled(
        tool_retries=snapshot.tool_retries,
        parent_run_id=snapshot.parent_run_id,
        tool_state=snapshot.tool_state,
    )
    return written(known, unknown_of(snapshot.extra), _SNAPSHOT)


def decode_run_snapshot(document: object) -> RunSnapshot:
    """A snapshot from JSON.

    Raises:
        InvalidMessage: it is malformed.
    """
    return _decode(entered(document, "snapshot"))


def marshal_snapshot(snapshot: RunSnapshot) -> bytes:
    """A snapshot as bytes; raises as `encode_run_snapshot` does."""
    return json.encode(encode_run_snapshot(snapshot))


def unmarshal_snapshot(data: bytes | str) -> RunSnapshot:
    """A snapshot from bytes; raises as `decode_run_snapshot` does."""
    return _decode(decoded(data, "snapshot"))


def _decode(value: JSON) -> RunSnapshot:
    fields = Fields(value, "snapshot")
    usage, retries = fields.any("usage"), fields.mapping("tool_retries")
    if retries is not None:
        inner = Fields(retries, fields.place("tool_retries"))
        retries = {key: inner.whole(key) or 0 for key in retries}
    started, taken = (fields.text(key) or ZERO_TIME for key in ("run_start_time", "timestamp"))
    run_start_time = seconds(started, fields.place("run_start_time"))
    timestamp = seconds(taken, fields.place("timestamp"))
    return RunSnapshot(
        messages=messages_from(fields.any("messages"), fields.place("messages")),
        usage=RunUsage() if usage is None else run_usage_from(usage, fields.place("usage")),
        last_input_tokens=fields.whole("last_input_tokens") or 0,
        retries=fields.whole("retries") or 0,
        tool_retries=retries,
        run_id=fields.text("run_id"),
        parent_run_id=fields.text("parent_run_id"),
        run_step=fields.whole("run_step") or 0,
        run_start_time=run_start_time,
        prompt=fields.text("prompt"),
        tool_state=fields.mapping("tool_state"),
        timestamp=timestamp,
        extra=kept(
            fields.rest(),
            run_start_time="" if started == stamp(run_start_time) else started,
            timestamp="" if taken == stamp(timestamp) else taken,
        ),
    )


def _time(snapshot: RunSnapshot, key: str, moment: float | None) -> str:
    own = note_of_time(snapshot.extra, key)
    return own if own and seconds(own, key) == moment else stamp(moment)
