"""The operator's folder: keys, claims and credentials as files that only their owner can read.

operator.nk, operator.jwt   the operator: servers trust what its key has signed
system.nk, system.jwt       the servers' own account, and system.creds, by which they are spoken to
resolver.conf               what the configuration of every server includes
operator.lock, users.lock   held while something is changed, so that of two changes both are there
tenants/<name>/             account.nk, account.jwt, users.json, and <role>.creds; for the accounts of its
                            model and tools workers, model.nk, model.jwt, tools.nk, tools.jwt
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from flyball.core.errors import UnknownTenant, UserError
from flyball.locks import locked, try_locked
from flyball.runtime.nats.accounts.claims import (
    account_claims,
    creds_text,
    operator_claims,
    quota_in,
    revoked_in,
    shares,
    user_claims,
)
from flyball.runtime.nats.accounts.keys import Key, Kind
from flyball.runtime.nats.accounts.permissions import APART, permissions
from flyball.runtime.nats.accounts.quota import Quota
from flyball.runtime.nats.accounts.sharing import exports, imports
from flyball.runtime.nats.identity import Role, claims_in, jwt_in, tags_of

RESOLVER = "resolver.conf"
_TENANT = re.compile(r"[a-z0-9][a-z0-9-]{0,62}", re.ASCII)
_USERS = "users.json"
_AGAIN = 0.05
"""Seconds after which it is tried again to have the folder alone."""


class User(Struct, frozen=True):
    """A user that credentials were made for: its public key, and when."""

    role: Role
    key: str
    made: int


class Account(Struct, frozen=True):
    """A tenant's account: its public key, and what is said of it.

    `apart` are the keys of the accounts of its model and tools workers; a tenant of an earlier release has
    none, and all its users are in the one.
    """

    tenant: str
    key: str
    quota: Quota
    revoked: dict[str, int]
    apart: dict[Role, str] = {}

    @property
    def keys(self) -> list[str]:
        """The keys of all its accounts, its own first."""
        return [self.key, *self.apart.values()]


class Folder:
    """The folder of one operator."""

    def __init__(self, path: Path) -> None:
        self.path = path

    # The operator

    def make(self, name: str, store: str = "") -> None:
        """Make operator and system account. `store`: where servers keep claims; without it, in $ACCOUNTS.

        Raises:
            UserError: there is an operator in the folder, or nothing can be written there.
        """
        if (self.path / "operator.nk").exists():
            raise UserError(
                f"{self.path} has an operator: its accounts would be lost with its key; name another folder"
            )
        operator, system, user = Key.new(Kind.OPERATOR), Key.new(Kind.ACCOUNT), Key.new(Kind.USER)
        its_operator = operator_claims(operator, name, system.public)
        its_system = account_claims(operator, system.public, "SYS", None)
        text = _resolver(its_operator, system.public, its_system, store)
        self._write("system.nk", system.seed)
        self._write("system.jwt", its_system)
        self._write("system.creds", creds_text(user_claims(system, user.public, "flyball"), user))
        self._write(RESOLVER, text)
        self._write("operator.jwt", its_operator)
        self._write("operator.nk", operator.seed)  # last: with it, the rest is there

    @property
    def operator(self) -> Key:
        """The operator's key.

        Raises:
            UserError: there is none.
        """
        return Key(self._read("operator.nk"))

    @property
    def system_creds(self) -> str:
        """The credentials that open the system account, as text.

        Raises:
            UserError: there are none.
        """
        return self._read("system.creds")

    # Tenants

    def tenants(self) -> list[str]:
        """Their names, sorted."""
        return sorted([file.parent.name for file in (self.path / "tenants").glob("*/account.jwt")])

    def add(self, tenant: str, quota: Quota) -> list[str]:
        """Make a tenant's accounts; gives their claims, as `change` does.

        Raises:
            UserError: there is one of that name, or it cannot be a name.
        """
        if not _TENANT.fullmatch(tenant):
            raise UserError(
                f"a tenant's name has 1 to 63 small letters, digits and dashes: not {tenant!r:.80}"
            )
        if tenant in self.tenants():
            raise UserError(
                f"there is a tenant {tenant!r}: `flyball tenants quota {tenant}` changes it, and "
                f"`flyball tenants furnish {tenant}` makes what it lacks; or name another"
            )
        account, operator = Key.new(Kind.ACCOUNT), self.operator
        self._write(f"tenants/{tenant}/account.nk", account.seed)
        self._write(f"tenants/{tenant}/account.jwt", account_claims(operator, account.public, tenant, quota))
        return self.complete(tenant)

    def complete(self, tenant: str, quota: Quota | None = None) -> list[str]:
        """Make the accounts that a tenant has not, as one of an earlier release; gives all claims.

        With a `quota` it has that from now on.

        Raises:
            UnknownTenant: there is no such tenant.
        """
        account = self.account(tenant)
        for role in APART:
            if role not in account.apart:
                self._write(f"tenants/{tenant}/{role}.nk", Key.new(Kind.ACCOUNT).seed)
        account = self.account(tenant)
        return self.change(account if quota is None else replace(account, quota=quota))

    def is_complete(self, tenant: str) -> bool:
        """Whether a tenant has all accounts, and they share what they do now; raises as `account` does."""
        shared = sorted([one["subject"] for one in exports()])
        return len(self.account(tenant).apart) == len(APART) and shares(self.claims(tenant)) == shared

    def account(self, tenant: str) -> Account:
        """A tenant's account.

        Raises:
            UnknownTenant: there is none.
        """
        jwt = self._of(tenant, "account.jwt")
        own = self.key(tenant).public
        apart = {
            role: Key(self._of(tenant, f"{role}.nk")).public for role in APART if self._has(tenant, role)
        }
        return Account(tenant, own, quota_in(jwt), revoked_in(jwt), apart)

    def key(self, tenant: str) -> Key:
        """The key of a tenant's account; raises as `account` does."""
        return Key(self._of(tenant, "account.nk"))

    def claims(self, tenant: str) -> str:
        """What is said of a tenant's account, signed; raises as `account` does."""
        return self._of(tenant, "account.jwt")

    def change(self, account: Account) -> list[str]:
        """Say something else of a tenant's accounts; gives the claims, first of that with its loops."""
        tenant, quota, revoked = account.tenant, account.quota, account.revoked
        signer, own = self.operator, self.key(tenant)
        said = {
            "account": account_claims(
                signer, account.key, tenant, quota, revoked, exports=exports() if account.apart else ()
            )
        }
        for role, key in account.apart.items():
            theirs = imports(role, own, key)
            said[role] = account_claims(signer, key, f"{tenant}-{role}", quota, revoked, imports=theirs)
        for name, claims in said.items():
            self._write(f"tenants/{tenant}/{name}.jwt", claims)
        return list(said.values())

    def remove(self, tenant: str) -> None:
        """Forget a tenant: its keys and its credentials."""
        shutil.rmtree(self.path / "tenants" / tenant)

    # Users

    def creds(self, tenant: str, role: Role, *, seconds: float = 0.0) -> Path:
        """Make a user of a role: the file with its credentials, which are the role's newest.

        Raises:
            UnknownTenant: there is no such tenant.
            UserError: an earlier release has made it, without an account for users of this role.
        """
        account = Key(self._of(tenant, "account.nk"))
        if role in APART:
            if not self._has(tenant, role):
                raise UserError(
                    f"an earlier release has made the tenant {tenant!r}, without an account for its {role} "
                    f"workers: `flyball tenants furnish {tenant}` makes it, and credentials"
                )
            account = Key(self._of(tenant, f"{role}.nk"))
        user = Key.new(Kind.USER)
        may = permissions(role, user.public)
        jwt = user_claims(
            account,
            user.public,
            f"{tenant}-{role}",
            publish=may.publish,
            subscribe=may.subscribe,
            tags=tags_of(tenant, role),
            seconds=seconds,
        )
        with locked(self._lock(f"tenants/{tenant}/users.lock")):
            users = [*self.users(tenant), User(role, user.public, claims_in(jwt)["iat"])]
            self._write(f"tenants/{tenant}/{_USERS}", msgspec.json.encode(users).decode())
            return self._write(f"tenants/{tenant}/{role}.creds", creds_text(jwt, user))

    def has_creds(self, tenant: str, role: Role) -> bool:
        """Whether there is a file with credentials of a role."""
        return (self.path / "tenants" / tenant / f"{role}.creds").exists()

    def has_all_creds(self, tenant: str) -> bool:
        """Whether there is one for each role: they are made last of all that a tenant has."""
        return all(self.has_creds(tenant, role) for role in Role)

    def is_current(self, tenant: str, role: Role) -> bool:
        """Whether a role's newest credentials say what this release says, and are for the right account."""
        try:
            claims = claims_in(jwt_in(self._of(tenant, f"{role}.creds")))
        except (UserError, ValueError):
            return False
        may, account = permissions(role, claims["sub"]), self.account(tenant)
        said: dict[str, Any] = claims["nats"]
        none: dict[str, list[str]] = {}
        lists = [tuple(said.get(way, none).get("allow", ())) for way in ("pub", "sub")]
        right = claims["iss"] == account.apart.get(role, account.key)
        return right and "resp" not in said and lists == [may.publish, may.subscribe]

    def users(self, tenant: str) -> list[User]:
        """All users that credentials were made for, the oldest first."""
        try:
            return msgspec.json.decode(self._of(tenant, _USERS), type=list[User])
        except UserError:
            return []

    def visitor(self, tenant: str, *publish: str, seconds: float = 300.0) -> str:
        """Credentials for a moment, as text: to ask on some subjects, or to do everything in the account."""
        account, user = Key(self._of(tenant, "account.nk")), Key.new(Kind.USER)
        heard = ("_INBOX.>",) if publish else ()
        tags = tags_of(tenant, None)
        jwt = user_claims(
            account, user.public, "flyball", publish=publish, subscribe=heard, tags=tags, seconds=seconds
        )
        return creds_text(jwt, user)

    # Files

    @asynccontextmanager
    async def alone(self) -> AsyncGenerator[None]:
        """Read, change, write and tell servers inside the block while nobody else does.

        Raises:
            UserError: there is no operator in the folder, or nothing can be written there.
        """
        self._read("operator.nk")
        path = self._lock("operator.lock")
        while True:
            with try_locked(path) as free:
                if free:
                    yield
                    return
            await asyncio.sleep(_AGAIN)

    def _lock(self, name: str) -> Path:
        """A file to be locked, which its owner alone can read.

        Raises:
            UserError: it cannot be made.
        """
        path = self.path / name
        try:
            path.touch(mode=0o600)
        except OSError as error:
            raise UserError(f"{path} cannot be written: {error}") from error
        return path

    def _has(self, tenant: str, role: Role) -> bool:
        """Whether a role of a tenant has an account of its own."""
        return role in APART and (self.path / "tenants" / tenant / f"{role}.nk").exists()

    def _of(self, tenant: str, name: str) -> str:
        if not _TENANT.fullmatch(tenant) or not (self.path / "tenants" / tenant / "account.jwt").exists():
            known = ", ".join(self.tenants()) or "none"
            raise UnknownTenant(
                f"there is no tenant {tenant!r:.80} in {self.path}; there are {known}", tenant=tenant[:80]
            )
        return self._read(f"tenants/{tenant}/{name}")

    def _read(self, name: str) -> str:
        try:
            return (self.path / name).read_text(encoding="utf-8").strip()
        except FileNotFoundError as error:
            raise UserError(
                f"{self.path / name} is not there: `flyball tenants init {self.path}` makes an operator"
            ) from error
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{self.path / name} cannot be read: {error}") from error

    def _write(self, name: str, text: str) -> Path:
        """Write a file as a whole, for its owner alone."""
        path = self.path / name
        half = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            for folder in (self.path, self.path / "tenants", path.parent):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text.strip() + "\n")
                file.flush()
                os.fsync(file.fileno())
            half.replace(path)
        except OSError as error:
            with suppress(OSError):
                half.unlink()
            raise UserError(f"{path} cannot be written: {error}") from error
        return path


def _resolver(operator: str, system: str, claims: str, store: str) -> str:
    """What servers include. Claims are no secrets; no key is in it."""
    where = json.dumps(store) if store else "$ACCOUNTS"
    return f"""# Made by `flyball tenants init`: whom a server trusts. In the server's configuration:
#   include resolver.conf
# and in its environment, the folder for what it is told of accounts: ACCOUNTS=/data/accounts

operator: {operator}
system_account: {system}

resolver {{
  type: full
  dir: {where}
  allow_delete: true
  interval: "2m"
}}

resolver_preload {{
  {system}: {claims}
}}
"""
