"""Bearer tokens: who may come in, for which tenant, to do what. Only their hashes are kept.

A token is `fly_<id>_<secret>`. The secret has 256 random bits, so that a plain SHA-256 of it tells nobody
anything; the id is no secret, and names the token in logs and lists. The file is read again when it changes,
so that a token which was taken away is refused from then on.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
import time
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from flyball.adapters.http.problems import Unauthenticated
from flyball.core.errors import UserError
from flyball.locks import locked

_PREFIX = "fly"
_TENANT = re.compile(r"[a-z0-9][a-z0-9-]{0,62}", re.ASCII)
_ROLE = re.compile(r"[A-Za-z0-9_-]{1,63}", re.ASCII)
_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,100}")
_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="flyball"'}


class Scope(StrEnum):
    """What a token may be for."""

    READ = "read"
    """Look at agents, loops, journals, usage."""
    RUN = "run"
    """Have agents run: requests, forks, resuming."""
    SIGNAL = "signal"
    """Speak to loops: approve, reject, pause, cancel, give results."""
    ADMIN = "admin"
    """What is about the server: dead letters, metrics."""


class Token(Struct, frozen=True, omit_defaults=True):
    """A token as it is kept. `expires` is in seconds since the epoch; 0 is never.

    With `roles` it is a person's, whose name it has, and who may do what these roles allow. Without, it is a
    program's, which may do what its scopes allow.
    """

    id: str
    name: str
    hash: str
    scopes: tuple[Scope, ...] = tuple(Scope)
    tenant: str = ""
    created: float = 0.0
    expires: float = 0.0
    roles: tuple[str, ...] = ()


class Principal(Struct, frozen=True):
    """Who asks: by which token (none on a server that is open to its own machine), for which tenant."""

    tenant: str = ""
    scopes: frozenset[Scope] = frozenset(Scope)
    token: str = ""
    name: str = ""
    roles: tuple[str, ...] = ()


NOBODY_IN_PARTICULAR = Principal()
"""Whoever is on this machine, where no tokens are asked for."""


class _File(Struct, frozen=True):
    tokens: tuple[Token, ...] = ()


class Tokens:
    """The tokens in a file, which need not be there yet. Nobody but its owner can read it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, int, int] | None = None
        self._tokens: dict[str, Token] = {}

    def list(self) -> tuple[Token, ...]:
        """All of them, the oldest first.

        Raises:
            UserError: the file cannot be read, or holds no tokens.
        """
        self._look()
        return tuple(self._tokens.values())

    def add(
        self,
        name: str,
        *,
        scopes: Iterable[Scope] = tuple(Scope),
        tenant: str = "",
        expires: float = 0.0,
        roles: Iterable[str] = (),
    ) -> tuple[str, Token]:
        """Make a token: the text, which is not kept and cannot be had again, and what is kept.

        Raises:
            UserError: the name, the tenant or a role is none that there can be, or the file cannot be
                written.
        """
        if not _NAME.fullmatch(name):
            raise UserError(f"a token's name has 1 to 100 printable characters: not {name!r:.120}")
        if tenant:
            check_tenant(tenant)
        for role in (given := tuple(dict.fromkeys(roles))):
            if not _ROLE.fullmatch(role):
                raise UserError(f"a role has 1 to 63 of a-z, A-Z, 0-9, - and _: not {role!r:.120}")
        identifier, secret = secrets.token_hex(6), secrets.token_hex(32)
        kept = tuple(dict.fromkeys(scopes))
        token = Token(identifier, name, _hashed(secret), kept, tenant, time.time(), expires, given)
        with self._alone():
            self._write((*self.list(), token))
        return f"{_PREFIX}_{identifier}_{secret}", token

    def revoke(self, identifier: str) -> Token:
        """Take a token away, by its id.

        Raises:
            UserError: there is none.
        """
        with self._alone():
            tokens = self.list()
            found = [token for token in tokens if token.id == identifier]
            if not found:
                raise UserError(
                    f"there is no token {identifier[:40]!r}: `flyball tokens list` shows their ids"
                )
            self._write([token for token in tokens if token.id != identifier])
        return found[0]

    def principal(self, header: str) -> Principal:
        """Who is meant by an `Authorization` header.

        Raises:
            Unauthenticated: nobody. What was wrong with a token is not told.
            RuntimeError: the tokens cannot be read, which is for the log, and not for who asks.
        """
        scheme, _, text = header.strip().partition(" ")
        if scheme.lower() != "bearer" or not text.strip():
            raise Unauthenticated("a token is needed: send `Authorization: Bearer <token>`", _CHALLENGE)
        try:
            self._look()
        except UserError as error:
            raise RuntimeError(error.message) from error
        prefix, _, rest = text.strip().partition("_")
        identifier, _, secret = rest.partition("_")
        token = self._tokens.get(identifier)
        # Compared also where there is none, so that the time that it takes says nothing of which ids exist.
        kept = token.hash if token is not None else _hashed("")
        known = hmac.compare_digest(kept.encode(), _hashed(secret).encode())
        if token is None or not known or prefix != _PREFIX or 0 < token.expires <= time.time():
            raise Unauthenticated("the token is not known here, or no longer", _CHALLENGE)
        return Principal(token.tenant, frozenset(token.scopes), token.id, token.name, token.roles)

    @contextmanager
    def _alone(self) -> Generator[None]:
        """Read, change and write inside the block while nobody else does: no change undoes another.

        Raises:
            UserError: nothing can be written there.
        """
        path = self.path.with_name(f"{self.path.name}.lock")
        with ExitStack() as held:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                held.enter_context(locked(path))
            except OSError as error:
                raise UserError(
                    f"the tokens in {self.path} cannot be written: {error.strerror or error}"
                ) from error
            yield

    def _look(self) -> None:
        """Read the file, if it is another than the one that was read."""
        try:
            stat = self.path.stat()
            seen = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if seen == self._seen:
                return
            found = msgspec.json.decode(self.path.read_bytes(), type=_File)
            for token in found.tokens:
                if token.tenant:
                    check_tenant(token.tenant)
        except FileNotFoundError:
            self._tokens, self._seen = {}, None
            return
        except OSError as error:
            raise UserError(f"the tokens in {self.path} cannot be read: {error.strerror or error}") from error
        except msgspec.DecodeError as error:
            raise UserError(f"{self.path} holds no tokens: {error}") from error
        self._tokens, self._seen = {token.id: token for token in found.tokens}, seen

    def _write(self, tokens: Iterable[Token]) -> None:
        kept = tuple([replace(token) for token in tokens])
        beside = self.path.with_name(f"{self.path.name}.{secrets.token_hex(4)}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(msgspec.json.format(msgspec.json.encode(_File(kept))) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self.path)
        except OSError as error:
            raise UserError(
                f"the tokens in {self.path} cannot be written: {error.strerror or error}"
            ) from error
        self._look()


def check_tenant(name: str) -> str:
    """A tenant's name, if it is one.

    Raises:
        UserError: it is none: it becomes part of file names and of subjects.
    """
    if not _TENANT.fullmatch(name):
        raise UserError(
            f"a tenant's name has 1 to 63 of a-z, 0-9 and -, and does not begin with -: not {name!r:.120}"
        )
    return name


def _hashed(secret: str) -> str:
    return f"sha256:{sha256(secret.encode(errors='surrogatepass')).hexdigest()}"
