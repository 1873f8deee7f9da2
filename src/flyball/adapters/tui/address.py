"""The address of a server, as somebody has typed it."""

from __future__ import annotations

import re
from ipaddress import IPv6Address
from urllib.parse import urlsplit

from flyball.core.errors import UserError

_SUCH_AS = "give an address such as http://127.0.0.1:8000"
_HOST = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?", re.ASCII)


def address(url: str) -> str:
    """The address as it is asked: without spaces around it and a slash at its end, its host in ASCII.

    Raises:
        UserError: it is none. A password in it is not shown.
    """
    url = url.strip()
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise UserError(f"--server {_shown(url)}: {error}; {_SUCH_AS}") from error
    if parts.username is not None or parts.password is not None:
        raise UserError(
            f"--server {_shown(url)}: leave the user and the password out: what opens a server is a token, "
            "given as --token or in FLYBALL_TOKEN"
        )
    after = parts.netloc.partition("]")[2]
    if parts.scheme not in ("http", "https") or not host or after[:1] not in ("", ":"):
        raise UserError(f"--server {url}: {_SUCH_AS}")
    if parts.query or parts.fragment:
        raise UserError(f"--server {url}: leave out what begins with ? or #")
    if port == 0:
        raise UserError(f"--server {url}: nobody listens at port 0; {_SUCH_AS}")
    where = _host(host, url) + (f":{port}" if port is not None else "")
    return f"{parts.scheme}://{where}{parts.path.rstrip('/')}"


def _host(host: str, url: str) -> str:
    try:
        if ":" in host:
            return f"[{IPv6Address(host)}]"
        name = host.encode("idna").decode()
    except ValueError as error:
        raise UserError(f"--server {url}: {host} is no name of a host; {_SUCH_AS}") from error
    if not _HOST.fullmatch(name):
        raise UserError(f"--server {url}: {host} is no name of a host; {_SUCH_AS}")
    return name


def _shown(url: str) -> str:
    """The address without who it says that one is."""
    scheme, between, rest = url.partition("://")
    return f"{scheme}{between}{rest.rpartition('@')[2]}"
