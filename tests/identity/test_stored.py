"""Providers: the promises of the protocol over both stores, and what is special about a folder."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterable
from pathlib import Path

import pytest

from flyball.core.errors import IdentityInvalid, IdentityNotFound, IdentityStorageFailed
from flyball.identity.credential import CAPABILITY
from flyball.identity.did import DID
from flyball.identity.provider import IdentityProvider
from flyball.identity.store import FolderStore, MemoryStore
from flyball.identity.stored import LocalProvider, MemoryProvider
from flyball.identity.verdict import Problem
from flyball.testing.clock import FakeClock
from flyball.testing.conformance import IdentityProviderConformance


class TestMemoryProvider(IdentityProviderConformance):
    async def make_provider(self, clock: FakeClock, trusted: Iterable[DID] = ()) -> IdentityProvider:
        return MemoryProvider(now=clock.now, trusted=trusted)


class TestLocalProvider(IdentityProviderConformance):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self._folders = iter([tmp_path / str(number) for number in range(9)])

    async def make_provider(self, clock: FakeClock, trusted: Iterable[DID] = ()) -> IdentityProvider:
        return LocalProvider(next(self._folders), now=clock.now, trusted=trusted)

    async def reopen(self, provider: IdentityProvider, clock: FakeClock) -> IdentityProvider | None:
        assert isinstance(provider, LocalProvider)
        return LocalProvider(provider.folder, now=clock.now)


def test_both_are_providers() -> None:
    assert isinstance(MemoryProvider(), IdentityProvider)


async def test_nobody_else_can_read_the_folder(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        provider = LocalProvider(tmp_path / "keys")
        identity = await provider.create("clerk", capabilities=["x"])
        await provider.revoke(identity.credentials[0].id)
    finally:
        os.umask(old)
    found = [provider.folder, *provider.folder.rglob("*")]
    assert len(found) > 8
    for path in found:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    assert not [path for path in found if path.name.startswith(".")]


async def test_secrets_are_in_no_identity_and_no_credential(tmp_path: Path) -> None:
    provider = LocalProvider(tmp_path)
    identity = await provider.create("clerk", capabilities=["x"])
    for kind in ("identities", "issued"):
        for path in (tmp_path / kind).iterdir():
            assert b"z3u2" not in path.read_bytes()
    assert "z3u2" not in repr(identity) + repr(provider)


async def test_two_processes_agree_on_the_issuer(tmp_path: Path) -> None:
    providers = [LocalProvider(tmp_path) for _ in range(8)]
    assert len(set(await asyncio.gather(*[one.issuer() for one in providers]))) == 1


async def test_of_changes_at_the_same_time_all_hold(tmp_path: Path) -> None:
    clerk = await LocalProvider(tmp_path).create("clerk")

    async def give(name: str) -> None:
        provider = LocalProvider(tmp_path)  # as another process would have it
        given = await provider.issue(clerk.did, CAPABILITY, {"capability": name})
        await provider.revise(clerk.did, lambda now: now.add_credential(given))

    await asyncio.gather(*[give(f"work.{number}") for number in range(8)])
    assert len((await LocalProvider(tmp_path).resolve(clerk.did)).credentials) == 8
    with pytest.raises(IdentityNotFound):
        await MemoryProvider().revise(clerk.did, lambda now: now)


async def test_a_name_that_was_left_half_made_can_be_made(tmp_path: Path) -> None:
    did = DID.web("example.com")
    provider = LocalProvider(tmp_path)
    await provider.create("clerk", did=did)
    next((tmp_path / "identities").iterdir()).unlink()
    again = await provider.create("clerk", did=did, capabilities=["x"])
    assert await provider.verify(again.credentials[0])
    made = await asyncio.gather(
        *[provider.create("other", did=DID.web("b.com")) for _ in range(4)], return_exceptions=True
    )
    assert [isinstance(one, IdentityInvalid) for one in made].count(False) == 1


async def test_a_folder_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.write_text("")
    with pytest.raises(IdentityStorageFailed, match="file"):
        await LocalProvider(taken).create("clerk")


async def test_a_file_that_holds_no_key_is_told(tmp_path: Path) -> None:
    provider = LocalProvider(tmp_path)
    await provider.issuer()
    next((tmp_path / "issuer").iterdir()).write_text('{"did":"x","secret":7}')
    with pytest.raises(IdentityInvalid, match="key"):
        await LocalProvider(tmp_path).issuer()


@pytest.mark.parametrize("kind", ["memory", "folder"])
def test_a_store_keeps_what_was_first(kind: str, tmp_path: Path) -> None:
    store = MemoryStore() if kind == "memory" else FolderStore(tmp_path)
    odd = "../../etc/passwd\0ä"
    assert store.get("a", odd) is None
    assert store.add("a", odd, b"1") == b"1"
    assert store.add("a", odd, b"2") == b"1"
    store.put("a", odd, b"3")
    assert store.get("a", odd) == b"3"
    assert store.get("b", odd) is None
    assert store.all("a") == [b"3"]
    assert store.all("b") == []
    assert store.remove("a", odd)
    assert not store.remove("a", odd)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


async def test_the_status_of_others_credentials_may_be_let_go_by() -> None:
    clock = FakeClock()
    first = MemoryProvider(now=clock.now)
    credential = (await first.create("clerk", capabilities=["x"])).credentials[0]
    trusted = [str(await first.issuer())]
    strict = MemoryProvider(now=clock.now, trusted=trusted)
    assert (await strict.verify(credential)).problem is Problem.STATUS_UNKNOWN
    assert await MemoryProvider(now=clock.now, trusted=trusted, unchecked_status=True).verify(credential)
