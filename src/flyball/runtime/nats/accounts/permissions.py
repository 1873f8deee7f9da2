"""What each role may do in its account: the subjects that its code uses, and no others.

Answers come to `_INBOX.<role>.>`: no role hears those of another. Nobody may make, change, purge or delete a
stream of the journal or of the wire: `flyball tenants` has made them. Model and tools workers make no
consumers (see `hiring`), and read no stream but by the consumers that are theirs.

A server answers on whatever subject who asks has named, also on one where he may say nothing himself. So what
model and tools workers may ask is answered in JetStream's own words, which nobody takes for a message of the
wire, or under the subject that a message was stored with; and never by the bare content of what they wrote,
as by a direct get. Of journals they do not even know the subjects (`Layout.salt`).

One thing this does not keep from: such an answer that is sent to JetStream's own interface is obeyed there,
and can purge or delete a stream.
"""

from __future__ import annotations

from msgspec import Struct

from flyball.runtime.nats.identity import INBOX, Role
from flyball.runtime.nats.subjects import DEAD
from flyball.runtime.nats.wire import (
    AGENT,
    AGENT_MODELS,
    AGENT_TOOLS,
    BLOBS,
    CLAIMS,
    TOOL_BLOBS,
    WIRE_BLOBS,
)
from flyball.runtime.nats.workers.projector import LARGE, LOOPS, TRAJECTORIES

_JS = "$JS.API"
_EVERYBODY = ("fly.nowhere",)
"""Where the server itself answers that all was heard."""


class Permissions(Struct, frozen=True):
    """What may be published and heard; with `responds`, also an answer to whoever asks."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    responds: bool = False


def permissions(role: Role) -> Permissions:
    """What a role may do."""
    say, hear = _MAY[role]
    return Permissions(
        tuple(dict.fromkeys((*_EVERYBODY, *say))),
        (f"{INBOX}.{role}.>", *dict.fromkeys(hear)),
        responds=role in (Role.API, Role.ALL),
    )


def _taking(stream: str, consumer: str = "*") -> tuple[str, ...]:
    """Taking messages of a stream by a consumer that is there, and saying what became of them."""
    ours = f"{stream}.{consumer}"
    return f"{_JS}.CONSUMER.MSG.NEXT.{ours}", f"$JS.ACK.{ours}.>", f"$JS.ACK.*.*.{ours}.>"


def _keeping(store: str) -> tuple[str, ...]:
    """Putting objects into a store, reading them, and letting go of them."""
    stream = f"OBJ_{store}"
    return f"$O.{store}.>", f"{_JS}.STREAM.MSG.GET.{stream}", f"{_JS}.STREAM.PURGE.{stream}"


_READING = (f"{_JS}.STREAM.INFO.*", f"{_JS}.STREAM.MSG.GET.*", f"{_JS}.DIRECT.GET.>")
_JOURNAL = ("fly.j.>", f"$O.{BLOBS}.>")
_WIRE = ("agent.>", "user.message.>", "tool.>", "model.for.*", *_keeping(WIRE_BLOBS), *_keeping(TOOL_BLOBS))
_API = (
    (*_READING, *_JOURNAL, *_WIRE, f"{_JS}.STREAM.MSG.DELETE.{DEAD}"),
    ("fly.n.>", "fly.d.*", "fly.dead.>", "user.response.>"),
)
_LOOP = (
    (
        *_READING,
        *_JOURNAL,
        *_WIRE,
        "timer.at.*",
        "governance.violation.*",
        "fly.dead.>",
        "fly.x.*",
        "fly.b.*",
        f"{INBOX}.>",  # who sent a signal hears whether it was taken; who asked to be hired, that he is
        f"$KV.{CLAIMS}.>",
        f"$KV.{LOOPS}.>",
        f"$KV.{TRAJECTORIES}.>",
        *_keeping(LARGE),
        f"{_JS}.CONSUMER.DURABLE.CREATE.*.*",
        f"{_JS}.CONSUMER.INFO.*.*",
        *_taking("*"),
    ),
    ("fly.n.>", "fly.hire.*"),
)
_MODEL = (
    (
        "agent.response.*",
        "model.for.*",
        "fly.d.*",
        "fly.dead.*.agent.request.*",
        "fly.hire.model",
        *_taking(AGENT, "model"),
        *_taking(AGENT_MODELS),
        f"{_JS}.CONSUMER.INFO.{AGENT_MODELS}.*",
        f"$KV.{CLAIMS}.begun.{AGENT}.*",
        f"$KV.{CLAIMS}.begun.{AGENT_MODELS}.*",
        f"{_JS}.STREAM.MSG.GET.KV_{CLAIMS}",
        *_keeping(WIRE_BLOBS),
    ),
    ("fly.x.*",),
)
_TOOLS = (
    (
        "tool.result.*",
        "tool.for.*",
        "fly.dead.*.tool.execute.*",
        "fly.hire.tools",
        *_taking(AGENT_TOOLS),
        f"{_JS}.CONSUMER.INFO.{AGENT_TOOLS}.*",
        f"$KV.{CLAIMS}.*",  # what may start once; up to where people were told lies elsewhere
        f"$KV.{CLAIMS}.begun.{AGENT_TOOLS}.*",
        f"{_JS}.STREAM.MSG.GET.KV_{CLAIMS}",
        *_keeping(TOOL_BLOBS),
    ),
    ("fly.x.*", "fly.b.*"),
)
_DISPATCH = (
    (
        *_API[0],
        "user.response.>",
        "fly.dead.>",
        f"{INBOX}.>",
        f"$KV.{CLAIMS}.>",
        f"{_JS}.CONSUMER.DURABLE.CREATE.*.dispatch",
        f"{_JS}.CONSUMER.INFO.*.*",
        *_taking("*", "dispatch"),
    ),
    _API[1],
)
_EVERY = (_API, _LOOP, _MODEL, _TOOLS, _DISPATCH)
_MAY: dict[Role, tuple[tuple[str, ...], tuple[str, ...]]] = {
    Role.API: _API,
    Role.LOOP: _LOOP,
    Role.MODEL: _MODEL,
    Role.TOOLS: _TOOLS,
    Role.DISPATCH: _DISPATCH,
    Role.ALL: (
        tuple([one for say, _ in _EVERY for one in say]),
        tuple([one for _, hear in _EVERY for one in hear]),
    ),
}
