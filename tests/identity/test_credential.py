"""Credentials and their proofs: nothing is lost, and nothing can be changed."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from flyball.core.errors import IdentityInvalid
from flyball.identity import base58
from flyball.identity.credential import (
    CAPABILITY,
    CREDENTIAL,
    DELEGATION,
    IDENTITY,
    Proof,
    VerifiableCredential,
)
from flyball.identity.keys import SigningKey
from flyball.identity.proof import canonical, is_proved, proved
from flyball.identity.subjects import (
    AgentCapabilitySubject,
    AgentDelegationSubject,
    AgentIdentitySubject,
    capabilities_in,
    capability_credential,
    delegation_credential,
    identity_credential,
)

NOW = 1_700_000_000.0
KEY = SigningKey(bytes(range(32)))
AGENT = SigningKey(bytes(32)).did

# From W3C's Data Integrity EdDSA Cryptosuites v1.0, "Representation: eddsa-jcs-2022".
PUBLISHED = {
    "@context": [
        "https://www.w3.org/ns/credentials/v2",
        "https://www.w3.org/ns/credentials/examples/v2",
    ],
    "id": "urn:uuid:58172aac-d8ba-11ed-83dd-0b3aef56cc33",
    "type": ["VerifiableCredential", "AlumniCredential"],
    "name": "Alumni Credential",
    "description": "A minimum viable example of an Alumni Credential.",
    "issuer": "https://vc.example/issuers/5678",
    "validFrom": "2023-01-01T00:00:00Z",
    "credentialSubject": {"id": "did:example:abcdefgh", "alumniOf": "The School of Examples"},
}
PUBLISHED_KEY = "z3u2en7t5LR2WtQH5PfFqMqwVHBeXouLzo6haApm8XHqvjxq"
PUBLISHED_VALUE = "z2HnFSSPPBzR36zdDgK8PbEHeXbR56YF24jwMpt3R1eHXQzJDMWS93FCzpvJpwTWd3GAVFuUfjoJdcnTMuVor51aX"


def test_the_published_vector() -> None:
    key = SigningKey.read(PUBLISHED_KEY)
    proof = proved(PUBLISHED, key, key.did, 1677281798.0)
    assert proof.proof_value == PUBLISHED_VALUE
    assert proof.created == "2023-02-24T23:36:38Z"
    assert is_proved(PUBLISHED, proof, key.public)


def signed(capability: str = "payments.write", **more: Any) -> VerifiableCredential:
    bare = VerifiableCredential.read(
        {**capability_credential("urn:1", KEY.did, AGENT, capability, issued=NOW).write(), **more}
    )
    return bare.with_proof(proved(bare.write(), KEY, KEY.did, NOW))


def holds(credential: VerifiableCredential) -> bool:
    proof = credential.proof
    return proof is not None and is_proved(credential.with_proof(None).write(), proof, KEY.public)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(["evidence", "name", "ünï", "termsOfUse"]), VALUES, max_size=3))
def test_what_was_read_is_written_back_and_still_holds(more: dict[str, Any]) -> None:
    credential = signed(**more)
    text = msgspec.json.encode(credential.write())
    again = VerifiableCredential.parse(text)
    assert again == credential
    assert holds(again)


@given(st.data(), st.integers(0, 255))
def test_no_byte_can_be_changed(data: st.DataObject, byte: int) -> None:
    credential = signed(name="Zoë")
    text = bytearray(canonical(credential.write()))
    place = data.draw(st.integers(0, len(text) - 1))
    assume(text[place] != byte)
    text[place] = byte
    try:
        changed = VerifiableCredential.parse(bytes(text))
    except IdentityInvalid:
        return
    assume(changed.write() != credential.write())  # an escape in other letters is the same text
    assert not holds(changed)


def test_what_a_proof_says_of_itself_is_signed_too() -> None:
    credential = signed()
    assert credential.proof is not None
    written = credential.proof.write()
    for name, value in {
        "created": "2023-11-14T22:13:21Z",
        "proofPurpose": "authentication",
        "verificationMethod": f"{AGENT}#x",
        "expires": "2099-01-01T00:00:00Z",
        "domain": "example.com",
        "cryptosuite": "eddsa-rdfc-2022",
        "type": "Ed25519Signature2020",
        "jws": "x",
        "proofValue": "",
    }.items():
        assert not holds(
            credential.with_proof(
                Proof.read(
                    {**written, name: value} if value else {k: v for k, v in written.items() if k != name}
                )
            )
        )


def test_no_context_can_be_added() -> None:
    credential = signed()
    more = [*credential.context, "https://evil.example"]
    assert not holds(VerifiableCredential.read({**credential.write(), "@context": more}))


def test_a_proof_is_of_the_documents_own_context() -> None:
    bare = {"@context": ["a"], "id": "urn:1"}
    proof = proved({"@context": ["b"]}, KEY, KEY.did, NOW).write()
    del proof["proofValue"]
    both = sha256(canonical(proof)).digest() + sha256(canonical(bare)).digest()
    value = "z" + base58.encode(KEY.sign(both))
    assert not is_proved(bare, Proof.read({**proof, "proofValue": value}), KEY.public)


def test_no_key_may_stand_twice() -> None:
    text = msgspec.json.encode(signed().write()).decode()
    with pytest.raises(IdentityInvalid, match="twice"):
        VerifiableCredential.parse(text[:-1] + ',"id":"urn:1"}')


def test_another_key_has_not_signed_it() -> None:
    credential = signed()
    assert credential.proof is not None
    assert not is_proved(credential.with_proof(None).write(), credential.proof, SigningKey.new().public)


def test_the_keys_are_those_of_the_data_model() -> None:
    bare = capability_credential("urn:1", KEY.did, AGENT, "x", issued=NOW, expires=NOW + 1.5)
    assert bare.write() == {
        "@context": ["https://www.w3.org/2018/credentials/v1"],
        "id": "urn:1",
        "type": ["VerifiableCredential", "AgentCapabilityCredential"],
        "issuer": str(KEY.did),
        "issuanceDate": "2023-11-14T22:13:20Z",
        "expirationDate": "2023-11-14T22:13:21.5Z",
        "credentialSubject": {"id": str(AGENT), "capability": "x", "confidence": 1.0},
    }
    whole = {
        **bare.write(),
        "credentialStatus": {"id": "urn:1#s", "type": "t"},
        "proof": signed().write()["proof"],
    }
    assert list(VerifiableCredential.read(whole).write()) == [
        "@context",
        "id",
        "type",
        "issuer",
        "issuanceDate",
        "expirationDate",
        "credentialSubject",
        "proof",
        "credentialStatus",
    ]


def test_subjects_are_typed() -> None:
    capability = capability_credential("urn:1", KEY.did, AGENT, "x", issued=NOW)
    assert capability.subject(AgentCapabilitySubject) == AgentCapabilitySubject(str(AGENT), "x", 1.0)
    assert capability.has_type(CREDENTIAL)
    assert capability.has_type(CAPABILITY)
    assert not capability.has_type(DELEGATION)
    handed = delegation_credential("urn:2", KEY.did, AGENT, ["x", "y"], issued=NOW, expires=NOW + 1)
    assert handed.subject(AgentDelegationSubject).capabilities == ("x", "y") == capabilities_in(handed)
    assert handed.credential_subject["validUntil"] == handed.expiration_date
    named = identity_credential("urn:3", KEY.did, AGENT, "clerk", "editor", issued=NOW)
    assert named.subject(AgentIdentitySubject).display_name == "clerk"
    assert named.has_type(IDENTITY)
    assert capabilities_in(named) == ()
    with pytest.raises(IdentityInvalid, match="AgentDelegationSubject"):
        capability.subject(AgentDelegationSubject)


def test_the_last_moment_counts() -> None:
    credential = capability_credential("urn:1", KEY.did, AGENT, "x", issued=NOW, expires=NOW + 10)
    assert not credential.is_expired(NOW + 10)
    assert credential.is_expired(NOW + 10.001)
    assert not signed().is_expired(1e12)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"id": None}, "no 'id'"),
        ({"type": "VerifiableCredential"}, "type"),
        ({"issuer": {"id": "did:key:x"}}, "issuer"),
        ({"expirationDate": ""}, "empty"),
        ({"proof": {"type": "x"}}, "proof"),
        ({"credentialSubject": []}, "credentialSubject"),
    ],
)
def test_what_is_no_credential_is_refused(change: dict[str, Any], told: str) -> None:
    document = {name: value for name, value in {**signed().write(), **change}.items() if value is not None}
    with pytest.raises(IdentityInvalid, match=told):
        VerifiableCredential.read(document)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"id":"a","id":"b"}', "NaN", "[" * 100_000, b"\xff"])
def test_what_is_no_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(IdentityInvalid):
        VerifiableCredential.parse(text)


@pytest.mark.parametrize(
    "change",
    [
        {"issuer": "me"},
        {"type": ["AgentCapabilityCredential"]},
        {"issuanceDate": "today"},
        {"expirationDate": "2000-01-01T00:00:00Z"},
        {"id": ""},
    ],
)
def test_what_says_nothing_that_can_be_is_not_valid(change: dict[str, Any]) -> None:
    credential = VerifiableCredential.read({**signed().write(), **change})
    with pytest.raises(IdentityInvalid):
        credential.validate()


def test_a_number_that_has_no_canonical_form_is_refused() -> None:
    with pytest.raises(IdentityInvalid, match="canonical"):
        proved({"number": 2**60}, KEY, KEY.did, NOW)
