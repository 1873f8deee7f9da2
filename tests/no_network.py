"""The suite reaches nobody beyond this machine: a connection elsewhere is refused before it is made.

What a test starts as a process of its own is not held to it: fetching a model's file by pip is such a one.
"""

from __future__ import annotations

import socket
from ipaddress import ip_address
from typing import Any

_REFUSED = "tests reach nobody beyond this machine, and {} was tried: answer it from a server on 127.0.0.1"


def forbid_network() -> None:
    """Let this process connect to its own machine only."""
    connect, connect_ex, look_up = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo

    def checked_connect(self: socket.socket, address: Any) -> None:
        _check(self.family, address)
        connect(self, address)

    def checked_connect_ex(self: socket.socket, address: Any) -> int:
        _check(self.family, address)
        return connect_ex(self, address)

    def checked_look_up(host: Any, *args: Any, **more: Any) -> Any:
        if host is not None and not _is_here(_text(host)):
            raise socket.gaierror(socket.EAI_NONAME, _REFUSED.format(_text(host)))
        return look_up(host, *args, **more)

    socket.socket.connect = checked_connect
    socket.socket.connect_ex = checked_connect_ex
    socket.getaddrinfo = checked_look_up


def _check(family: int, address: Any) -> None:
    if family in (socket.AF_INET, socket.AF_INET6) and not _is_here(_text(address[0])):
        raise ConnectionRefusedError(_REFUSED.format(address[0]))


def _text(host: Any) -> str:
    return host.decode("latin-1") if isinstance(host, bytes) else str(host)


def _is_here(host: str) -> bool:
    if host in ("", "localhost", socket.gethostname()):
        return True
    try:
        return ip_address(host.partition("%")[0]).is_loopback or ip_address(host).is_unspecified
    except ValueError:
        return False
