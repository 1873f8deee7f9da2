"""DID documents: which keys belong to a DID, and what each of them may sign."""

from __future__ import annotations

from typing import Any, ClassVar

from flyball.core.errors import IdentityInvalid
from flyball.identity.did import DID, KEY
from flyball.identity.kept import Kept
from flyball.identity.keys import key_of, read_public, written

ASSERTION, DELEGATION = "assertionMethod", "capabilityDelegation"
"""What proofs are for: to say something of somebody, and to hand something on to somebody."""

_CONTEXT = ("https://www.w3.org/ns/did/v1", "https://w3id.org/security/multikey/v1")
_KINDS = ("Multikey", "Ed25519VerificationKey2020")
_NAMES = {
    "context": "@context",
    "verification_method": "verificationMethod",
    "assertion_method": ASSERTION,
    "capability_delegation": DELEGATION,
    "capability_invocation": "capabilityInvocation",
}


class VerificationMethod(Kept, frozen=True, kw_only=True, rename="camel"):
    """A public key, under the name by which proofs point at it."""

    NAME: ClassVar[str] = "a verification method"

    id: str
    type: str
    controller: str
    public_key_multibase: str = ""


class DIDDocument(Kept, frozen=True, kw_only=True, rename=_NAMES):
    """What a DID resolves to. Keys may stand in `verification_method`, or where they are used."""

    NAME: ClassVar[str] = "a DID document"

    context: Any = None
    id: str
    verification_method: tuple[dict[str, Any], ...] = ()
    authentication: tuple[Any, ...] = ()
    assertion_method: tuple[Any, ...] = ()
    capability_delegation: tuple[Any, ...] = ()
    capability_invocation: tuple[Any, ...] = ()

    @classmethod
    def of(cls, did: DID, public: bytes) -> DIDDocument:
        """The document of a DID with one key, which it uses for everything."""
        name = written(public)
        method = str(did.with_fragment(name))
        key = VerificationMethod(id=method, type=_KINDS[0], controller=str(did), public_key_multibase=name)
        return cls(
            context=list(_CONTEXT),
            id=str(did),
            verification_method=(key.write(),),
            authentication=(method,),
            assertion_method=(method,),
            capability_delegation=(method,),
            capability_invocation=(method,),
        )

    def key_for(self, method: str, purpose: str) -> bytes | None:
        """The public key of a name, if it is this DID's own and may be used for a purpose.

        Raises:
            IdentityInvalid: it is there, and cannot be read.
        """
        uses: tuple[Any, ...] = getattr(self, _FIELDS.get(purpose, ""), ())
        for use in uses:
            found = self._named(use) if isinstance(use, str) else use
            if found is None:
                continue
            key = VerificationMethod.read(found)
            if _absolute(key.id, self.id) != method:
                continue
            if key.controller != self.id or key.type not in _KINDS:
                return None
            return read_public(key.public_key_multibase)
        return None

    def _named(self, name: str) -> dict[str, Any] | None:
        for one in self.verification_method:
            if _absolute(one.get("id"), self.id) == _absolute(name, self.id):
                return one
        return None


def document_of_key(did: DID) -> DIDDocument:
    """The document of a did:key, which follows from the DID alone.

    Raises:
        IdentityInvalid: it is no did:key of Ed25519.
    """
    if did.method != KEY:
        raise IdentityInvalid(f"{did} is no did:key: its document must be asked for", where="did")
    bare = did.without_fragment()
    return DIDDocument.of(bare, key_of(bare))


def _absolute(name: Any, did: str) -> str:
    """The name of a key as a whole: in its own document it may stand as the fragment alone."""
    text = name if isinstance(name, str) else ""
    return did + text if text.startswith("#") else text


_FIELDS = {key: name for name, key in _NAMES.items() if key not in ("@context", "verificationMethod")} | {
    "authentication": "authentication"
}
"""What a proof may be for, and the field that says by which keys."""
