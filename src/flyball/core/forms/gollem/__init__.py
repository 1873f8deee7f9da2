"""gollem's serialised messages and tools as JSON.

A message is `{"kind": "request"|"response", "data": {...}}`, a part `{"type": ..., "data": {...}}`. gollem's
requests mix system, user, tool-return and retry parts; our messages have one role each. So a request is split
where the role changes, and messages that are not the assistant's are grouped into one request until another
must begin: where two messages in a row have the same role, or where a message brings keys of its own.

What gollem knows and our types have no place for is kept under the key `gollem` in `extra`: the unknown keys
of an envelope (`envelope`), a part's own time, where it is not the message's (`timestamp`), that a request
began here (`apart`), and values that our types do not allow (`finish_reason`, `detail`, `tool_name`).

Normalised: a known key that is null or missing is written with its zero value (a time: Go's zero time), and
left out if Go leaves it out when empty; a request without parts is dropped; usage without any count is none.
"""

from flyball.core.forms.gollem.messages import (
    decode_messages,
    decode_model_response,
    decode_request_parts,
    encode_messages,
    encode_model_response,
    encode_request_parts,
    marshal_messages,
    unmarshal_messages,
)
from flyball.core.forms.gollem.snapshot import (
    RunSnapshot,
    decode_run_snapshot,
    encode_run_snapshot,
    marshal_snapshot,
    unmarshal_snapshot,
)
from flyball.core.forms.gollem.tools import (
    read_run_usage,
    read_tool_choice,
    read_tool_definition,
    read_usage,
    write_run_usage,
    write_tool_choice,
    write_tool_definition,
    write_usage,
)

__all__ = [
    "RunSnapshot",
    "decode_messages",
    "decode_model_response",
    "decode_request_parts",
    "decode_run_snapshot",
    "encode_messages",
    "encode_model_response",
    "encode_request_parts",
    "encode_run_snapshot",
    "marshal_messages",
    "marshal_snapshot",
    "read_run_usage",
    "read_tool_choice",
    "read_tool_definition",
    "read_usage",
    "unmarshal_messages",
    "unmarshal_snapshot",
    "write_run_usage",
    "write_tool_choice",
    "write_tool_definition",
    "write_usage",
]
