"""What every `IdentityProvider` promises, as tests that a provider's author can run.

    class TestMyProvider(IdentityProviderConformance):
        async def make_provider(self, clock: FakeClock, trusted: Iterable[DID] = ()) -> IdentityProvider:
            return MyProvider(now=clock.now, trusted=trusted)

The methods are coroutines: run them with pytest-asyncio's auto mode, or with the marker of your runner.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from unittest import SkipTest

from msgspec.structs import replace

from flyball.core.errors import IdentityInvalid, IdentityNotFound
from flyball.identity.agent_identity import AgentIdentity
from flyball.identity.credential import CAPABILITY, DELEGATION, VerifiableCredential
from flyball.identity.did import DID
from flyball.identity.provider import IdentityProvider
from flyball.identity.verdict import Problem
from flyball.testing.clock import FakeClock

READ, WRITE = "payments.read", "payments.write"


class IdentityProviderConformance:
    """The promises of `IdentityProvider`. Subclass it, name it `Test…`, and give it `make_provider`."""

    async def make_provider(self, clock: FakeClock, trusted: Iterable[DID] = ()) -> IdentityProvider:
        """A provider that keeps nothing yet and goes by a clock. Every test makes its own."""
        raise NotImplementedError("IdentityProviderConformance needs make_provider(clock, trusted)")

    async def reopen(self, provider: IdentityProvider, clock: FakeClock) -> IdentityProvider | None:
        """The same as another process would open it, or None if it does not outlive its process."""
        del provider, clock
        return None

    async def _clerk(self, clock: FakeClock) -> tuple[IdentityProvider, AgentIdentity, VerifiableCredential]:
        provider = await self.make_provider(clock)
        identity = await provider.create("clerk", role="editor", capabilities=[READ])
        return provider, identity, identity.credentials[0]

    # Identities

    async def test_an_identity_is_made_whole_and_found_again(self) -> None:
        """What `create` gives is what `resolve` and `identities` give."""
        clock = FakeClock()
        provider = await self.make_provider(clock)
        made = await provider.create("clerk", role="editor", capabilities=[READ, READ], metadata={"floor": 2})
        made.validate()
        assert (made.display_name, made.internal_role, made.created) == ("clerk", "editor", clock.now())
        assert made.metadata == {"floor": 2}
        assert made.capabilities(clock.now()) == (READ,)
        assert await provider.resolve(made.did) == made
        assert await provider.identities() == (made,)

    async def test_each_identity_has_a_key_of_its_own(self) -> None:
        """Two of the same name are two, and neither is the issuer."""
        provider = await self.make_provider(FakeClock())
        made = await asyncio.gather(*[provider.create("clerk") for _ in range(3)])
        assert len({one.did for one in made} | {await provider.issuer()}) == 4

    async def test_a_name_is_needed(self) -> None:
        """An empty one is refused, and leaves nothing."""
        provider = await self.make_provider(FakeClock())
        await _raises(IdentityInvalid, provider.create(""))
        assert await provider.identities() == ()

    async def test_the_issuer_is_the_same_for_ever(self) -> None:
        """However often, and by how many at once, it is asked for."""
        clock = FakeClock()
        provider = await self.make_provider(clock)
        asked = await asyncio.gather(*[provider.issuer() for _ in range(5)])
        again = await self.reopen(provider, clock)
        assert len({*asked, await (again or provider).issuer()}) == 1

    async def test_an_update_is_kept(self) -> None:
        """With the time of the update."""
        clock = FakeClock()
        provider, identity, _ = await self._clerk(clock)
        await clock.advance(5)
        await provider.update(replace(identity, internal_role="reviewer"))
        found = await provider.resolve(identity.did)
        assert (found.internal_role, found.updated) == ("reviewer", clock.now())

    async def test_what_is_deleted_is_gone(self) -> None:
        """Its key too, and what it was given holds no longer."""
        provider, identity, credential = await self._clerk(FakeClock())
        await provider.delete(identity.did)
        await _raises(IdentityNotFound, provider.resolve(identity.did))
        await _raises(IdentityNotFound, provider.delete(identity.did))
        await _raises(IdentityNotFound, provider.update(identity))
        await _raises(IdentityNotFound, provider.issue(identity.did, CAPABILITY, {}, issuer=identity.did))
        assert (await provider.verify(credential)).problem is Problem.REVOKED

    async def test_a_did_of_the_web_is_resolved_from_here(self) -> None:
        """Its document names its key, for who publishes it; it cannot be taken twice."""
        provider = await self.make_provider(FakeClock())
        did = DID.web("example.com:8443", "agents", "clerk")
        identity = await provider.create("clerk", did=did, capabilities=[READ])
        assert identity.did == did
        assert (await provider.document(did)).id == str(did)
        assert await provider.verify(identity.credentials[0])
        await _raises(IdentityInvalid, provider.create("another", did=did))

    # Credentials

    async def test_what_was_issued_holds(self) -> None:
        """As it is, and after it was written and read."""
        provider, identity, credential = await self._clerk(FakeClock())
        assert credential.issuer == str(await provider.issuer())
        assert credential.subject_id == str(identity.did)
        assert await provider.verify(credential)
        assert await provider.verify(VerifiableCredential.read(credential.write()))

    async def test_why_a_credential_does_not_hold_is_told(self) -> None:
        """Each of the reasons, by its name."""
        clock = FakeClock()
        provider, identity, credential = await self._clerk(clock)
        until = clock.now() + 10
        short = await provider.issue(identity.did, CAPABILITY, {"capability": WRITE}, expires=until)
        changed = replace(
            credential, credential_subject={**credential.credential_subject, "capability": WRITE}
        )
        assert (await provider.verify(changed)).problem is Problem.BAD_SIGNATURE
        assert (await provider.verify(credential.with_proof(None))).problem is Problem.BAD_SIGNATURE
        assert (await provider.verify(replace(credential, id=""))).problem is Problem.MALFORMED
        early = await provider.verify(credential, now=clock.now() - 60)
        assert early.problem is Problem.NOT_YET_VALID
        assert await provider.verify(short)
        await clock.advance(11)
        late = await provider.verify(short)
        assert late.problem is Problem.EXPIRED
        assert late.reason
        assert await provider.verify(credential)

    async def test_a_revoked_credential_stays_revoked(self) -> None:
        """Also for whoever opens the provider again; what nobody has issued cannot be revoked."""
        clock = FakeClock()
        provider, identity, credential = await self._clerk(clock)
        other = await provider.issue(identity.did, CAPABILITY, {"capability": WRITE})
        for _ in range(2):
            await provider.revoke(credential.id)
        for one in filter(None, (provider, await self.reopen(provider, clock))):
            assert (await one.verify(credential)).problem is Problem.REVOKED
            assert await one.verify(other)
        await _raises(IdentityNotFound, provider.revoke("urn:uuid:nobody"))

    async def test_unknown_issuers_are_refused_unless_they_are_trusted(self) -> None:
        """The same credential, with and without trust in who issued it."""
        clock = FakeClock()
        first = await self.make_provider(clock)
        identity = await first.create("clerk", capabilities=[READ])
        stranger = await self.make_provider(clock)
        told = await stranger.verify(identity.credentials[0])
        assert told.problem is Problem.UNKNOWN_ISSUER
        trusting = await self.make_provider(clock, [await first.issuer()])
        assert (await trusting.verify(identity.credentials[0])).problem in (None, Problem.STATUS_UNKNOWN)

    async def test_an_agent_cannot_give_itself_a_capability(self) -> None:
        """What it signs itself is not the provider's word; handing on is."""
        provider, identity, _ = await self._clerk(FakeClock())
        own = await provider.issue(identity.did, CAPABILITY, {"capability": WRITE}, issuer=identity.did)
        assert (await provider.verify(own)).problem is Problem.UNKNOWN_ISSUER
        other = await provider.create("other")
        claims = {"delegator": str(identity.did), "capabilities": [READ]}
        handed = await provider.issue(other.did, DELEGATION, claims, issuer=identity.did)
        assert await provider.verify(handed)

    async def test_an_agent_cannot_hand_on_to_itself(self) -> None:
        """What it signs for itself is no delegation, whoever is named in it as the one who had it."""
        provider, identity, _ = await self._clerk(FakeClock())
        other = await provider.create("other", capabilities=[WRITE])
        for delegator in (identity.did, identity.did.with_fragment("key"), other.did):
            claims = {"delegator": str(delegator), "capabilities": [WRITE]}
            own = await provider.issue(identity.did, DELEGATION, claims, issuer=identity.did)
            assert (await provider.verify(own)).problem is Problem.LOOP
            assert (await provider.verify(own, issuers=[identity.did])).problem is Problem.LOOP

    async def test_what_is_issued_under_an_id_is_issued_once(self) -> None:
        """Asked for again it is given again; something else is refused."""
        clock = FakeClock()
        provider, identity, _ = await self._clerk(clock)

        async def issue(name: str) -> VerifiableCredential:
            return await provider.issue(identity.did, CAPABILITY, {"capability": name}, id="urn:one")

        first = await issue(READ)
        await clock.advance(60)
        assert await asyncio.gather(*[issue(READ) for _ in range(3)]) == [first] * 3
        await _raises(IdentityInvalid, issue(WRITE))

    async def test_all_is_there_after_it_was_opened_again(self) -> None:
        """Identities, keys and what they say."""
        clock = FakeClock()
        provider, identity, credential = await self._clerk(clock)
        again = await self.reopen(provider, clock)
        if again is None:
            raise SkipTest("it ends with its process")
        assert await again.resolve(identity.did) == identity
        assert await again.verify(credential)
        assert (await again.issue(identity.did, CAPABILITY, {"capability": WRITE}, issuer=identity.did)).proof


async def _raises(kind: type[Exception], doing: object) -> None:
    try:
        await doing  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType] - a coroutine
    except kind:
        return
    raise AssertionError(f"it should have raised {kind.__name__}")
