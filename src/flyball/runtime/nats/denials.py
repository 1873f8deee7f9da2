"""What the server refuses to this user. It says so beside the answers, and to nobody in particular.

Whoever asked would wait until the time is up. Here the one who asked on that subject is told at once.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

from flyball.core.errors import PermissionDenied
from flyball.runtime.nats.identity import Identity
from flyball.runtime.nats.naming import unsalted

_log = logging.getLogger("flyball.nats")
_SAID = re.compile(r'permissions violation for (publish|subscription)\b[^"]*"([^"]*)"', re.IGNORECASE)
_MOST = 1_000
"""How many refusals are kept in mind."""

Told = Callable[[str, PermissionDenied], bool]
"""Tells whoever waits for an answer on a subject, written small, that there is none; whether anybody did."""


class Denials:
    """The refusals on one connection. The client library writes all that servers say in small letters."""

    def __init__(self, who: Identity) -> None:
        self.who = who
        self._refused: dict[str, PermissionDenied] = {}
        self.told: list[Told] = []

    def heard(self, said: str) -> bool:
        """Take in what the server said; whether it was a refusal."""
        found = _SAID.search(said)
        if found is None:
            return False
        action = "publish" if found[1].lower() == "publish" else "subscribe"
        subject = found[2].lower()
        error = self._error(action, subject)
        known = subject in self._refused
        if not known:
            if len(self._refused) >= _MOST:
                del self._refused[next(iter(self._refused))]
            self._refused[subject] = error
        told = [tell(subject, error) for tell in tuple(self.told)]
        if not known and True not in told:
            _log.warning("%s", error)
        return True

    def check(self, subject: str) -> None:
        """Do nothing where a subject was not refused, as far as it is known.

        Raises:
            PermissionDenied: it was.
        """
        if self._refused and (error := self._refused.get(subject.lower())) is not None:
            raise PermissionDenied(error.message, **error.details)

    def forget(self) -> None:
        """The line is another one: who was refused may be let in by now."""
        self._refused.clear()

    def _error(self, action: str, subject: str) -> PermissionDenied:
        subject = unsalted(subject)
        what = "publish on" if action == "publish" else "hear"
        help_ = "use credentials of the role that this needs (flyball tenants creds TENANT ROLE)"
        if self.who.role is None:
            help_ = "give this user the permission, or use another"
        return PermissionDenied(
            f"the NATS server refuses it: {self.who} may not {what} {subject}: {help_}",
            action=action,
            subject=subject,
            role=self.who.role or "",
            tenant=self.who.tenant,
        )
