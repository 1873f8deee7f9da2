"""Hosts that are nobody's but this machine's or this network's, and which a name of others must not reach.

A DID comes from outside, and says which host is to be asked for its document. So those are refused that only
who stands here can reach: loopback, private and link-local addresses, in whichever way they are written.
"""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

_HERE = ("localhost", "localdomain", "local", "internal", "home.arpa")
"""Names that, with whatever stands before them, are of this machine or this network by their meaning."""
_TRANSLATED = IPv6Network("64:ff9b::/96")
"""Where IPv6 has the addresses of IPv4 in their last four bytes (NAT64)."""


def is_private_host(host: str) -> bool:
    """Whether a host is of this machine or this network, by its name alone: nobody is asked.

    That is an address which is none of the public internet's, also as one number, in hexadecimal or octal
    digits or with parts left out (`2130706433`, `0x7f.1`, `0177.0.0.1`); `localhost`, and names like it; and
    a name without a dot. Of other names only their addresses can tell: see `is_private_address`.
    """
    name = host.strip("[]").rstrip(".").lower()
    if ":" in name or name.rpartition(".")[2][:1].isdigit():
        return is_private_address(name)
    return "." not in name or any(name == one or name.endswith(f".{one}") for one in _HERE)


def is_private_address(text: str) -> bool:
    """Whether an address is none of the public internet's; so is what cannot be read as one."""
    try:
        address = ip_address(text.partition("%")[0]) if ":" in text else _fourfold(text)
    except (ValueError, OSError):
        return True
    return not _is_public(address)


def _fourfold(text: str) -> IPv4Address:
    """An address of IPv4 in any of the spellings that a system's own functions take."""
    return IPv4Address(socket.inet_aton(text))


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv6Address):
        inside = address.ipv4_mapped or address.sixtofour
        if inside is None and address in _TRANSLATED:
            inside = IPv4Address(address.packed[-4:])
        if inside is not None:
            return _is_public(inside)
    return address.is_global and not address.is_multicast
