"""ActsAs: the identity that an agent's loops act under, and what it hands on to those that they begin."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flyball.core.errors import UserError
from flyball.core.feature import Feature
from flyball.identity.agent_identity import AgentIdentity
from flyball.identity.chain import LONGEST
from flyball.identity.delegation import delegate
from flyball.identity.provider import IdentityProvider


class ActsAs(Feature):
    """Has an agent's loops act as somebody: it is recorded with their beginning, and told as `ctx.identity`.

    A loop that is begun under another is handed on what it `takes`, as far as the other `gives` and holds it.
    That is decided when it is begun, and recorded: neither replaying nor resuming issues anything.

    Args:
        identity: as whom.
        provider: who has its key: without it, nothing is handed on to others.
        takes: the capabilities that its loops ask for from the one that begins them; none without it.
        gives: those that may be handed on; without it, all that it holds.
        longest: how often a capability may be handed on.
    """

    name = "acts_as"

    def __init__(
        self,
        identity: AgentIdentity,
        provider: IdentityProvider | None = None,
        *,
        takes: Iterable[str] = (),
        gives: Iterable[str] | None = None,
        longest: int = LONGEST,
    ) -> None:
        if not isinstance(identity, AgentIdentity):  # pyright: ignore[reportUnnecessaryIsInstance] - anybody's
            raise UserError(f"ActsAs takes an AgentIdentity, not {identity!r:.200}")
        if isinstance(takes, str) or isinstance(gives, str):
            raise UserError("takes= and gives= take several capabilities, such as takes=['payments.read']")
        identity.validate()
        self.identity = identity
        self.provider = provider
        self.takes = tuple(dict.fromkeys(takes))
        self.gives = None if gives is None else frozenset(gives)
        self.longest = longest
        self.document: dict[str, Any] = identity.write()
        """The identity as it is recorded."""

    async def hand_on(
        self, held: AgentIdentity, to: ActsAs, *, occasion: str, now: float
    ) -> AgentIdentity | None:
        """The identity of a loop that one under this identity begins; None where nothing is handed on.

        `held` is what the loop above has, which may have been handed on to it in turn.

        Raises:
            FlyballError: see `delegate`.
        """
        if self.provider is None:
            return None
        wanted = [name for name in to.takes if self.gives is None or name in self.gives]
        found = await delegate(
            self.provider, held, to.identity, wanted, now=now, occasion=occasion, longest=self.longest
        )
        return None if found is to.identity else found

    def __repr__(self) -> str:
        return f"ActsAs({self.identity.did})"
