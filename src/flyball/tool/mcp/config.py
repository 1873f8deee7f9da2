"""Servers that are named by a text or a file, as on the command line.

    uvx some-server --flag      a program and its arguments, cut as a shell does; no shell is involved
    https://host/mcp            a service
    servers.json                all of a file as other programs have it: {"mcpServers": {name: {...}}}

`${VAR}` and `${VAR:-otherwise}` stand for variables of the environment, in texts and in files, so that
secrets need stand in neither. The tools of a server that a file names are called `name__tool`.
"""

from __future__ import annotations

import os
import re
import shlex
from codecs import BOM_UTF8
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Unpack, cast
from urllib.parse import urlsplit

import msgspec

from flyball.core.errors import UserError
from flyball.tool.mcp.options import ServerOptions
from flyball.tool.mcp.place import checked_url
from flyball.tool.mcp.server import MCPServer

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_HTTP = frozenset(("http", "streamable-http", "streamable_http", "streamablehttp"))
_OWN = ("prefix", "allow", "deny", "approval", "safety", "timeout", "connect_timeout", "instructions")
"""The options of flyball's that may stand in a file, beside what other programs have there."""


def mcp_servers(text: str, **options: Unpack[ServerOptions]) -> tuple[MCPServer, ...]:
    """The servers that a text names: one that is a program or a service, or all those of a JSON file.

    Args:
        text: see above.
        options: for all of them; what a file says for one of them comes before.

    Raises:
        UserError: it names none, a variable is not set, or the file cannot be read.
    """
    if not text.strip():
        raise UserError("an MCP server is named by a command, an address or a JSON file; the text is empty")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text):
        if urlsplit(text).query:
            raise UserError(
                f"the address of the MCP server at {urlsplit(text).hostname!r} has a query, which may hold a "
                "secret and would end up in journals: put it into a file of servers"
            )
        return (MCPServer.http(checked_url(filled(text, "the address")), **options),)
    if text.strip().endswith(".json"):
        return _of_file(Path(text.strip()), options)
    try:
        words = [filled(word, "the command") for word in shlex.split(text)]
    except ValueError as error:
        raise UserError(f"the command of an MCP server cannot be read: {error}") from error
    return (MCPServer.stdio(words[0], *words[1:], **options),)


def filled(text: str, where: str) -> str:
    """The text with the variables of the environment in it.

    Raises:
        UserError: one is not set, and has nothing in its place.
    """

    def value(found: re.Match[str]) -> str:
        otherwise: str | None = found[2]
        value = os.environ.get(found[1], otherwise)
        if value is None:
            raise UserError(f"{where} of an MCP server needs the variable {found[1]}, which is not set")
        return value

    return _VARIABLE.sub(value, text)


def _of_file(file: Path, options: ServerOptions) -> tuple[MCPServer, ...]:
    try:
        document: Any = msgspec.json.decode(file.expanduser().read_bytes().removeprefix(BOM_UTF8))
    except OSError as error:
        raise UserError(
            f"the file {str(file)!r} of MCP servers cannot be read: {error.strerror or error}"
        ) from error
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise UserError(f"the file {str(file)!r} of MCP servers holds no JSON: {error}") from error
    named: Any = _mapping(document, f"{file}: the file")
    servers = named.get("mcpServers", named.get("servers"))
    if servers is None:
        raise UserError(
            f'{file}: there are no servers; write {{"mcpServers": {{"name": {{"command": ...}}}}}}'
        )
    found = _mapping(servers, f"{file}: mcpServers")
    made = [
        _server(name, _mapping(entry, f"{file}: server {name!r}"), f"{file}: server {name!r}", options)
        for name, entry in found.items()
        if not (isinstance(entry, dict) and cast("dict[str, Any]", entry).get("disabled") is True)
    ]
    if not made:
        raise UserError(f"{file}: there are no servers in it, or all are disabled")
    return tuple(made)


def _server(name: str, entry: Mapping[str, Any], where: str, options: ServerOptions) -> MCPServer:
    said: dict[str, Any] = {key: entry[key] for key in _OWN if key in entry}
    own = cast("ServerOptions", {"prefix": name, **options, **said, "name": name})
    kind = entry.get("type", entry.get("transport"))
    try:
        if "command" in entry:
            if kind not in (None, "stdio"):
                raise UserError(f"has a command, and is of type {kind!r}; a program is of type 'stdio'")
            args = [_text(arg, "args", name) for arg in _list(entry.get("args", []), "args")]
            env = {
                key: _text(value, f"env {key}", name)
                for key, value in _mapping(entry.get("env") or {}, "env").items()
            }
            cwd = None if entry.get("cwd") is None else _text(entry["cwd"], "cwd", name)
            return MCPServer.stdio(_text(entry["command"], "command", name), *args, env=env, cwd=cwd, **own)
        if "url" in entry:
            if kind is not None and kind not in _HTTP:
                raise UserError(f"is of type {kind!r}; services speak streamable HTTP here, of type 'http'")
            headers = {
                key: _text(value, f"header {key}", name)
                for key, value in _mapping(entry.get("headers") or {}, "headers").items()
            }
            return MCPServer.http(_text(entry["url"], "url", name), headers=headers, **own)
    except UserError as error:
        raise UserError(f"{where}: {error.message}", **error.details) from error
    raise UserError(f"{where} has neither a command nor a url")


def _mapping(given: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(given, dict):
        raise UserError(f"{what} must be an object, not a {type(given).__name__}")
    return cast("dict[str, Any]", given)


def _list(given: Any, what: str) -> list[Any]:
    if not isinstance(given, list):
        raise UserError(f"{what} must be a list, not a {type(given).__name__}")
    return cast("list[Any]", given)


def _text(given: Any, what: str, name: str) -> str:
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        raise UserError(f"{what} must be text, not a {type(given).__name__}")
    return filled(str(given), f"{what} of {name!r}")
