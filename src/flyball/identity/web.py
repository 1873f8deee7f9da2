"""Documents of did:web, fetched from where they are published.

Only issuers that are known are ever asked for: who makes up a credential cannot have addresses visited.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urljoin, urlsplit

from flyball.core.errors import IdentityInvalid, IdentityNotFound, MissingExtra
from flyball.identity.did import DID
from flyball.identity.document import DIDDocument

if TYPE_CHECKING:
    from aiohttp import StreamReader

Fetch: TypeAlias = Callable[[str], Awaitable[bytes]]
"""Gives the bytes that stand at an address. Whatever it raises counts as: not found just now."""

_TIMEOUT, _LARGEST, _REDIRECTS = 10.0, 256 * 1024, 3
_KEPT, _SECONDS = 256, 300.0
"""How many documents are remembered, and for how long."""


class WebDocuments:
    """Documents of did:web by their DIDs, each remembered for five minutes."""

    def __init__(self, fetch: Fetch | None, now: Callable[[], float]) -> None:
        self._fetch = fetch_over_https if fetch is None else fetch
        self._now = now
        self._known: dict[DID, tuple[float, DIDDocument]] = {}

    async def get(self, did: DID) -> DIDDocument:
        """The document of a did:web.

        Raises:
            IdentityNotFound: it could not be fetched; retryable.
            IdentityInvalid: what was fetched is no document of this DID.
        """
        url = did.url
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


async def fetch_over_https(url: str) -> bytes:
    """What stands at an address: within ten seconds, 256 KiB at most, and from no other host than it names.

    By https; by http only from this machine itself.

    Raises:
        IdentityInvalid: it may not be asked.
        OSError: it could not be had.
    """
    try:
        import aiohttp
    except ImportError as error:
        raise MissingExtra("resolving a did:web needs aiohttp: pip install 'flyball[identity]'") from error
    began = _origin(url)
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT)
    async with aiohttp.ClientSession(timeout=timeout, trust_env=True) as session:
        for _ in range(_REDIRECTS + 1):
            async with session.get(url, allow_redirects=False) as answer:
                if answer.status in (301, 302, 303, 307, 308):
                    url = urljoin(url, answer.headers.get("Location", ""))
                    if _origin(url) != began:
                        raise OSError(f"it redirects to another host, {url!r:.200}")
                    continue
                if answer.status != 200:
                    raise OSError(f"the server answered with status {answer.status}")
                return await _read(answer.content)
    raise OSError(f"it redirects more than {_REDIRECTS} times")


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
