"""Whether a credential holds by itself: its form, its issuer, its proof and its time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection

from flyball.core.errors import IdentityInvalid, IdentityNotFound
from flyball.identity.credential import DELEGATION, VerifiableCredential
from flyball.identity.did import DID
from flyball.identity.document import ASSERTION, DIDDocument
from flyball.identity.document import DELEGATION as DELEGATES
from flyball.identity.kept import moment
from flyball.identity.proof import is_proved
from flyball.identity.subjects import AgentDelegationSubject, capabilities_in
from flyball.identity.verdict import HOLDS, Problem, Verdict


async def checked(
    credential: VerifiableCredential,
    now: float,
    known: Collection[DID],
    resolve: Callable[[DID], Awaitable[DIDDocument]],
) -> Verdict:
    """Whether a credential holds at a time, of issuers that are `known`; revocation is not looked at."""
    try:
        credential.validate()
        capabilities_in(credential)
        issuer = DID.parse(credential.issuer)
        until = _until(credential)
        own = _hands_on_to_itself(credential)
    except IdentityInvalid as error:
        return Verdict(Problem.MALFORMED, error.message)
    if own:
        return Verdict(
            Problem.LOOP, f"{credential.subject_id} hands on to itself: nobody gives itself anything"
        )
    if issuer not in known:
        return Verdict(Problem.UNKNOWN_ISSUER, f"{issuer} issued it, and is neither known here nor trusted")
    try:
        proven = await _proven(credential, issuer, resolve)
    except IdentityNotFound as error:
        return Verdict(Problem.UNRESOLVED, error.message)
    except IdentityInvalid as error:
        return Verdict(Problem.BAD_SIGNATURE, error.message)
    if proven:
        return Verdict(Problem.BAD_SIGNATURE, proven)
    if now < credential.issued_at:
        return Verdict(Problem.NOT_YET_VALID, f"it holds from {credential.issuance_date} on")
    if any(now > moment(end, "time") for end in until):
        return Verdict(Problem.EXPIRED, f"it held until {min(until)}")
    return HOLDS


def _until(credential: VerifiableCredential) -> list[str]:
    """The times that it must not be later than; they are some."""
    proof = credential.proof
    ends = [credential.expiration_date, "" if proof is None else proof.expires]
    if credential.has_type(DELEGATION):
        ends.append(credential.subject(AgentDelegationSubject).valid_until)
    found = [end for end in ends if end]
    for end in found:
        moment(end, "time")
    return found


def _hands_on_to_itself(credential: VerifiableCredential) -> bool:
    """Whether who hands something on, or who signs for it, is the one who gets it."""
    if not credential.has_type(DELEGATION):
        return False
    said = credential.subject(AgentDelegationSubject)
    subject = DID.parse(said.id).without_fragment()
    return subject in [DID.parse(one).without_fragment() for one in (said.delegator, credential.issuer)]


async def _proven(
    credential: VerifiableCredential, issuer: DID, resolve: Callable[[DID], Awaitable[DIDDocument]]
) -> str:
    """Why a credential is not its issuer's word; empty if it is."""
    proof = credential.proof
    if proof is None:
        return "it has no proof"
    wanted = DELEGATES if credential.has_type(DELEGATION) else ASSERTION
    if proof.proof_purpose != wanted:
        return f"its proof is for {proof.proof_purpose!r:.100}, and it takes one for {wanted!r}"
    if DID.parse(proof.verification_method).without_fragment() != issuer:
        return f"its proof is by a key of {proof.verification_method:.200}, not of its issuer {issuer}"
    key = (await resolve(issuer)).key_for(proof.verification_method, proof.proof_purpose)
    if key is None:
        return f"{issuer} has no key {proof.verification_method:.200} for {proof.proof_purpose!r}"
    if not is_proved(credential.with_proof(None).write(), proof, key):
        return "its signature is not that of its issuer over what it says now"
    return ""
