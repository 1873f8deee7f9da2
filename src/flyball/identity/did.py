"""DID: the name of an agent, or of who issues credentials, as W3C's DID Core has it.

    did:key:z6Mk…                     the public key is the name itself: nothing needs to be asked
    did:web:example.com:agents:alice  https://example.com/agents/alice/did.json has the key

Reading is strict: what W3C's grammar does not have is no DID, nor is a DID URL with a path or a query.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from flyball.core.errors import IdentityInvalid

KEY, WEB = "key", "web"
"""The methods that flyball knows how to resolve."""

_IDCHAR = r"(?:[A-Za-z0-9._-]|%[0-9A-Fa-f]{2})"
_METHOD = re.compile(r"[a-z0-9]+", re.ASCII)
_ID = re.compile(rf"(?:{_IDCHAR}*:)*{_IDCHAR}+", re.ASCII)
_FRAGMENT = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})+", re.ASCII)
_SEGMENT = re.compile(rf"{_IDCHAR}+", re.ASCII)
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?:%3[Aa][0-9]{1,5})?", re.ASCII)
_LOOPBACK = ("localhost", "127.0.0.1")
_WELL_KNOWN = "/.well-known/did.json"
_FILE = "/did.json"
_LONGEST = 2048


class DID(Struct, frozen=True, repr_omit_defaults=True, order=True):
    """A decentralized identifier. `str(did)` is its one text.

    Raises:
        IdentityInvalid: made of parts that are no DID's.
    """

    method: str
    id: str
    fragment: str = ""

    def __post_init__(self) -> None:
        parts: tuple[Any, ...] = (self.method, self.id, self.fragment)
        if not all(isinstance(part, str) for part in parts):
            raise IdentityInvalid(f"a DID is made of texts, not of {parts!r:.200}")
        if not _METHOD.fullmatch(self.method):
            raise _wrong(self.method, "its method has small letters and digits")
        if not _ID.fullmatch(self.id):
            raise _wrong(self.id, "after the method it has letters, digits, . - _ : and %-escapes")
        if self.fragment and not _FRAGMENT.fullmatch(self.fragment):
            raise _wrong(self.fragment, "its fragment has a character that no fragment may have")

    @classmethod
    def parse(cls, text: object) -> DID:
        """The DID that a text is.

        Raises:
            IdentityInvalid: it is none.
        """
        if not isinstance(text, str) or len(text) > _LONGEST:
            raise IdentityInvalid(f"a DID is a text such as did:key:z6Mk…, not {text!r:.100}", where="did")
        scheme, _, rest = text.partition(":")
        method, colon, rest = rest.partition(":")
        if scheme != "did" or not colon:
            raise _wrong(text, "it begins with did: and a method, such as did:key: or did:web:")
        name, mark, fragment = rest.partition("#")
        if mark and not fragment:
            raise _wrong(text, "its fragment is empty")
        return cls(method, name, fragment)

    @classmethod
    def key(cls, multibase: str) -> DID:
        """The did:key of a public key that is written in multibase."""
        return cls(KEY, multibase)

    @classmethod
    def web(cls, domain: str, *path: str) -> DID:
        """The did:web of a domain (with a port: `example.com:3000`), and perhaps of a path there.

        Raises:
            IdentityInvalid: it is no domain, or a part of the path is none.
        """
        did = cls(WEB, ":".join([domain.replace(":", "%3A"), *path]))
        _ = did.url
        if not all(_SEGMENT.fullmatch(part) for part in path):
            raise _wrong(path, "the parts of its path are names without / and :")
        return did

    @classmethod
    def of_url(cls, url: str) -> DID:
        """The did:web whose document stands at an address.

        Raises:
            IdentityInvalid: no did:web has its document there.
        """
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            raise _wrong(url, "it is no address") from None
        if parts.query or parts.fragment or "@" in parts.netloc or not parts.path.endswith(_FILE):
            raise _wrong(url, f"a document stands at https://…{_FILE}, without ? and #")
        path = "" if parts.path == _WELL_KNOWN else parts.path.removesuffix(_FILE)
        segments = path.split("/")[1:]
        if not all(_SEGMENT.fullmatch(one) for one in segments):
            raise _wrong(url, "a part of its path has characters that must be %-escaped, or is empty")
        did = cls(WEB, ":".join([host if port is None else f"{host}%3A{port}", *segments]))
        if did.url.partition("://")[0] != parts.scheme:
            raise _wrong(url, "only https is asked, and http on this machine")
        return did

    @property
    def url(self) -> str:
        """Where the document of a did:web stands. By https; by http only on this machine itself.

        Raises:
            IdentityInvalid: it is no did:web, or names no host that can be asked.
        """
        if self.method != WEB:
            raise _wrong(str(self), "only a did:web has an address")
        host, *path = self.id.split(":")
        if not _HOST.fullmatch(host) or ".." in host:
            raise _wrong(str(self), "after did:web: it has a domain, with %3A before a port")
        if not all(path) or any(unquote(part) in (".", "..") or "/" in unquote(part) for part in path):
            raise _wrong(str(self), "a part of its path is empty, or leads elsewhere")
        netloc = unquote(host)
        scheme = "http" if netloc.partition(":")[0].lower() in _LOOPBACK else "https"
        return f"{scheme}://{netloc}/{'/'.join(path)}{_FILE}" if path else f"{scheme}://{netloc}{_WELL_KNOWN}"

    def with_fragment(self, fragment: str) -> DID:
        """The same DID with another fragment: one of its keys, or the like."""
        return replace(self, fragment=fragment)

    def without_fragment(self) -> DID:
        """The DID itself."""
        return replace(self, fragment="") if self.fragment else self

    def __str__(self) -> str:
        return f"did:{self.method}:{self.id}" + (f"#{self.fragment}" if self.fragment else "")


def _wrong(given: object, why: str) -> IdentityInvalid:
    return IdentityInvalid(f"{given!r:.200} is no DID, or no part of one: {why}", where="did")
