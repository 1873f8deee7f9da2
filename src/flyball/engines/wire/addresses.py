"""Addresses of servers, looked at before anybody is asked there."""

from __future__ import annotations

from urllib.parse import urlsplit

from flyball.core.errors import ConfigurationFailure


def checked(address: str, provider: str) -> str:
    """An address that calls can be made below, without a slash at its end.

    Raises:
        ConfigurationFailure: it is none; or it carries a user, a password or a query, which would end up in
            errors and journals. What it carries is not told.
    """
    shown = address.rpartition("@")[2].partition("?")[0]
    try:
        parts = urlsplit(address)
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        whole, parts = False, None
    if parts is None or not whole or not address.isprintable() or " " in address:
        raise ConfigurationFailure(
            f"{shown!r} is no address of a server for {provider!r}: write one like 'http://localhost:8000/v1'",
            provider=provider,
        )
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ConfigurationFailure(
            f"the address of {provider!r} at {parts.hostname!r} carries a user, a password or a query, which "
            "would end up in journals: give the key, or headers=, instead",
            provider=provider,
        )
    return address.rstrip("/")
