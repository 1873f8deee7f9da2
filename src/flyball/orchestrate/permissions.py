"""Permissions: who may look at loops, begin them, speak to them and decide about what they want to do.

They are SemStreams': what is one's own may be stopped, what is others' by those who have a role for it, and
approving is a role of its own. Whoever speaks comes as a `Person`, whose roles the adapter has made sure of.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from msgspec import Struct

from flyball.core.errors import NotPermitted
from flyball.core.signals import SignalType
from flyball.orchestrate.places import place_name

EVERYBODY = "*"
_USER = "user:"
"""What an entry begins with that means one person."""
_CHANNEL = frozenset({"channel_type", "channel_id", "thread_id", "message_id"})
"""The keys of a loop's metadata that say where it is told."""
_DECIDING = (SignalType.APPROVE, SignalType.REJECT)


class Permission(StrEnum):
    """What somebody may do."""

    VIEW = "view"
    """Look at loops."""
    SUBMIT_TASK = "submit_task"
    """Have a loop begun, and talk with it."""
    CANCEL_OWN = "cancel_own"
    """Stop, pause, resume and retry one's own loops, and say something to them."""
    CANCEL_ANY = "cancel_any"
    """The same of anybody's."""
    APPROVE = "approve"
    """Approve and reject what loops want to do."""


_DEEDS = {
    Permission.VIEW: "look at loops",
    Permission.SUBMIT_TASK: "have a loop begun",
    Permission.CANCEL_OWN: "say something to their own loops",
    Permission.CANCEL_ANY: "say something to what is another's",
    Permission.APPROVE: "approve",
}
"""What somebody may not do, in words."""


class Person(Struct, frozen=True):
    """Who says something, and which roles they have here."""

    user_id: str
    roles: tuple[str, ...] = ()


class Permissions(Struct, frozen=True, forbid_unknown_fields=True):
    """Who may do what. An entry is a role, `user:<id>` for one person, or `*` for everybody."""

    view: tuple[str, ...] = (EVERYBODY,)
    submit_task: tuple[str, ...] = (EVERYBODY,)
    cancel_own: bool = True
    cancel_any: tuple[str, ...] = ("admin",)
    approve: tuple[str, ...] = ("admin", "reviewer")

    def allow(self, who: Person, what: Permission) -> bool:
        """Whether somebody may do something, with whatever is theirs."""
        granted: bool | tuple[str, ...] = getattr(self, what)
        if isinstance(granted, bool):
            return granted
        return any(
            entry == EVERYBODY or entry in who.roles or entry == f"{_USER}{who.user_id}" for entry in granted
        )

    def check(self, who: Person, what: Permission) -> None:
        """See that somebody may do something.

        Raises:
            NotPermitted: they may not; it says who may.
        """
        if not self.allow(who, what):
            raise self._refusal(who, what)

    def check_signal(self, who: Person, kind: SignalType, owner: str) -> None:
        """See that somebody may say something to a loop; `owner` is whose it is, empty where it is nobody's.

        Raises:
            NotPermitted: they may not; it says who may.
        """
        if kind in _DECIDING:
            self.check(who, Permission.APPROVE)
            return
        own = bool(owner) and owner == who.user_id
        if not (self.allow(who, Permission.CANCEL_ANY) or (own and self.cancel_own)):
            raise self._refusal(who, Permission.CANCEL_ANY, f"{kind} a loop of {owner or 'nobody'}")

    def check_sending_back(self, who: Person) -> None:
        """See that somebody may say something to a loop whose answer waits: words send it back, as a reject.

        Raises:
            NotPermitted: they may not; it says who may.
        """
        if not self.allow(who, Permission.APPROVE):
            raise self._refusal(
                who,
                Permission.APPROVE,
                "send back the answer that waits for approval here; say it again when it is decided",
            )

    def _refusal(self, who: Person, what: Permission, deed: str = "") -> NotPermitted:
        granted: bool | tuple[str, ...] = getattr(self, what)
        may = f"{', '.join(granted)} may" if granted and isinstance(granted, tuple) else "nobody may"
        roles = ", ".join(who.roles) or "no roles"
        return NotPermitted(
            f"{who.user_id or 'somebody'} ({roles}) may not {deed or _DEEDS[what]}: {may}",
            permission=str(what),
            user_id=who.user_id,
        )


class Policy(Struct, frozen=True, forbid_unknown_fields=True):
    """Who may do what, and who is who: the roles that people have, by their ids."""

    permissions: Permissions = Permissions()
    roles: dict[str, tuple[str, ...]] = {}

    def person(self, user_id: str, roles: tuple[str, ...] = ()) -> Person:
        """Somebody, with the roles that they have here and those that whoever let them in knows of."""
        return Person(user_id, tuple(dict.fromkeys((*self.roles.get(user_id, ()), *roles))))


def owner_of(metadata: dict[str, Any] | None) -> str:
    """Whose loop it is, by its metadata; empty where it is nobody's."""
    return _fact(metadata, "user_id")


def channel_of(metadata: dict[str, Any] | None) -> str:
    """Where the person talks for whom a loop was begun, as `type/id`; empty where it was for nobody there.

    It is a `place_name`: what has a slash in itself is another place.
    """
    kind, name = _fact(metadata, "channel_type"), _fact(metadata, "channel_id")
    return place_name(kind, name) if kind and name else ""


def owned(metadata: dict[str, Any] | None, who: Person | None) -> dict[str, Any] | None:
    """The metadata of a loop that somebody begins: it says whose it is. As it is where no person does.

    What a person begins is told on no channel: there a dispatcher begins loops, which knows who says what.
    """
    return metadata if who is None else {**(apart(metadata) or {}), "user_id": who.user_id}


def apart(metadata: dict[str, Any] | None) -> dict[str, Any] | None:
    """The metadata of a loop that goes on from another by itself: on the other's channel it is not told."""
    if not metadata or _CHANNEL.isdisjoint(metadata):
        return metadata
    return {name: value for name, value in metadata.items() if name not in _CHANNEL}


def _fact(metadata: dict[str, Any] | None, name: str) -> str:
    found = (metadata or {}).get(name)
    return found if isinstance(found, str) else ""
