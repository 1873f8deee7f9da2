"""Proofs: W3C's Data Integrity with the cryptosuite `eddsa-jcs-2022`.

A document and what the proof says of itself are each brought into their one canonical form (RFC 8785) and
hashed; both hashes together are signed. So no byte of either can change without the signature being wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from flyball.core.errors import IdentityInvalid, MissingExtra
from flyball.core.forms.times import stamp
from flyball.core.messages import JSON
from flyball.identity import base58
from flyball.identity.credential import Proof
from flyball.identity.did import DID
from flyball.identity.document import ASSERTION
from flyball.identity.keys import SigningKey, signed_by, written

KIND, SUITE = "DataIntegrityProof", "eddsa-jcs-2022"
_SIGNATURE = 64


def proved(
    document: Mapping[str, JSON], key: SigningKey, signer: DID, at: float, purpose: str = ASSERTION
) -> Proof:
    """A proof that `signer`, whose key this is, has signed a document, which has none yet.

    Raises:
        IdentityInvalid: the document has no canonical form, such as one with a number beyond 2**53.
    """
    proof = Proof(
        type=KIND,
        cryptosuite=SUITE,
        created=stamp(at),
        verification_method=str(signer.with_fragment(written(key.public))),
        proof_purpose=purpose,
        context=document.get("@context"),
    )
    signature = key.sign(_hashed(document, proof.write()))
    return Proof.read({**proof.write(), "proofValue": "z" + base58.encode(signature)})


def is_proved(document: Mapping[str, JSON], proof: Proof, public: bytes) -> bool:
    """Whether the owner of a key has signed a document, by this proof; the document is without its proof.

    Stricter than the specification in one point: the proof's context must be the document's whole one, else a
    context could be added that nobody has signed.
    """
    if proof.type != KIND or proof.cryptosuite != SUITE or proof.jws:
        return False
    if proof.context is not None and proof.context != document.get("@context"):
        return False
    options = proof.write()
    value = options.pop("proofValue", "")
    try:
        signature = base58.decode(value[1:]) if isinstance(value, str) and value[:1] == "z" else b""
        return len(signature) == _SIGNATURE and signed_by(public, signature, _hashed(document, options))
    except IdentityInvalid:
        return False


def _hashed(document: Mapping[str, JSON], options: Mapping[str, JSON]) -> bytes:
    return sha256(canonical(options)).digest() + sha256(canonical(document)).digest()


def canonical(document: Mapping[str, Any]) -> bytes:
    """The one way to write a document (RFC 8785).

    Raises:
        IdentityInvalid: there is none.
    """
    try:
        import rfc8785
    except ImportError as error:
        raise MissingExtra("proofs need rfc8785: pip install 'flyball[identity]'") from error
    try:
        return rfc8785.dumps(dict(document))
    except rfc8785.CanonicalizationError as error:
        raise IdentityInvalid(f"the document has no canonical form: {error}") from error
