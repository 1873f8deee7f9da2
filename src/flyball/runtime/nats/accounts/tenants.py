"""Tenants of a cluster: added, listed, changed and removed while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from secrets import token_hex
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from flyball.core.errors import FlyballError
from flyball.runtime.nats.accounts.claims import deletion_claims
from flyball.runtime.nats.accounts.folder import Account, Folder
from flyball.runtime.nats.accounts.furnishing import furnish, limit_dead
from flyball.runtime.nats.accounts.quota import Quota
from flyball.runtime.nats.accounts.system import system_account
from flyball.runtime.nats.connection import Connection, NatsOptions, connect
from flyball.runtime.nats.identity import Role
from flyball.runtime.nats.layout import Layout

_INFO = "$JS.API.INFO"
_AT_ONCE = 8


class Use(Struct, frozen=True):
    """How much of its quota a tenant uses, as the servers say; `error` where they do not.

    `connections` are those of all its `accounts`, each of which may have as many as its quota says.
    """

    tenant: str
    quota: Quota
    disk: int = 0
    memory: int = 0
    streams: int = 0
    consumers: int = 0
    connections: int = 0
    accounts: int = 1
    error: str = ""

    @property
    def is_full(self) -> bool:
        """Whether nearly nothing of its disk is left."""
        return bool(self.quota.disk) and self.disk >= 0.95 * self.quota.disk


class Furnished(Struct, frozen=True):
    """What was brought up to date: whether the accounts were, the streams that were made, and new files."""

    accounts: bool
    streams: list[str]
    creds: dict[Role, Path]


class Tenancy:
    """The tenants of one operator on one cluster."""

    def __init__(self, folder: Folder, options: NatsOptions) -> None:
        """`options` say where the servers are, and how many copies a new account keeps."""
        self._folder = folder
        self._options = options

    async def add(self, tenant: str, quota: Quota) -> dict[Role, Path]:
        """Make an account, have all servers know it, and make all that its users need; the new credentials.

        What was begun and not finished is gone on with: the same name again.

        Raises:
            UserError: there is one of that name, or the servers do not let this operator in.
            JournalFailure: not all servers have learnt it.
        """
        folder = self._folder
        async with folder.alone():
            begun = tenant in folder.tenants() and not folder.has_all_creds(tenant)
            claims = folder.complete(tenant, quota) if begun else folder.add(tenant, quota)
            await self._push(claims)
        await self._furnish(tenant)
        return {role: folder.creds(tenant, role) for role in Role if not folder.has_creds(tenant, role)}

    async def furnish(self, tenant: str) -> Furnished:
        """Bring a tenant to what this release needs: accounts, streams, credentials. Twice does no harm.

        What an earlier release made stays good: its credentials until they are revoked.

        Raises:
            UnknownTenant: there is none.
            JournalFailure: not all servers have learnt it.
        """
        folder = self._folder
        async with folder.alone():
            lacking = not folder.is_complete(tenant)
            # Told again also where nothing is new: a server may have missed it.
            await self._push(folder.complete(tenant) if lacking else folder.change(folder.account(tenant)))
        before = await self._streams(tenant)
        await self._furnish(tenant)
        made = sorted(await self._streams(tenant) - before)
        renewed = {role: folder.creds(tenant, role) for role in Role if not folder.is_current(tenant, role)}
        return Furnished(lacking, made, renewed)

    async def _streams(self, tenant: str) -> set[str]:
        connection = await self._enter(tenant)
        try:
            infos = await connection.patiently(connection.js.streams_info)
        finally:
            await connection.aclose()
        return {info.config.name for info in infos}

    async def _furnish(self, tenant: str) -> Layout:
        connection = await self._enter(tenant)
        try:
            options = self._options
            salt = token_hex(12)
            return await furnish(
                connection,
                Layout(options.partitions, options.replicas, apart=True, salt=salt),
                self._folder.account(tenant).quota.disk,
            )
        finally:
            await connection.aclose()

    async def change(self, tenant: str, quota: Quota) -> list[str]:
        """Give a tenant another quota, from now on; the servers that know it.

        Raises:
            UnknownTenant: there is none.
            JournalFailure: not all servers have learnt it.
        """
        folder = self._folder
        async with folder.alone():
            known = await self._push(folder.change(replace(folder.account(tenant), quota=quota)))
        connection = await self._enter(tenant)
        try:
            await limit_dead(connection, quota.disk)
        finally:
            await connection.aclose()
        return known

    async def revoke(self, tenant: str, role: Role, *, but_newest: bool = False) -> list[str]:
        """Let in no more who has credentials of a role; the keys. Who is in with them is put out.

        Raises:
            UnknownTenant: there is no such tenant.
            JournalFailure: not all servers have learnt it.
        """
        folder = self._folder
        async with folder.alone():
            account = folder.account(tenant)
            users = [user for user in folder.users(tenant) if user.role == role]
            going = [user for user in users[: -1 if but_newest else None] if user.key not in account.revoked]
            revoked = account.revoked | {user.key: user.made for user in going}
            await self._push(folder.change(replace(account, revoked=revoked)))
        return [user.key for user in going]

    async def remove(self, tenant: str) -> None:
        """Delete all that a tenant has on the servers, its account, and its files.

        Raises:
            UnknownTenant: there is none.
            JournalFailure: not all servers have learnt it; then the files are still there.
        """
        keys = self._folder.account(tenant).keys
        connection = await self._enter(tenant)
        try:
            for info in await connection.patiently(connection.js.streams_info):
                name: str = info.config.name
                await connection.patiently(lambda name=name: connection.js.delete_stream(name))
        finally:
            await connection.aclose()
        async with system_account(self.as_system()) as system:
            await system.delete(deletion_claims(self._folder.operator, keys))
        self._folder.remove(tenant)

    async def used(self, *tenants: str) -> list[Use]:
        """What tenants use; all of them, if none is named.

        Raises:
            UnknownTenant: there is no such tenant.
            JournalUnreachable: no server answers.
        """
        accounts = [self._folder.account(tenant) for tenant in tenants or self._folder.tenants()]
        async with system_account(self.as_system()) as system:
            connections = await system.connections([key for account in accounts for key in account.keys])
        some = asyncio.Semaphore(_AT_ONCE)

        async def one(account: Account) -> Use:
            tenant, quota = account.tenant, account.quota
            async with some:
                try:
                    told = await self._info(tenant)
                except FlyballError as error:
                    return Use(tenant, quota, error=str(error))
            disk, memory = told.get("storage", 0), told.get("memory", 0)
            lines, accounts = sum([connections[key] for key in account.keys]), len(account.keys)
            return Use(tenant, quota, disk, memory, told["streams"], told["consumers"], lines, accounts)

        return list(await asyncio.gather(*[one(account) for account in accounts]))

    async def _info(self, tenant: str) -> dict[str, Any]:
        options = replace(self._as(self._folder.visitor(tenant, _INFO)), patience=5.0)
        connection = await connect(options)
        try:
            return msgspec.json.decode((await connection.request(_INFO, b"")).data)
        finally:
            await connection.aclose()

    async def _push(self, claims: Sequence[str]) -> list[str]:
        """Have all servers know what is said of a tenant's accounts; the servers."""
        async with system_account(self.as_system()) as system:
            known = [await system.push(one) for one in claims]
        return known[0]

    async def _enter(self, tenant: str) -> Connection:
        """A connection to an account, for who may do everything there."""
        return await connect(self._as(self._folder.visitor(tenant)))

    def as_system(self) -> NatsOptions:
        """How the operator comes in to the servers' own account."""
        return self._as(self._folder.system_creds)

    def _as(self, credentials: str) -> NatsOptions:
        """How somebody else comes in there than who was named."""
        options = self._options
        return replace(options, credentials=credentials, nkey=None, token=None, user=None, password=None)
