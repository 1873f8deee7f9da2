"""Documents of did:web: from where, how often, and what is not asked for at all."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import msgspec
import pytest
from aiohttp import web

from flyball.core.errors import IdentityInvalid, IdentityNotFound
from flyball.identity.credential import CAPABILITY
from flyball.identity.did import DID
from flyball.identity.document import DIDDocument
from flyball.identity.hosts import is_private_host
from flyball.identity.keys import SigningKey
from flyball.identity.stored import MemoryProvider
from flyball.identity.verdict import Problem
from flyball.identity.web import fetch_over_https
from flyball.testing.clock import FakeClock

Handler = Callable[[web.Request], web.StreamResponse]


@asynccontextmanager
async def served(answer: Handler) -> AsyncGenerator[str]:
    async def handle(request: web.Request) -> web.StreamResponse:
        return answer(request)

    app = web.Application()
    app.router.add_get("/{path:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def test_an_issuer_of_the_web_is_asked_for_its_key() -> None:
    clock, issuer, asked = FakeClock(), MemoryProvider(), list[str]()

    def answer(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.json_response(documents[0])

    documents = list[object]()
    async with served(answer) as where:
        did = DID.web(where, "bank")
        bank = await issuer.create("bank", did=did)
        documents.append((await issuer.document(did)).write())
        credential = await issuer.issue(
            SigningKey.new().did, CAPABILITY, {"capability": "x"}, issuer=bank.did
        )
        known = MemoryProvider(trusted=[did], unchecked_status=True, private_hosts=True)
        assert await known.verify(credential)
        assert await known.verify(credential)
        assert asked == ["/bank/did.json"]
        stranger = MemoryProvider(now=clock.now)
        assert (await stranger.verify(credential)).problem is Problem.UNKNOWN_ISSUER
        assert asked == ["/bank/did.json"]
    later = MemoryProvider(trusted=[did], private_hosts=True)
    verdict = await later.verify(credential)
    assert verdict.problem is Problem.UNRESOLVED


async def test_documents_are_remembered_for_a_while() -> None:
    clock, asked, did = FakeClock(), list[str](), DID.web("example.com")

    async def fetch(url: str) -> bytes:
        asked.append(url)
        return msgspec.json.encode(DIDDocument.of(did, SigningKey.new().public).write())

    provider = MemoryProvider(fetch=fetch, now=clock.now)
    first = await provider.document(did.with_fragment("key"))
    assert await provider.document(did) is first
    await clock.advance(301)
    assert await provider.document(did) != first
    assert asked == ["https://example.com/.well-known/did.json"] * 2


@pytest.mark.parametrize("body", [b"", b"[]", b'{"id":"did:web:other.com"}', b"\xff"])
async def test_what_is_no_document_of_the_did_is_refused(body: bytes) -> None:
    async def fetch(url: str) -> bytes:
        return body

    with pytest.raises(IdentityInvalid):
        await MemoryProvider(fetch=fetch).document(DID.web("example.com"))


async def test_what_cannot_be_fetched_may_be_tried_again() -> None:
    async def fetch(url: str) -> bytes:
        raise TimeoutError

    with pytest.raises(IdentityNotFound) as failure:
        await MemoryProvider(fetch=fetch).document(DID.web("example.com"))
    assert failure.value.retryable
    with pytest.raises(IdentityNotFound) as failure:
        await MemoryProvider().document(DID("example", "x"))
    assert not failure.value.retryable


def _elsewhere(_: web.Request) -> web.Response:
    raise web.HTTPFound("http://localhost:1/did.json")


def _round_and_round(_: web.Request) -> web.Response:
    raise web.HTTPFound("/did.json")


def _missing(_: web.Request) -> web.Response:
    return web.Response(status=404)


def _large(_: web.Request) -> web.Response:
    return web.Response(body=b"x" * 300_000)


def _down(_: web.Request) -> web.Response:
    raise web.HTTPFound("ftp://127.0.0.1/did.json")


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (_elsewhere, "another host"),
        (_round_and_round, "more than 3"),
        (_missing, "404"),
        (_large, "larger"),
    ],
    ids=["elsewhere", "round", "missing", "large"],
)
async def test_what_a_server_may_not_do(answer: Handler, told: str) -> None:
    async with served(answer) as where:
        with pytest.raises(OSError, match=told):
            await fetch_over_https(f"http://{where}/did.json", private_hosts=True)


async def test_redirects_within_a_host_are_followed() -> None:
    def answer(request: web.Request) -> web.Response:
        if request.path == "/did.json":
            raise web.HTTPFound("/there")
        return web.Response(body=b"here")

    async with served(answer) as where:
        assert await fetch_over_https(f"http://{where}/did.json", private_hosts=True) == b"here"


PRIVATE = [
    *["localhost", "LOCALHOST", "a.localhost", "redis", "db.internal", "printer.local", "127.0.0.1", "127.1"],
    *["2130706433", "0x7f000001", "0x7F.1", "0177.0.0.1", "017700000001", "0.0.0.0", "10.1.2.3", "0"],
    *["192.168.0.1", "172.16.0.1", "169.254.169.254", "100.64.0.1", "224.0.0.1", "999.1.1.1"],
]


@pytest.mark.parametrize("host", PRIVATE)
async def test_hosts_of_this_machine_and_network_are_not_asked(host: str) -> None:
    asked = list[str]()

    async def fetch(url: str) -> bytes:
        asked.append(url)
        raise TimeoutError

    did = DID.web(f"{host}:6379", "admin")
    with pytest.raises(IdentityNotFound, match="private_hosts=True") as refused:
        await MemoryProvider(fetch=fetch, trusted=[did]).document(did)
    assert (asked, refused.value.retryable) == ([], False)
    with pytest.raises(IdentityInvalid, match="private_hosts=True"):
        await fetch_over_https(f"https://{host}/did.json")
    with pytest.raises(IdentityNotFound, match="could not be fetched"):
        await MemoryProvider(fetch=fetch, private_hosts=True).document(did)
    assert asked == [did.url]


@pytest.mark.parametrize(
    ("host", "private"),
    [
        *[("[::1]", True), ("[fe80::1%eth0]", True), ("[fd00::1]", True), ("[::ffff:10.0.0.1]", True)],
        *[("[2002:7f00:1::]", True), ("[64:ff9b::a00:1]", True), ("[2606:4700::1111]", False)],
        *[
            ("8.8.8.8", False),
            ("example.com", False),
            ("10.example.com.", False),
            ("local.example.org", False),
        ],
    ],
)
def test_which_hosts_are_private(host: str, private: bool) -> None:
    assert is_private_host(host) is private


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.7", "::1"])
async def test_a_name_that_means_a_private_address_is_not_asked(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    async def resolve(_: object, host: str, port: int = 0, family: int = 0) -> list[dict[str, object]]:
        of = {"hostname": host, "port": port, "family": family, "proto": 0, "flags": 0}
        return [{**of, "host": "93.184.216.34"}, {**of, "host": address}]

    monkeypatch.setattr("aiohttp.resolver.ThreadedResolver.resolve", resolve)
    with pytest.raises(OSError, match="of this machine or this network"):
        await fetch_over_https("https://inside.example.com/did.json")


@pytest.mark.parametrize("url", ["http://example.com/did.json", "file:///etc/passwd", "ftp://127.0.0.1/"])
async def test_only_https_is_asked(url: str) -> None:
    with pytest.raises(IdentityInvalid):
        await fetch_over_https(url)
    async with served(_down) as where:
        with pytest.raises(IdentityInvalid):
            await fetch_over_https(f"http://{where}/did.json", private_hosts=True)
