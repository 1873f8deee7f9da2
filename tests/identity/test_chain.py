"""Chains of delegations: what may be handed on, and everything that is refused."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from flyball.core.errors import DelegationRefused
from flyball.identity.agent_identity import AgentIdentity
from flyball.identity.chain import verify_chain
from flyball.identity.credential import CAPABILITY, DELEGATION, VerifiableCredential
from flyball.identity.delegation import delegate
from flyball.identity.did import DID
from flyball.identity.keys import SigningKey
from flyball.identity.stored import MemoryProvider
from flyball.identity.subjects import delegation_credential
from flyball.identity.verdict import Problem
from flyball.testing.clock import FakeClock
from tests.effort import examples
from tests.identity.providers import memory

NAMES = ["a", "b", "c"]
Chain = tuple[MemoryProvider, FakeClock, list[AgentIdentity]]


async def chain(*given: list[str], root: list[str] = NAMES, expires: float | None = None) -> Chain:
    """A root that holds something, and who was handed what, one after the other."""
    clock = FakeClock()
    provider = memory(clock)
    until = None if expires is None else clock.now() + expires
    held = [await provider.create("root", capabilities=root, expires=until)]
    for names in given:
        below = await provider.create("below")
        held.append(await delegate(provider, held[-1], below, names, now=clock.now()))
    return provider, clock, held


@given(st.lists(st.lists(st.sampled_from(NAMES), unique=True), min_size=1, max_size=4))
@examples(20)
async def test_nobody_ever_has_more_than_the_one_above(given: list[list[str]]) -> None:
    provider, _, identities = await chain(*given)
    above = set(NAMES)
    for names, identity in zip(given, identities[1:], strict=True):
        verdict = await verify_chain(identity, provider)
        assert verdict
        assert set(verdict.granted) == above & set(names)
        above &= set(names)


async def test_a_chain_holds_only_as_long_as_its_root() -> None:
    provider, clock, (_, _, last) = await chain(["a", "b"], ["a"], expires=10)
    assert last.credentials[0].expires_at == clock.now() + 10
    assert (await verify_chain(last, provider)).granted == ("a",)
    await clock.advance(11)
    assert (await verify_chain(last, provider)).on("a").problem is Problem.EXPIRED


async def test_what_has_run_out_does_not_shorten_what_holds() -> None:
    provider, clock, (root, *_) = await chain(root=["a"])
    until = clock.now() + 10
    old = await provider.issue(root.did, CAPABILITY, {"capability": "a"}, expires=until)
    await clock.advance(11)
    below = await provider.create("below")
    handed_on = await delegate(provider, root.add_credential(old), below, ["a"], now=clock.now())
    assert handed_on.credentials[0].expires_at is None
    assert (await verify_chain(handed_on, provider)).granted == ("a",)


@pytest.mark.parametrize("who", [0, 1, 2])
async def test_what_is_revoked_anywhere_is_refused_below(who: int) -> None:
    provider, _, identities = await chain(["a", "b"], ["a", "b"])
    for credential in identities[who].credentials:
        if credential.has_type(DELEGATION) or credential.credential_subject["capability"] == "a":
            await provider.revoke(credential.id)
    verdict = await verify_chain(identities[2], provider)
    assert verdict.on("a").problem is Problem.REVOKED
    assert verdict.granted == (("b",) if who == 0 else ())


async def handed(
    provider: MemoryProvider, above: AgentIdentity, below: AgentIdentity, names: list[str], **claims: Any
) -> VerifiableCredential:
    """A delegation as somebody would sign it who does not care what is allowed."""
    said = {"delegator": str(above.did), "capabilities": names, **claims}
    return await provider.issue(below.did, DELEGATION, said, issuer=above.did)


async def test_widening_is_refused() -> None:
    provider, _, (root, middle) = await chain(["a"])
    below = await provider.create("below")
    wide = await handed(provider, middle, below, ["a", "b"])
    bad = below.add_credential(wide).with_chain((*root.credentials, *middle.credentials))
    verdict = await verify_chain(bad, provider)
    assert verdict.granted == ("a",)
    assert verdict.on("b").problem is Problem.WIDENED
    assert verdict.on("c").problem is Problem.NOT_HELD
    assert not verdict


async def test_broken_links_are_refused() -> None:
    provider, _, (root, middle) = await chain(["a"])
    below, stranger = await provider.create("below"), await provider.create("stranger")
    good = await handed(provider, middle, below, ["a"])
    without = below.add_credential(good).with_chain(root.credentials)
    assert (await verify_chain(without, provider)).on("a").problem is Problem.BROKEN_LINK
    # Signed by somebody else than the one whose it is.
    other = await handed(provider, stranger, below, ["a"], delegator=str(middle.did))
    posed = below.add_credential(other).with_chain((*root.credentials, *middle.credentials))
    assert (await verify_chain(posed, provider)).on("a").problem is Problem.BROKEN_LINK
    # Changed after it was signed: by what the one above has, and by what it has not.
    provider, _, (root, middle) = await chain(["a", "b"])
    good = await handed(provider, middle, below, ["a"])
    forged = replace(good, credential_subject={**good.credential_subject, "capabilities": ["a", "b", "c"]})
    changed = below.add_credential(forged).with_chain((*root.credentials, *middle.credentials))
    assert (await verify_chain(changed, provider)).on("b").problem is Problem.BAD_SIGNATURE
    assert (await verify_chain(changed, provider)).on("c").problem is Problem.WIDENED


async def test_circles_are_refused() -> None:
    clock = FakeClock()
    provider = memory(clock)
    one, two = await provider.create("one"), await provider.create("two")
    there, back = await handed(provider, one, two, ["a"]), await handed(provider, two, one, ["a"])
    verdict = await verify_chain(one.add_credential(back).with_chain((there,)), provider)
    assert verdict.on("a").problem is Problem.LOOP


async def test_chains_that_are_too_long_are_refused() -> None:
    provider, clock, identities = await chain(*[["a"]] * 4)
    assert (await verify_chain(identities[-1], provider)).granted == ("a",)
    assert (await verify_chain(identities[-1], provider, longest=4)).granted == ("a",)
    verdict = await verify_chain(identities[-1], provider, longest=3)
    assert verdict.on("a").problem is Problem.TOO_LONG
    below = await provider.create("below")
    with pytest.raises(DelegationRefused, match="4"):
        await delegate(provider, identities[-1], below, ["a"], now=clock.now(), longest=4)


@pytest.mark.slow
async def test_who_makes_up_many_capabilities_costs_no_more_than_so_many_links() -> None:
    provider, names = MemoryProvider(), [f"c{number}" for number in range(400)]
    layers = [[SigningKey.new().did for _ in range(4 if layer else 1)] for layer in range(7)]
    made = [
        delegation_credential(f"urn:x:{one}-{two}", two, one, names, issued=1.0)
        for below, above in pairwise(layers)
        for one in below
        for two in above
    ]
    (victim,) = layers[0]
    own = tuple([one for one in made if one.subject_id == str(victim)])
    identity = AgentIdentity(did=victim, display_name="made up", credentials=own)
    identity = identity.with_chain(tuple([one for one in made if one not in own]))
    began = time.process_time()
    verdict = await verify_chain(identity, provider)
    assert time.process_time() - began < 1.5
    assert not verdict.granted
    assert verdict.on("c399").problem is Problem.TOO_LONG


async def test_many_capabilities_over_the_longest_chain_are_followed() -> None:
    names = [f"c{number}" for number in range(200)]
    provider, _, identities = await chain(*[names] * 8, root=names)
    assert len((await verify_chain(identities[-1], provider)).granted) == len(names)


async def test_credentials_of_others_do_not_count_as_ones_own() -> None:
    provider, _, (root, _) = await chain(["a"])
    thief = await provider.create("thief")
    taken = replace(thief, credentials=root.credentials)
    assert (await verify_chain(taken, provider)).granted == ()
    mine = await provider.issue(thief.did, CAPABILITY, {"capability": "a"}, issuer=thief.did)
    verdict = await verify_chain(thief.add_credential(mine), provider)
    assert verdict.on("a").problem is Problem.UNKNOWN_ISSUER


async def test_how_many_credentials_are_looked_at_is_limited() -> None:
    provider, clock, _ = await chain()
    looks = 0

    class Counted:
        async def verify(self, *args: Any, **options: Any) -> Any:
            nonlocal looks
            looks += 1
            return await provider.verify(*args, **options)

    thief = await provider.create("thief")
    mine = await provider.issue(thief.did, CAPABILITY, {"capability": "a"}, issuer=thief.did)
    many = replace(thief, credentials=tuple([replace(mine, id=f"urn:{number}") for number in range(300)]))
    counted: Any = Counted()
    assert not await verify_chain(many, counted, now=clock.now())
    assert looks <= 256


class Web:
    """Documents on the web, and which of them were asked for."""

    def __init__(self) -> None:
        self.asked = list[str]()
        self.there = dict[str, bytes]()

    async def __call__(self, url: str) -> bytes:
        self.asked.append(url)
        if url not in self.there:
            raise TimeoutError
        return self.there[url]


async def test_who_makes_up_an_identity_has_no_address_visited() -> None:
    web, stranger, below = Web(), MemoryProvider(), SigningKey.new().did
    made_up = await stranger.create("made up", did=DID.web("victim.example.com", "admin"))
    other = await stranger.create("other", did=DID.web("other.example.com"))
    first = await handed(stranger, made_up, AgentIdentity(did=below), ["a"])
    above = await handed(stranger, other, made_up, ["a"])
    root = await stranger.issue(other.did, CAPABILITY, {"capability": "a"}, issuer=made_up.did)
    bad = AgentIdentity(did=below, display_name="bad", credentials=(first,))
    provider = MemoryProvider(fetch=web)
    for more in ((), (above,), (above, root)):
        assert not await verify_chain(bad.with_chain(more), provider)
    assert web.asked == []


async def test_a_delegator_of_the_web_is_asked_for_once_it_is_vouched_for() -> None:
    web, clock = Web(), FakeClock()
    provider = MemoryProvider(fetch=web, now=clock.now, unchecked_status=True)
    others = MemoryProvider(now=clock.now)
    partner = await others.create("partner", did=DID.web("partner.example.com"))
    root = await provider.issue(partner.did, CAPABILITY, {"capability": "a"})
    below = await others.create("below")
    held = below.add_credential(await handed(others, partner, below, ["a"])).with_chain((root,))
    assert (await verify_chain(held, provider)).on("a").problem is Problem.UNRESOLVED
    web.there[partner.did.url] = msgspec.json.encode((await others.document(partner.did)).write())
    assert (await verify_chain(held, provider)).granted == ("a",)
    await provider.revoke(root.id)
    web.asked.clear()
    await clock.advance(600)
    assert (await verify_chain(held, provider)).on("a").problem is Problem.REVOKED
    assert web.asked == []


async def test_how_many_documents_are_fetched_is_limited() -> None:
    web, others = Web(), MemoryProvider()
    provider = MemoryProvider(fetch=web)
    below = await others.create("below")
    roots, held = list[VerifiableCredential](), below
    for number in range(40):
        partner = await others.create("partner", did=DID.web(f"partner{number}.example.com"))
        roots.append(await provider.issue(partner.did, CAPABILITY, {"capability": "a"}))
        for _ in range(2):
            held = held.add_credential(await handed(others, partner, below, ["a"]))
    assert not await verify_chain(held.with_chain(tuple(roots)), provider)
    assert len(web.asked) == len(set(web.asked)) == 16


async def test_many_ways_through_few_credentials_come_to_an_end() -> None:
    provider, clock, _ = await chain()
    layers = [[await provider.create("one") for _ in range(5)] for _ in range(7)]
    last, above = await provider.create("last"), list[VerifiableCredential]()
    for upper, lower in pairwise([*layers, [last]]):
        above += [await handed(provider, one, other, ["a"]) for one in upper for other in lower]
    mine = tuple([one for one in above if one.subject_id == str(last.did)])
    many = replace(last, credentials=mine).with_chain(tuple([one for one in above if one not in mine]))
    began = time.process_time()
    assert (await verify_chain(many, provider, now=clock.now())).on("a").problem is Problem.BROKEN_LINK
    assert time.process_time() - began < 5, "and not 5 to the power of 7 ways"


async def test_one_occasion_is_issued_once() -> None:
    provider, clock, (root, *_) = await chain()
    below = await provider.create("below")
    first = await delegate(provider, root, below, ["a"], now=clock.now(), occasion="loop")
    await clock.advance(5)
    assert await delegate(provider, root, below, ["a"], now=clock.now(), occasion="loop") == first
    other = await delegate(provider, root, below, ["a"], now=clock.now(), occasion="another")
    assert other.credentials != first.credentials


async def test_where_nothing_is_to_be_handed_on_nothing_is_issued() -> None:
    provider, clock, (root, middle) = await chain(["a"])
    for above, below, names in [(root, middle, []), (root, middle, ["z"]), (root, root, ["a"])]:
        assert await delegate(provider, above, below, names, now=clock.now()) is below
    assert await delegate(provider, middle, root, ["a"], now=clock.now()) is root
