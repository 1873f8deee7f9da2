"""Chains: whether what an agent may do was given to it by somebody who could give it.

A capability comes from an issuer that the provider knows, by an `AgentCapabilityCredential`, and is handed on
by `AgentDelegationCredential`s, each signed by the one who held it before. Each capability is followed up by
itself: one whose chain is broken takes no other with it.

What credentials claim is followed upwards, without anybody's being asked; proofs are looked at from the root
downwards. So whose key is asked for is known to the provider, or was vouched for by a credential that holds:
who makes up an identity does not choose which addresses are visited.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct

from flyball.core.errors import IdentityInvalid
from flyball.identity.agent_identity import AgentIdentity
from flyball.identity.credential import DELEGATION, VerifiableCredential
from flyball.identity.did import DID, WEB
from flyball.identity.provider import IdentityProvider
from flyball.identity.subjects import AgentDelegationSubject, capabilities_in
from flyball.identity.verdict import HOLDS, Problem, Verdict

LONGEST = 8
"""How often a capability may be handed on."""
_LOOKS = 256
"""How many credentials are looked at for an identity: who makes one up decides how many it has."""
_LINKS = 1024
"""How many links are followed for one capability: there may be many ways through the same credentials."""
_ALL_LINKS = 8192
"""How many are for all that an identity claims: who makes one up decides how many capabilities it names."""
_DOCUMENTS = 16
"""Of how many delegators the documents are fetched for an identity."""


class ChainVerdict(Struct, frozen=True):
    """What an identity may do, and what it claims and may not, with the reasons. True if it may do all."""

    granted: tuple[str, ...] = ()
    refused: Mapping[str, Verdict] = {}

    def __bool__(self) -> bool:
        return not self.refused

    def on(self, capability: str) -> Verdict:
        """Whether it may do something."""
        if capability in self.granted:
            return HOLDS
        unheld = Verdict(Problem.NOT_HELD, f"no credential gives the capability {capability!r}")
        return self.refused.get(capability, unheld)


async def verify_chain(
    identity: AgentIdentity,
    provider: IdentityProvider,
    *,
    now: float | None = None,
    longest: int = LONGEST,
) -> ChainVerdict:
    """Follow all that an identity claims to a root which the provider knows.

    Refused is what was widened, handed on by the wrong one or in a circle, too often, and what hangs on a
    credential that does not hold (see `IdentityProvider.verify`).
    """
    walk = _Walk(identity, provider, now, longest)
    granted, refused = list[str](), dict[str, Verdict]()
    for name in walk.held_by(str(identity.did)):
        verdict = await walk.claimed(str(identity.did), name)
        if verdict:
            granted.append(name)
        else:
            refused[name] = verdict
    return ChainVerdict(tuple(granted), refused)


class _Walk:
    """One identity, while its chains are followed."""

    def __init__(
        self, identity: AgentIdentity, provider: IdentityProvider, now: float | None, longest: int
    ) -> None:
        self._provider = provider
        self._now = now
        self._longest = longest
        self._left = _LOOKS
        self._links = 0
        self._all_links = _ALL_LINKS
        self._seen: dict[int, Verdict] = {}
        self._asked: set[DID] = set()
        self._silent: dict[str, Verdict] = {}
        self._pool: dict[str, dict[str, list[VerifiableCredential]]] = {}
        for credential in _all(identity):
            try:
                given = capabilities_in(credential)
            except IdentityInvalid:
                continue  # it says nothing that anybody could rely on
            held = self._pool.setdefault(credential.subject_id, {})
            for name in dict.fromkeys(given):
                held.setdefault(name, []).append(credential)

    def held_by(self, holder: str) -> Mapping[str, list[VerifiableCredential]]:
        """The capabilities that somebody claims, with the credentials that give each."""
        return self._pool.get(holder, {})

    async def claimed(self, holder: str, name: str) -> Verdict:
        """Whether somebody holds a capability."""
        self._links = _LINKS
        return await self.follow(holder, name, ())

    async def follow(self, holder: str, name: str, below: tuple[str, ...]) -> Verdict:
        """Whether somebody holds a capability; `below` are those to whom it was handed on from there."""
        first: Verdict | None = None
        for credential in self.held_by(holder).get(name, ()):
            verdict = await self._link(credential, name, (*below, holder))
            if verdict:
                return HOLDS
            first = verdict if first is None else first
        if first is not None:
            return first
        if not self.held_by(holder):
            return Verdict(Problem.BROKEN_LINK, f"there is no credential of {holder}, who handed {name!r} on")
        return Verdict(Problem.WIDENED, f"{holder} handed {name!r} on, and does not hold it")

    async def _link(self, credential: VerifiableCredential, name: str, below: tuple[str, ...]) -> Verdict:
        self._links -= 1
        self._all_links -= 1
        if self._links < 0:
            return Verdict(Problem.TOO_LONG, f"there are more than {_LINKS} links to follow for {name!r}")
        if self._all_links < 0:
            return Verdict(
                Problem.TOO_LONG, f"there are more than {_ALL_LINKS} links to follow for all of it"
            )
        if not credential.has_type(DELEGATION):
            return await self._verify(credential, ())
        try:
            delegator = credential.subject(AgentDelegationSubject).delegator
            signer = DID.parse(delegator)
        except IdentityInvalid as error:
            return Verdict(Problem.MALFORMED, error.message)
        if delegator != credential.issuer:
            wrong = f"{credential.issuer} issued {credential.id}, which hands on what is {delegator}'s"
            return Verdict(Problem.BROKEN_LINK, wrong)
        if delegator in below:
            return Verdict(Problem.LOOP, f"{name!r} was handed on in a circle, by {delegator}")
        if len(below) > self._longest:
            return Verdict(Problem.TOO_LONG, f"{name!r} was handed on more than {self._longest} times")
        above = await self.follow(delegator, name, below)
        return await self._verify(credential, (signer,)) if above else above

    async def _verify(self, credential: VerifiableCredential, issuers: Collection[DID]) -> Verdict:
        """Whether a credential holds; `issuers` are those whom what was verified above it vouches for."""
        known = self._seen.get(id(credential), self._silent.get(credential.issuer))
        if known is not None:
            return known
        self._left -= 1
        if self._left < 0:
            return Verdict(Problem.TOO_LONG, f"it has more than {_LOOKS} credentials to look at")
        asked = self._asked.union([one for one in issuers if one.method == WEB])
        if len(asked) > _DOCUMENTS:
            return Verdict(
                Problem.TOO_LONG, f"it was handed on by more than {_DOCUMENTS} that are to be asked"
            )
        self._asked = asked
        verdict = await self._provider.verify(credential, now=self._now, issuers=issuers)
        self._seen[id(credential)] = verdict
        if verdict.problem is Problem.UNRESOLVED:
            self._silent[credential.issuer] = verdict  # it is not asked again for each of its credentials
        return verdict


def _all(identity: AgentIdentity) -> list[VerifiableCredential]:
    """All credentials that an identity brings. Those of others can only ever speak for the others."""
    own = [one for one in identity.credentials if one.subject_id == str(identity.did)]
    return [*own, *[one for one in identity.chain if one.subject_id != str(identity.did)]]
