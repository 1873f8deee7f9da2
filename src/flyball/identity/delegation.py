"""Delegation: an agent hands some of what it may do on to another, and no more than that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256

from flyball.core.errors import DelegationRefused
from flyball.core.forms.times import stamp
from flyball.identity.agent_identity import AgentIdentity
from flyball.identity.chain import LONGEST, verify_chain
from flyball.identity.credential import DELEGATION
from flyball.identity.provider import IdentityProvider
from flyball.identity.subjects import capabilities_in


async def delegate(
    provider: IdentityProvider,
    delegator: AgentIdentity,
    delegate: AgentIdentity,
    capabilities: Iterable[str],
    *,
    now: float,
    occasion: str = "",
    longest: int = LONGEST,
) -> AgentIdentity:
    """The delegate's identity, with those capabilities that the delegator holds just now.

    They hold no longer than the delegator's own. What is handed on for one `occasion` is issued once, however
    often this is called. The identity is the same where there is nothing to hand on.

    Args:
        provider: who has the delegator's key.
        delegator: who hands them on.
        delegate: who gets them.
        capabilities: which; those that the delegator does not hold are left out.
        now: the time.
        occasion: what it is for, such as the id of a loop; each call is one of its own without it.
        longest: how often a capability may be handed on.

    Raises:
        DelegationRefused: it was handed on as often as is allowed.
        IdentityNotFound: the provider does not have the delegator's key.
    """
    wanted = dict.fromkeys(capabilities)
    above = (*delegator.chain, *delegator.credentials)
    if not wanted or str(delegate.did) in {str(delegator.did), *[one.subject_id for one in delegator.chain]}:
        return delegate
    held = (await verify_chain(delegator, provider, now=now, longest=longest)).granted
    given = [name for name in wanted if name in held]
    if not given:
        return delegate
    handed = {one.subject_id for one in above if one.has_type(DELEGATION)}
    if len(handed) >= longest:
        raise DelegationRefused(
            f"{delegator.did} may not hand {given[0]!r} on to {delegate.did}: it was handed on {len(handed)} "
            f"times, and at most {longest} are allowed",
            delegator=str(delegator.did),
            delegate=str(delegate.did),
        )
    behind = [one for one in above if one.is_in_time(now) and not set(given).isdisjoint(capabilities_in(one))]
    ends = [end for one in behind if (end := one.expires_at) is not None]
    until = min(ends, default=None)
    claims = {
        "delegator": str(delegator.did),
        "capabilities": given,
        **({} if until is None else {"validUntil": stamp(until)}),
    }
    credential = await provider.issue(
        delegate.did,
        DELEGATION,
        claims,
        issuer=delegator.did,
        expires=until,
        id=_named(occasion, claims, delegate) if occasion else "",
    )
    known = {one.id: one for one in (*delegate.chain, *behind)}
    return delegate.add_credential(credential).with_chain(tuple(known.values()))


def _named(occasion: str, claims: Mapping[str, object], delegate: AgentIdentity) -> str:
    """The same for the same, so that what is done again after a crash issues nothing new."""
    said = sha256(repr((occasion, sorted(claims.items()), str(delegate.did))).encode()).hexdigest()
    return f"urn:flyball:delegation:{said[:40]}"
