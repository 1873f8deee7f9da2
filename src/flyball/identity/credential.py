"""Verifiable credentials, by W3C's data model: what an issuer says of somebody, with a proof that it did."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

import msgspec
from msgspec.structs import replace

from flyball.core.errors import IdentityInvalid
from flyball.core.forms.times import stamp
from flyball.core.messages import JSON
from flyball.identity.did import DID
from flyball.identity.kept import Kept, moment

CREDENTIAL = "VerifiableCredential"
CAPABILITY = "AgentCapabilityCredential"
DELEGATION = "AgentDelegationCredential"
IDENTITY = "AgentIdentityCredential"
"""The types of credentials: every one is the first, and perhaps one of the others."""

CONTEXT = "https://www.w3.org/2018/credentials/v1"

T = TypeVar("T")


class Proof(
    Kept,
    frozen=True,
    kw_only=True,
    rename={
        "context": "@context",
        "verification_method": "verificationMethod",
        "proof_purpose": "proofPurpose",
        "proof_value": "proofValue",
    },
):
    """That somebody has signed a document: by which key, for what, and the signature."""

    NAME: ClassVar[str] = "a proof"

    type: str
    created: str = ""
    verification_method: str
    proof_purpose: str
    proof_value: str = ""
    jws: str = ""
    cryptosuite: str = ""
    context: Any = None
    expires: str = ""


class CredentialStatus(Kept, frozen=True, kw_only=True):
    """Where it is kept whether a credential was revoked."""

    NAME: ClassVar[str] = "a credential's status"

    id: str
    type: str


class VerifiableCredential(
    Kept,
    frozen=True,
    kw_only=True,
    rename={
        "context": "@context",
        "issuance_date": "issuanceDate",
        "expiration_date": "expirationDate",
        "credential_subject": "credentialSubject",
        "credential_status": "credentialStatus",
    },
):
    """What `issuer` says of `credential_subject`. Whether it is true, and says so itself, `verify` tells."""

    NAME: ClassVar[str] = "a credential"

    context: tuple[str, ...]
    id: str
    type: tuple[str, ...]
    issuer: str
    issuance_date: str
    expiration_date: str = ""
    credential_subject: dict[str, Any]
    proof: Proof | None = None
    credential_status: CredentialStatus | None = None

    @classmethod
    def new(
        cls,
        id: str,  # noqa: A002 - the field's name
        issuer: DID,
        kind: str,
        subject: msgspec.Struct | dict[str, JSON],
        *,
        issued: float,
        expires: float | None = None,
    ) -> VerifiableCredential:
        """A credential that nobody has signed yet; times are in seconds since the epoch."""
        claims = subject if isinstance(subject, dict) else msgspec.to_builtins(subject)
        return cls.read(
            {
                "@context": [CONTEXT],
                "id": id,
                "type": [CREDENTIAL, kind] if kind not in ("", CREDENTIAL) else [CREDENTIAL],
                "issuer": str(issuer),
                "issuanceDate": stamp(issued),
                **({} if expires is None else {"expirationDate": stamp(expires)}),
                "credentialSubject": claims,
            }
        )

    @property
    def issued_at(self) -> float:
        """From when on it holds, in seconds since the epoch; raises as `validate` does."""
        return moment(self.issuance_date, "issuanceDate")

    @property
    def expires_at(self) -> float | None:
        """Until when it holds; None where it holds for ever. Raises as `validate` does."""
        return moment(self.expiration_date, "expirationDate") if self.expiration_date else None

    @property
    def subject_id(self) -> str:
        """The DID of whom it speaks; empty where it does not say."""
        named = self.credential_subject.get("id")
        return named if isinstance(named, str) else ""

    def has_type(self, kind: str) -> bool:
        """Whether it is of a type."""
        return kind in self.type

    def is_expired(self, now: float) -> bool:
        """Whether its time is over; raises as `validate` does."""
        return self.expires_at is not None and now > self.expires_at

    def is_in_time(self, now: float) -> bool:
        """Whether its time has come, and is not over; raises as `validate` does."""
        return self.issued_at <= now and not self.is_expired(now)

    def subject(self, kind: type[T]) -> T:
        """What it says, as one of the subjects of `flyball.identity.subjects`, or any type of yours.

        Raises:
            IdentityInvalid: it says something else.
        """
        try:
            return msgspec.convert(self.credential_subject, kind)
        except msgspec.ValidationError as error:
            raise IdentityInvalid(
                f"the subject of the credential {self.id!r} is no {kind.__name__}: {error}",
                where="credentialSubject",
            ) from error

    def with_proof(self, proof: Proof | None) -> VerifiableCredential:
        """The same with another proof, or with none."""
        return replace(self, proof=proof)

    def validate(self) -> None:
        """Check that it has all that a credential has.

        Raises:
            IdentityInvalid: naming what is missing or wrong.
        """
        for name in ("context", "id", "type", "issuer", "issuance_date", "credential_subject"):
            if not getattr(self, name):
                raise IdentityInvalid(f"{name} required in a credential, and it is empty", where=name)
        if CREDENTIAL not in self.type:
            raise IdentityInvalid(f"type of a credential has {CREDENTIAL}; it is {self.type}", where="type")
        DID.parse(self.issuer)
        begins, ends = self.issued_at, self.expires_at
        if ends is not None and ends < begins:
            raise IdentityInvalid(
                f"the credential {self.id!r} expires before it is issued", where="expirationDate"
            )
