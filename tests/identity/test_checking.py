"""Whether a credential holds by itself: each way in which a proof is another's, or for something else."""

from __future__ import annotations

from typing import Any

import pytest

from flyball.core.errors import IdentityNotFound
from flyball.identity.checking import checked
from flyball.identity.credential import CAPABILITY, DELEGATION, VerifiableCredential
from flyball.identity.did import DID
from flyball.identity.document import ASSERTION, DIDDocument, document_of_key
from flyball.identity.document import DELEGATION as DELEGATES
from flyball.identity.keys import SigningKey
from flyball.identity.proof import proved
from flyball.identity.verdict import Problem, Verdict

NOW = 1_700_000_000.0
ISSUER, OTHER = SigningKey(bytes(32)), SigningKey(bytes([1]) * 32)
AGENT = SigningKey(bytes([2]) * 32).did


async def resolved(did: DID) -> DIDDocument:
    return document_of_key(did)


def signed(
    kind: str = CAPABILITY,
    key: SigningKey = ISSUER,
    signer: DID = ISSUER.did,
    purpose: str = ASSERTION,
    **claims: Any,
) -> VerifiableCredential:
    said = {
        "id": str(AGENT),
        "capability": "x",
        "capabilities": ["x"],
        "delegator": str(ISSUER.did),
        **claims,
    }
    bare = VerifiableCredential.new("urn:1", ISSUER.did, kind, said, issued=NOW)
    return bare.with_proof(proved(bare.write(), key, signer, NOW, purpose))


async def verdict(credential: VerifiableCredential, now: float = NOW) -> Verdict:
    return await checked(credential, now, {ISSUER.did}, resolved)


async def test_what_its_issuer_signed_for_what_it_is_holds() -> None:
    assert await verdict(signed())
    assert await verdict(signed(DELEGATION, purpose=DELEGATES))


@pytest.mark.parametrize(
    ("credential", "told"),
    [
        (signed(purpose=DELEGATES), "is for"),
        (signed(DELEGATION, purpose=ASSERTION), "is for"),
        (signed(purpose="authentication"), "is for"),
        (signed(key=OTHER, signer=OTHER.did), "not of its issuer"),
        (signed(key=OTHER), "has no key"),
        (signed().with_proof(None), "no proof"),
    ],
    ids=["handing on", "saying", "another purpose", "another signer", "another key", "nobody"],
)
async def test_no_other_signature_counts(credential: VerifiableCredential, told: str) -> None:
    found = await verdict(credential)
    assert found.problem is Problem.BAD_SIGNATURE
    assert told in found.reason


async def test_a_delegation_ends_when_its_subject_says_so() -> None:
    credential = signed(DELEGATION, purpose=DELEGATES, validUntil="2023-11-14T22:13:30Z")
    assert await verdict(credential, NOW + 10)
    assert (await verdict(credential, NOW + 11)).problem is Problem.EXPIRED


@pytest.mark.parametrize(
    "credential",
    [
        signed(DELEGATION, purpose=DELEGATES, validUntil="soon"),
        signed(capability=7),
        signed(DELEGATION, purpose=DELEGATES, capabilities="x"),
    ],
    ids=["time", "capability", "capabilities"],
)
async def test_what_says_nothing_that_can_be_is_malformed(credential: VerifiableCredential) -> None:
    assert (await verdict(credential)).problem is Problem.MALFORMED


async def test_an_issuer_whose_key_cannot_be_had_is_told() -> None:
    async def nobody(did: DID) -> DIDDocument:
        raise IdentityNotFound("away")

    found = await checked(signed(), NOW, {ISSUER.did}, nobody)
    assert (found.problem, found.reason) == (Problem.UNRESOLVED, "away")
