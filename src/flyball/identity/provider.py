"""IdentityProvider: who makes identities, issues credentials and says whether they hold."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

from flyball.identity.agent_identity import AgentIdentity
from flyball.identity.credential import VerifiableCredential
from flyball.identity.did import DID
from flyball.identity.document import DIDDocument
from flyball.identity.verdict import Verdict


@runtime_checkable
class IdentityProvider(Protocol):
    """Makes identities and keeps their keys, which it never gives away.

    All methods may be called by several tasks at once. What they wrote is durable when they return, as far as
    anything is where it is kept.
    """

    async def issuer(self) -> DID:
        """The provider's own DID: made once, and the same for ever."""
        ...

    async def create(
        self,
        name: str,
        *,
        role: str = "",
        capabilities: Iterable[str] = (),
        did: DID | None = None,
        expires: float | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> AgentIdentity:
        """Make an identity, with a key of its own and a credential for each capability.

        Args:
            name: what it is called.
            role: what it is there for.
            capabilities: what it may do.
            did: a did:web, whose document (see `document`) you publish; without it, a did:key.
            expires: until when the credentials hold; for ever without it.
            metadata: whatever else is to be known of it.

        Raises:
            IdentityInvalid: the name is empty, or the DID is no did:web or is taken.
        """
        ...

    async def resolve(self, did: DID) -> AgentIdentity:
        """The identity of a DID.

        Raises:
            IdentityNotFound: it is not kept here.
        """
        ...

    async def identities(self) -> tuple[AgentIdentity, ...]:
        """All identities that are kept here, the oldest first."""
        ...

    async def document(self, did: DID) -> DIDDocument:
        """The keys of a DID: of one that is kept here, of any did:key, or as a did:web publishes them.

        Raises:
            IdentityNotFound: nobody knows them; retryable where they could not be asked for.
            IdentityInvalid: what was found is no document of this DID.
        """
        ...

    async def issue(
        self,
        subject: DID,
        kind: str,
        claims: Mapping[str, Any],
        *,
        issuer: DID | None = None,
        expires: float | None = None,
        id: str = "",  # noqa: A002 - the field's name
    ) -> VerifiableCredential:
        """Say something of somebody, and sign it.

        Args:
            subject: of whom.
            kind: the type of the credential, such as `AgentCapabilityCredential`.
            claims: what is said.
            issuer: who says it: an identity that is kept here; without it, the provider itself.
            expires: until when it holds; for ever without it.
            id: the credential's; a new one without it. What has been issued under an id is given again.

        Raises:
            IdentityNotFound: the key of `issuer` is not kept here.
            IdentityInvalid: something else has been issued under the id, or the claims cannot be signed.
        """
        ...

    async def verify(
        self, credential: VerifiableCredential, *, now: float | None = None, issuers: Collection[DID] = ()
    ) -> Verdict:
        """Whether a credential holds: its form, its issuer, its proof, its time, and whether it was revoked.

        Known issuers are the provider itself, those that it trusts, and `issuers`; of delegations, agents
        whose identities are kept here too. Of a delegation that says who has signed it, and no more: whether
        they had something to hand on, `verify_chain` tells. One of somebody to itself never holds.
        """
        ...

    async def revoke(self, id: str) -> None:  # noqa: A002 - the field's name
        """Take a credential back, for ever; doing so twice does no harm.

        Raises:
            IdentityNotFound: it was not issued here.
        """
        ...

    async def update(self, identity: AgentIdentity) -> None:
        """Keep an identity as it is now.

        Raises:
            IdentityNotFound: it is not kept here.
            IdentityInvalid: it is none.
        """
        ...

    async def delete(self, did: DID) -> None:
        """Forget an identity and its key, and revoke the credentials that it was given here.

        Raises:
            IdentityNotFound: it is not kept here.
        """
        ...
