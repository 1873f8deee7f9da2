"""What the credentials of agents say: that one can do something, may do it for another, or is who it is."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from flyball.core.forms.times import stamp
from flyball.identity.credential import CAPABILITY, DELEGATION, IDENTITY, VerifiableCredential
from flyball.identity.did import DID


class AgentCapabilitySubject(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """The agent `id` has a capability, such as `payments.write`. `confidence` is from 0 to 1."""

    id: str
    capability: str
    confidence: float = 0.0
    scope: str = ""


class AgentDelegationSubject(
    Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True, rename={"valid_until": "validUntil"}
):
    """The agent `id` may use these capabilities of `delegator`."""

    id: str
    delegator: str
    capabilities: tuple[str, ...]
    scope: str = ""
    valid_until: str = ""


class AgentIdentitySubject(
    Struct,
    frozen=True,
    omit_defaults=True,
    repr_omit_defaults=True,
    rename={"display_name": "displayName", "internal_role": "internalRole"},
):
    """The agent `id` has this name and this role here."""

    id: str
    display_name: str
    internal_role: str = ""


def capability_credential(
    id: str,  # noqa: A002 - the field's name
    issuer: DID,
    agent: DID,
    capability: str,
    *,
    issued: float,
    expires: float | None = None,
    confidence: float = 1.0,
) -> VerifiableCredential:
    """A credential, not signed yet, that says that an agent has a capability."""
    subject = AgentCapabilitySubject(str(agent), capability, confidence)
    return VerifiableCredential.new(id, issuer, CAPABILITY, subject, issued=issued, expires=expires)


def delegation_credential(
    id: str,  # noqa: A002 - the field's name
    delegator: DID,
    delegate: DID,
    capabilities: Iterable[str],
    *,
    issued: float,
    expires: float | None = None,
) -> VerifiableCredential:
    """A credential, not signed yet, by which one agent lets another use some of its capabilities."""
    until = "" if expires is None else stamp(expires)
    subject = AgentDelegationSubject(str(delegate), str(delegator), tuple(capabilities), valid_until=until)
    return VerifiableCredential.new(id, delegator, DELEGATION, subject, issued=issued, expires=expires)


def identity_credential(
    id: str,  # noqa: A002 - the field's name
    issuer: DID,
    agent: DID,
    name: str,
    role: str = "",
    *,
    issued: float,
    expires: float | None = None,
) -> VerifiableCredential:
    """A credential, not signed yet, that says what an agent is called."""
    subject = AgentIdentitySubject(str(agent), name, role)
    return VerifiableCredential.new(id, issuer, IDENTITY, subject, issued=issued, expires=expires)


def capabilities_in(credential: VerifiableCredential) -> tuple[str, ...]:
    """The capabilities that a credential gives to its subject, whether or not it holds.

    Raises:
        IdentityInvalid: its type says that it gives some, and its subject does not.
    """
    if credential.has_type(CAPABILITY):
        return (credential.subject(AgentCapabilitySubject).capability,)
    if credential.has_type(DELEGATION):
        return credential.subject(AgentDelegationSubject).capabilities
    return ()
