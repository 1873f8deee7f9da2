"""A provider over a store: keys, identities, what was issued and what was taken back.

`MemoryProvider` is for tests and for what need not last; `LocalProvider` keeps all of it in a folder.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from flyball.core.encodable import NotEncodable, to_json
from flyball.core.errors import IdentityInvalid, IdentityNotFound
from flyball.identity.agent_identity import AgentIdentity
from flyball.identity.checking import checked
from flyball.identity.credential import (
    CAPABILITY,
    DELEGATION,
    CredentialStatus,
    VerifiableCredential,
)
from flyball.identity.did import DID, KEY, WEB
from flyball.identity.document import ASSERTION, DIDDocument, document_of_key
from flyball.identity.document import DELEGATION as DELEGATES
from flyball.identity.keys import SigningKey
from flyball.identity.proof import proved
from flyball.identity.store import FolderStore, MemoryStore, Store
from flyball.identity.verdict import HOLDS, Problem, Verdict
from flyball.identity.web import Fetch, WebDocuments

STATUS = "FlyballRevocation"
"""The kind of status that says: ask the provider that has issued it."""
_ISSUER = "issuer"


class _Secret(msgspec.Struct, frozen=True):
    did: str
    secret: str

    def __repr__(self) -> str:
        return f"<the key of {self.did}>"


class StoredProvider:
    """See `IdentityProvider`.

    Args:
        store: where all is kept.
        trusted: the DIDs whose credentials count, besides those that are issued here.
        fetch: how the document of a did:web is got; by aiohttp without it.
        now: tells the time.
        unchecked_status: whether a credential of those who are trusted counts although only its issuer knows
            whether it was revoked.
        private_hosts: whether the document of a did:web is also fetched from hosts of this machine and this
            network: loopback, private and link-local ones.
    """

    def __init__(
        self,
        store: Store,
        *,
        trusted: Iterable[DID | str] = (),
        fetch: Fetch | None = None,
        now: Callable[[], float] = time.time,
        unchecked_status: bool = False,
        private_hosts: bool = False,
    ) -> None:
        self._store = store
        self._trusted = frozenset([one if isinstance(one, DID) else DID.parse(one) for one in trusted])
        self._web = WebDocuments(fetch, now, private_hosts=private_hosts)
        self._now = now
        self._unchecked_status = unchecked_status
        self._own: DID | None = None

    # Identities

    async def issuer(self) -> DID:
        """See `IdentityProvider.issuer`."""
        if self._own is None:
            self._own = (await asyncio.to_thread(self._issuer_key)).did
        return self._own

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
        """See `IdentityProvider.create`."""
        if did is not None and did.method != WEB:
            raise IdentityInvalid(f"{did} is no did:web: leave it out, and a did:key is made", where="did")
        key, at = SigningKey.new(), self._now()
        named = key.did if did is None else did.without_fragment()
        identity = AgentIdentity(
            did=named,
            display_name=name,
            internal_role=role,
            created=at,
            updated=at,
            metadata=_plain(metadata, "metadata") if metadata else None,
        )
        identity.validate()
        if did is not None and self._kept(named) is not None:
            raise _taken(named)
        # A key that is there already was left by somebody who got no further: it is as good as any.
        await asyncio.to_thread(self._store.add, "keys", str(named), _sealed(named, key))
        for capability in dict.fromkeys(capabilities):
            claims = {"capability": capability, "confidence": 1.0}
            identity = identity.add_credential(await self.issue(named, CAPABILITY, claims, expires=expires))
        data = identity.marshal_json()
        if await asyncio.to_thread(self._store.add, "identities", str(named), data) != data:
            raise _taken(named)
        return identity

    async def resolve(self, did: DID) -> AgentIdentity:
        """See `IdentityProvider.resolve`."""
        found = self._kept(did)
        if found is None:
            raise _not_kept(did)
        return found

    async def identities(self) -> tuple[AgentIdentity, ...]:
        """See `IdentityProvider.identities`."""
        found = [AgentIdentity.unmarshal_json(data) for data in self._store.all("identities")]
        return tuple(sorted(found, key=lambda one: (one.created or 0.0, str(one.did))))

    async def update(self, identity: AgentIdentity) -> None:
        """See `IdentityProvider.update`."""
        identity.validate()
        await self.resolve(identity.did)
        await asyncio.to_thread(self._keep, replace(identity, updated=self._now()))

    async def revise(self, did: DID, change: Callable[[AgentIdentity], AgentIdentity]) -> AgentIdentity:
        """Change an identity as it is by now, while nobody else does: what others have changed stays.

        Raises:
            IdentityNotFound: it is not kept here.
            IdentityInvalid: it is none as it is changed.
        """
        return await asyncio.to_thread(self._revise, did, change)

    async def delete(self, did: DID) -> None:
        """See `IdentityProvider.delete`."""
        identity = await self.resolve(did)
        for credential in identity.credentials:
            if self._store.get("issued", credential.id) is not None:
                await self.revoke(credential.id)
        name = str(did.without_fragment())
        await asyncio.to_thread(self._store.remove, "keys", name)
        await asyncio.to_thread(self._store.remove, "identities", name)

    async def document(self, did: DID) -> DIDDocument:
        """See `IdentityProvider.document`."""
        bare = did.without_fragment()
        if bare.method == KEY:
            return document_of_key(bare)
        if (key := self._key(bare)) is not None:
            return DIDDocument.of(bare, key.public)
        if bare.method != WEB:
            raise IdentityNotFound(
                f"{bare} cannot be resolved: only did:key and did:web are known here", did=str(bare)
            )
        return await self._web.get(bare)

    # Credentials

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
        """See `IdentityProvider.issue`."""
        said = {**_plain(claims, "claims"), "id": str(subject.without_fragment())}
        return await asyncio.to_thread(self._issue, kind, said, issuer, expires, id or f"urn:uuid:{uuid4()}")

    async def verify(
        self, credential: VerifiableCredential, *, now: float | None = None, issuers: Collection[DID] = ()
    ) -> Verdict:
        """See `IdentityProvider.verify`."""
        known = {await self.issuer(), *self._trusted, *issuers}
        if credential.has_type(DELEGATION) and (own := self._delegator(credential)) is not None:
            known.add(own)
        at = self._now() if now is None else now
        verdict = await checked(credential, at, known, self.document)
        return self._status(credential) if verdict else verdict

    async def revoke(self, id: str) -> None:  # noqa: A002 - the field's name
        """See `IdentityProvider.revoke`."""
        if self._store.get("issued", id) is None:
            raise IdentityNotFound(
                f"no credential {id!r:.200} was issued here: only its issuer can take it back", credential=id
            )
        data = msgspec.json.encode({"id": id, "at": self._now()})
        await asyncio.to_thread(self._store.add, "revoked", id, data)

    # Behind it

    def _issue(
        self, kind: str, claims: dict[str, Any], issuer: DID | None, expires: float | None, name: str
    ) -> VerifiableCredential:
        key = self._issuer_key() if issuer is None else self._key(issuer)
        if key is None:
            raise IdentityNotFound(f"the key of {issuer} is not kept here: it cannot sign", did=str(issuer))
        signer = key.did if issuer is None else issuer.without_fragment()
        # Whole seconds: clocks that differ by a hair must not find it not valid yet.
        at = float(int(self._now()))
        bare = replace(
            VerifiableCredential.new(name, signer, kind, claims, issued=at, expires=expires),
            credential_status=CredentialStatus(id=f"{name}#status", type=STATUS),
        )
        bare.validate()
        purpose = DELEGATES if kind == DELEGATION else ASSERTION
        signed = bare.with_proof(proved(bare.write(), key, signer, at, purpose))
        kept = VerifiableCredential.parse(
            self._store.add("issued", name, msgspec.json.encode(signed.write()))
        )
        if (kept.credential_subject, kept.issuer, kept.type) != (claims, str(signer), signed.type):
            raise IdentityInvalid(f"something else has been issued under the id {name!r}", where="id")
        return kept

    def _status(self, credential: VerifiableCredential) -> Verdict:
        if self._store.get("revoked", credential.id) is not None:
            return Verdict(Problem.REVOKED, f"the credential {credential.id} was revoked")
        kept = self._store.get("issued", credential.id)
        issued_here = kept is not None and VerifiableCredential.parse(kept).issuer == credential.issuer
        if credential.credential_status is None or issued_here or self._unchecked_status:
            return HOLDS
        return Verdict(
            Problem.STATUS_UNKNOWN,
            f"only its issuer knows whether the credential {credential.id} was revoked",
        )

    def _delegator(self, credential: VerifiableCredential) -> DID | None:
        """Who hands something on, if that is an identity of ours."""
        named = credential.credential_subject.get("delegator")
        if named != credential.issuer or not isinstance(named, str):
            return None
        try:
            did = DID.parse(named)
        except IdentityInvalid:
            return None
        return None if self._kept(did) is None else did

    def _issuer_key(self) -> SigningKey:
        data = self._store.get(_ISSUER, _ISSUER)
        if data is None:
            key = SigningKey.new()
            data = self._store.add(_ISSUER, _ISSUER, _sealed(key.did, key))
        return _opened(data)

    def _key(self, did: DID) -> SigningKey | None:
        data = self._store.get("keys", str(did.without_fragment()))
        return None if data is None else _opened(data)

    def _kept(self, did: DID) -> AgentIdentity | None:
        data = self._store.get("identities", str(did.without_fragment()))
        return None if data is None else AgentIdentity.unmarshal_json(data)

    def _revise(self, did: DID, change: Callable[[AgentIdentity], AgentIdentity]) -> AgentIdentity:
        with self._store.alone():
            kept = self._kept(did)
            if kept is None:
                raise _not_kept(did)
            changed = replace(change(kept), updated=self._now())
            changed.validate()
            self._keep(changed)
            return changed

    def _keep(self, identity: AgentIdentity) -> None:
        self._store.put("identities", str(identity.did), identity.marshal_json())


class MemoryProvider(StoredProvider):
    """A provider that keeps all in memory. See `StoredProvider` for the options."""

    def __init__(self, **options: Any) -> None:
        super().__init__(MemoryStore(), **options)


class LocalProvider(StoredProvider):
    """A provider that keeps all in a folder, also the secret keys: nobody but its owner can read it.

    See `StoredProvider` for the options. All methods raise IdentityStorageFailed where it cannot be used.
    """

    def __init__(self, folder: Path | str, **options: Any) -> None:
        self.folder = Path(folder).expanduser()
        super().__init__(FolderStore(self.folder), **options)


def _taken(did: DID) -> IdentityInvalid:
    return IdentityInvalid(f"there is an identity of {did} here already: choose another DID", where="did")


def _not_kept(did: DID) -> IdentityNotFound:
    return IdentityNotFound(
        f"the identity of {did} is not kept here: `flyball identity list` shows those that are", did=str(did)
    )


def _sealed(did: DID, key: SigningKey) -> bytes:
    return msgspec.json.encode(_Secret(str(did), key.secret))


def _opened(data: bytes) -> SigningKey:
    try:
        return SigningKey.read(msgspec.json.decode(data, type=_Secret).secret)
    except msgspec.DecodeError as error:
        raise IdentityInvalid(f"a file with a key holds none: {error}", where="key") from None


def _plain(given: Mapping[str, Any], what: str) -> dict[str, Any]:
    try:
        return to_json(dict(given), what)
    except NotEncodable as error:
        raise IdentityInvalid(str(error), where=what) from error
