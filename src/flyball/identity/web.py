"""Documents of did:web, fetched from where they are published.

Only issuers are ever asked for that are known, or for whom somebody known has vouched: who makes up a
credential cannot have addresses visited. Hosts of this machine and this network are not asked at all, unless
that was allowed.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from errno import EACCES
from functools import partial
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urljoin, urlsplit

from flyball.core.errors import IdentityInvalid, IdentityNotFound, MissingExtra
from flyball.identity.did import DID
from flyball.identity.document import DIDDocument
from flyball.identity.hosts import is_private_address, is_private_host

if TYPE_CHECKING:
    from aiohttp import StreamReader
    from aiohttp.abc import AbstractResolver

Fetch: TypeAlias = Callable[[str], Awaitable[bytes]]
"""Gives the bytes that stand at an address. Whatever it raises counts as: not found just now."""

_TIMEOUT, _LARGEST, _REDIRECTS = 10.0, 256 * 1024, 3
_KEPT, _SECONDS = 256, 300.0
"""How many documents are remembered, and for how long."""


class WebDocuments:
    """Documents of did:web by their DIDs, each remembered for five minutes.

    Args:
        fetch: how a document is got; by aiohttp without it.
        now: tells the time.
        private_hosts: whether hosts of this machine and this network are asked, too.
    """

    def __init__(self, fetch: Fetch | None, now: Callable[[], float], *, private_hosts: bool = False) -> None:
        self._fetch = partial(fetch_over_https, private_hosts=private_hosts) if fetch is None else fetch
        self._now = now
        self._private_hosts = private_hosts
        self._known: dict[DID, tuple[float, DIDDocument]] = {}

    async def get(self, did: DID) -> DIDDocument:
        """The document of a did:web.

        Raises:
            IdentityNotFound: it could not be fetched, which is retryable; or its host is not asked.
            IdentityInvalid: what was fetched is no document of this DID.
        """
        url = did.url
        if not self._private_hosts and is_private_host(urlsplit(url).hostname or ""):
            raise IdentityNotFound(_not_asked(did), did=str(did))
        known = self._known.get(did)
        if known is not None and 0 <= self._now() - known[0] < _SECONDS:
            return known[1]
        try:
            data = await self._fetch(url)
        except (IdentityInvalid, MissingExtra):
            raise
        except Exception as error:
            raise IdentityNotFound(
                f"the document of {did} could not be fetched from {url}: {error or type(error).__name__}",
                retryable=True,
                did=str(did),
            ) from error
        document = DIDDocument.parse(data)
        if document.id != str(did):
            raise IdentityInvalid(
                f"{url} has the document of {document.id!r:.200}, not of {did}", where="did"
            )
        self._known.pop(did, None)
        while len(self._known) >= _KEPT:
            del self._known[next(iter(self._known))]
        self._known[did] = self._now(), document
        return document


async def fetch_over_https(url: str, *, private_hosts: bool = False) -> bytes:
    """What stands at an address: within ten seconds, 256 KiB at most, and from no other host than it names.

    By https; by http only from this machine itself. A host of this machine or this network is not asked,
    unless `private_hosts` allows it: neither by its name, nor by the address which that has when it is asked.
    Where the environment names a proxy, that one resolves names, and only it can tell what they mean.

    Raises:
        IdentityInvalid: it may not be asked.
        OSError: it could not be had.
    """
    try:
        import aiohttp
    except ImportError as error:
        raise MissingExtra("resolving a did:web needs aiohttp: pip install 'flyball[identity]'") from error
    from urllib.request import getproxies, proxy_bypass

    began, host = _origin(url), urlsplit(url).hostname or ""
    if not private_hosts and is_private_host(host):
        raise IdentityInvalid(_not_asked(url), where="did")
    proxy = None if proxy_bypass(host) else getproxies().get(began[0])
    resolver = None if private_hosts or proxy else _public_resolver()
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT)
    connector = aiohttp.TCPConnector(resolver=resolver)
    async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
        for _ in range(_REDIRECTS + 1):
            async with session.get(url, allow_redirects=False, proxy=proxy) as answer:
                if answer.status in (301, 302, 303, 307, 308):
                    url = urljoin(url, answer.headers.get("Location", ""))
                    if _origin(url) != began:
                        raise OSError(f"it redirects to another host, {url!r:.200}")
                    continue
                if answer.status != 200:
                    raise OSError(f"the server answered with status {answer.status}")
                return await _read(answer.content)
    raise OSError(f"it redirects more than {_REDIRECTS} times")


def _public_resolver() -> AbstractResolver:
    """Resolves names to public addresses only. Just these are connected to, and no later answer."""
    from aiohttp.abc import AbstractResolver, ResolveResult
    from aiohttp.resolver import ThreadedResolver

    class Public(AbstractResolver):
        def __init__(self) -> None:
            self._all = ThreadedResolver()

        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
        ) -> list[ResolveResult]:
            found = await self._all.resolve(host, port, family)
            if any(is_private_address(one["host"]) for one in found):
                raise OSError(EACCES, _not_asked(host))
            return found

        async def close(self) -> None:
            await self._all.close()

    return Public()


def _not_asked(what: object) -> str:
    return (
        f"{str(what)[:200]!r} is of this machine or this network, and a DID may not have such hosts asked: "
        "allow it by private_hosts=True"
    )


async def _read(content: StreamReader) -> bytes:
    parts, size = list[bytes](), 0
    async for part in content.iter_chunked(16 * 1024):
        size += len(part)
        if size > _LARGEST:
            raise OSError(f"the document is larger than {_LARGEST} bytes")
        parts.append(part)
    return b"".join(parts)


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    loopback = parts.hostname in ("localhost", "127.0.0.1")
    if parts.scheme != "https" and not (parts.scheme == "http" and loopback):
        raise IdentityInvalid(f"{url!r:.200} is asked by https only", where="did")
    return parts.scheme, parts.netloc
