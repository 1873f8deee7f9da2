"""AgentIdentity: who an agent is, as SemStreams writes it. A value: whatever changes it gives another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self, cast

from msgspec.structs import replace

from flyball.core.errors import IdentityInvalid, InvalidMessage
from flyball.core.forms.fields import Fields
from flyball.core.forms.semstreams.keyed import Always, Keyed
from flyball.core.forms.semstreams.kinds import Kind, Moment, Object
from flyball.core.messages import JSON
from flyball.identity.credential import VerifiableCredential
from flyball.identity.did import DID
from flyball.identity.subjects import capabilities_in

CHAIN = "delegation_chain"
"""Where the metadata has what those above hold, for who wants to see that it was theirs to hand on."""

_DID = Kind(lambda fields, key: DID.parse(fields.any(key)), str)


def _read_credentials(fields: Fields, key: str) -> tuple[VerifiableCredential, ...]:
    return tuple([VerifiableCredential.read(*item) for item in fields.items(key)])


_CREDENTIALS = Kind(_read_credentials, lambda held: [credential.write() for credential in held])


class AgentIdentity(Keyed, frozen=True, kw_only=True):
    """An agent's DID with what it is called and the credentials that it holds."""

    NAME: ClassVar[str] = "agent_identity"

    did: Always[Annotated[DID, _DID]]
    display_name: Always[str] = ""
    credentials: Annotated[tuple[VerifiableCredential, ...], _CREDENTIALS] = ()
    internal_role: str = ""
    created: Always[Moment] = None
    updated: Always[Moment] = None
    metadata: Object = None

    @classmethod
    def from_json(cls, value: JSON, where: str) -> Self:
        """The identity out of a document.

        Raises:
            IdentityInvalid: it is none.
        """
        try:
            return super().from_json(value, where)
        except InvalidMessage as error:
            raise IdentityInvalid(error.message, where=where) from error

    @classmethod
    def recorded(cls, of: Mapping[str, Any] | None) -> AgentIdentity | None:
        """The identity that a journal has of a loop, or `ctx.identity`; None where there is none.

        Raises:
            IdentityInvalid: what is recorded is none.
        """
        return None if of is None else cls.read(dict(of))

    # Credentials

    def add_credential(self, credential: VerifiableCredential, at: float | None = None) -> AgentIdentity:
        """The identity with one more credential, in the place of one with the same id."""
        others = [one for one in self.credentials if one.id != credential.id]
        return self._changed(at, credentials=(*others, credential))

    def remove_credential(self, id: str, at: float | None = None) -> AgentIdentity:  # noqa: A002 - the field's name
        """The identity without a credential; the same one, if it has no such."""
        left = tuple([one for one in self.credentials if one.id != id])
        return self if len(left) == len(self.credentials) else self._changed(at, credentials=left)

    def get_credential(self, id: str) -> VerifiableCredential | None:  # noqa: A002 - the field's name
        """A credential by its id."""
        return next((one for one in self.credentials if one.id == id), None)

    def get_credentials_by_type(self, kind: str) -> tuple[VerifiableCredential, ...]:
        """The credentials of a type."""
        return tuple([one for one in self.credentials if one.has_type(kind)])

    def capabilities(self, now: float) -> tuple[str, ...]:
        """What its credentials say that it may do at a time, each once.

        Only those count that speak of this DID and are in their time. Nobody has looked at their proofs:
        `verify_chain` does.

        Raises:
            IdentityInvalid: a credential is none.
        """
        holding = [one for one in self.credentials if one.subject_id == str(self.did) and one.is_in_time(now)]
        return tuple(dict.fromkeys([name for one in holding for name in capabilities_in(one)]))

    @property
    def chain(self) -> tuple[VerifiableCredential, ...]:
        """The credentials of those above, whose capabilities were handed on to this one.

        Raises:
            IdentityInvalid: the metadata has something else there.
        """
        kept: Any = (self.metadata or {}).get(CHAIN, [])
        if not isinstance(kept, list):
            raise IdentityInvalid(
                f"metadata.{CHAIN} of an identity is a list, not {kept!r:.100}", where=CHAIN
            )
        return tuple([VerifiableCredential.read(one) for one in cast("list[Any]", kept)])

    def with_chain(self, above: tuple[VerifiableCredential, ...]) -> AgentIdentity:
        """The identity with other credentials of those above."""
        rest = {name: value for name, value in (self.metadata or {}).items() if name != CHAIN}
        kept: dict[str, Any] = {CHAIN: [one.write() for one in above]} if above else {}
        return replace(self, metadata={**rest, **kept} or None)

    def validate(self) -> None:
        """Check that it is named, and that its credentials are some.

        Raises:
            IdentityInvalid: naming what is missing or wrong.
        """
        if not self.display_name:
            raise IdentityInvalid(f"the identity of {self.did} needs a display_name", where="display_name")
        for credential in self.credentials:
            credential.validate()

    def _changed(self, at: float | None, **changes: Any) -> AgentIdentity:
        return replace(self, **changes, updated=self.updated if at is None else at)
