"""Where a server is: a program that is started here, or a service at an address."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from os import PathLike, fspath
from pathlib import PurePath
from typing import Any, TypeAlias, cast
from urllib.parse import urlsplit

from flyball.core.context import RunContext
from flyball.core.errors import UserError

CallHeaders: TypeAlias = Callable[[RunContext[Any]], Mapping[str, str] | Awaitable[Mapping[str, str]]]
"""Gives the headers of one call; asked for each, with the run that makes it."""

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE = re.compile(r"[\x20-\x7e\xa0-\xff\t]*")
_OURS = frozenset(("accept", "content-type", "content-length", "host", "last-event-id"))
_LAUNCHERS = frozenset(
    ("uvx", "npx", "uv", "node", "python", "python3", "bunx", "deno", "docker", "sh", "bash")
)

_VERBS = frozenset(("run", "exec", "tool", "x"))
_CODE = frozenset(("-c", "-e", "-p", "--eval"))
"""What follows these is a program itself, and no name."""
_SUFFIXES = frozenset((".py", ".js", ".mjs", ".ts", ".sh", ".exe", ".cmd", ".bat"))


class Program:
    """A program that is started, and spoken to over its stdin and stdout.

    It gets a minimal environment (PATH, HOME and the like) and what is given in `env`, nothing else.
    """

    __slots__ = ("args", "command", "cwd", "env")

    def __init__(
        self,
        command: str | PathLike[str],
        args: tuple[str | PathLike[str], ...] = (),
        env: Mapping[str, str] | None = None,
        cwd: str | PathLike[str] | None = None,
    ) -> None:
        self.command = fspath(command)
        self.args = tuple([fspath(arg) for arg in args])
        self.env = dict(env or {})
        self.cwd = None if cwd is None else fspath(cwd)
        if not self.command.strip():
            raise UserError(
                "an MCP server's command is empty: give the program, as in MCPServer.stdio('uvx', 'a-server')"
            )
        # Not everybody checks types, and only the system would notice.
        given: list[Any] = [self.command, *self.args, *self.env, *self.env.values()]
        if not all(isinstance(text, str) and "\0" not in text for text in given):
            raise UserError(f"the arguments and the environment of MCP server {self.name!r} must be text")

    @property
    def name(self) -> str:
        """The program's; of one that starts others, the first word that is no option."""
        own = PurePath(self.command)
        words = [word for word in self.args if not word.startswith("-") and word not in _VERBS]
        if own.stem in _LAUNCHERS and words and not _CODE.intersection(self.args):
            own = PurePath(words[0])
        return own.stem if own.suffix in _SUFFIXES else own.name or self.command

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be told."""
        return tuple(self.env.values())

    def __repr__(self) -> str:
        return f"<Program {self.name}>"


class Service:
    """A service that speaks streamable HTTP. `headers` is read anew for each request that is sent."""

    __slots__ = ("call_headers", "headers", "url")

    def __init__(
        self, url: str, headers: Mapping[str, str] | None = None, call_headers: CallHeaders | None = None
    ) -> None:
        self.url = checked_url(url)
        self.headers: Mapping[str, str] = {} if headers is None else headers
        self.call_headers = call_headers
        check_headers(self.headers)
        if call_headers is not None and not callable(call_headers):
            raise UserError("call_headers= takes a function of the RunContext; headers= takes a mapping")

    @property
    def name(self) -> str:
        """The host's."""
        return urlsplit(self.url).hostname or self.url

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be told."""
        query = urlsplit(self.url).query
        return (*self.headers.values(), *([query] if query else []))

    def __repr__(self) -> str:
        return f"<Service {self.url.partition('?')[0]}>"


Place: TypeAlias = Program | Service


def checked_url(url: Any) -> str:
    """The address, if it is one of a service.

    Raises:
        UserError: it is none, or carries a user or a password; it is not quoted then.
    """
    shown = url if isinstance(url, str) and "@" not in url and url.isprintable() else ""
    try:
        parts = urlsplit(url) if isinstance(url, str) and url.isprintable() and " " not in url else None
        whole = parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname)
        whole = whole and parts is not None and parts.port != 0
    except ValueError:
        parts, whole = None, False
    if parts is None or not whole:
        told = f"{shown.partition('?')[0]!r} is" if shown else "that is"
        raise UserError(f"{told} no address of an MCP server: write one like 'https://host/mcp'")
    if parts.username is not None or parts.password is not None:
        raise UserError(
            f"the address of the MCP server at {parts.hostname!r} carries a user or a password, which would "
            "end up in errors and journals: give headers={'Authorization': ...} instead"
        )
    return url.partition("#")[0]


def check_headers(headers: Any) -> Mapping[str, str]:
    """The headers, if they can be sent and are not the protocol's own. No value is ever quoted.

    Raises:
        UserError: one cannot be.
    """
    if not isinstance(headers, Mapping):
        raise UserError(
            f"headers of an MCP server are a mapping of text to text, not a {type(headers).__name__}"
        )
    given = cast("Mapping[Any, Any]", headers)
    for name, value in given.items():
        if not isinstance(name, str) or not _HEADER.fullmatch(name):
            raise UserError(f"{name!r} cannot be the name of a header")
        if name.lower() in _OURS or name.lower().startswith("mcp-"):
            raise UserError(f"the header {name!r} is the protocol's own, and cannot be given")
        if not isinstance(value, str) or not _VALUE.fullmatch(value):
            raise UserError(f"the value of header {name!r} is no text that HTTP can carry")
    return given
