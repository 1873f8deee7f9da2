"""What each role may do in its account: the subjects that its code uses, and no others.

Answers come to `_INBOX.<role>.<user>.>`: nobody hears those of another user. Nobody is to make, change, purge
or delete a stream of the journal or of the wire: `flyball tenants` has made them. Model and tools workers
make no consumers (see `hiring`), and read no stream but by the consumers that are theirs.

A server answers on whatever subject who asks has named, also on one where he may say nothing himself: on one
of JetStream's own, an empty answer deletes a stream. No permission limits that. So model and tools workers
are users of accounts of their own (see `sharing`), and what is answered them can name nothing of the
tenant's. Who is in the tenant's account itself (`api`, `loop`, `dispatch`, `all`) is trusted there: these
roles write journals, and by where they have something answered they can also do what is not listed here,
such as to delete a stream. What is listed keeps them from doing so by mistake.
"""

from __future__ import annotations

from msgspec import Struct

from flyball.runtime.nats.identity import API, API_ELSEWHERE, INBOX, Role
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

_JS = API
APART: tuple[Role, ...] = (Role.MODEL, Role.TOOLS)
"""The roles whose users are in accounts of their own."""
EVERYBODY = ("fly.nowhere",)
"""Where the server itself answers that all was heard."""


class Permissions(Struct, frozen=True):
    """What may be published and heard."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]


def permissions(role: Role, user: str = "") -> Permissions:
    """What a role may do, in the account that its users are in.

    Answers to a `user` (its public key) come where no other user hears them.
    """
    say, hear = _MAY[role]
    inbox = f"{INBOX}.{role}.{user}.>" if user else f"{INBOX}.{role}.>"
    said = dict.fromkeys((*EVERYBODY, *(map(elsewhere, say) if role in APART else say)))
    return Permissions(tuple(said), (inbox, *dict.fromkeys(hear)))


def asked_of_tenant(role: Role) -> tuple[str, ...]:
    """What a role that is apart asks of the tenant's account, by the subjects there."""
    return tuple(dict.fromkeys(_MAY[role][0]))


def heard_of_tenant(role: Role) -> tuple[str, ...]:
    """What it hears from there."""
    return tuple(dict.fromkeys(_MAY[role][1]))


def elsewhere(subject: str) -> str:
    """How a subject of the tenant's account is named in those of its model and tools workers."""
    return subject.replace(API, API_ELSEWHERE, 1) if subject.startswith(API) else subject


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
_ANSWERING = ("_R_.>", f"{INBOX}.model.>", f"{INBOX}.all.>")
"""Telling a model worker that somebody listens. The server itself makes subjects of answers to other accounts
(`_R_`); the others are for who is in this one."""
_API = (
    # INFO: how much of the quota is left, for who waits in vain.
    (*_READING, *_JOURNAL, *_WIRE, f"{_JS}.STREAM.MSG.DELETE.{DEAD}", f"{_JS}.INFO", *_ANSWERING),
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
        "_R_.>",  # who asked to be hired, in another account, hears that he is
        f"{INBOX}.>",  # who sent a signal hears whether it was taken
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
