"""Speaking to all servers of a cluster at once, through the account that is theirs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from flyball.core.errors import JournalFailure, JournalUnreachable, UserError
from flyball.runtime.nats.connection import Connection, NatsOptions, connect

_SECONDS = 5.0
"""Seconds in which each server has to answer."""


class SystemAccount:
    """The servers' own account, on one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def servers(self) -> list[str]:
        """The names of the servers that are there.

        Raises:
            JournalUnreachable: none answers.
        """
        answers = await self._ask("$SYS.REQ.SERVER.PING", b"")
        if not answers:
            raise JournalUnreachable(
                "no server answers in the system account: do they include resolver.conf?"
            )
        return sorted({answer["server"]["name"] for answer in answers})

    async def push(self, claims: str) -> list[str]:
        """Have all servers learn what is said of an account; the names of those that have.

        Raises:
            JournalFailure: one refuses it, or does not answer; those that did have learnt it.
        """
        return await self._claim("$SYS.REQ.CLAIMS.UPDATE", claims)

    async def delete(self, claims: str) -> list[str]:
        """Have all servers forget accounts; raises as `push` does."""
        return await self._claim("$SYS.REQ.CLAIMS.DELETE", claims)

    async def connections(self, accounts: list[str]) -> dict[str, int]:
        """How many connections each account has, on all servers."""
        asked = msgspec.json.encode({"accounts": accounts, "include_unused": True})
        count = len(await self.servers())
        found = dict.fromkeys(accounts, 0)
        for answer in await self._ask("$SYS.REQ.ACCOUNT.PING.STATZ", asked, count):
            data: dict[str, list[dict[str, Any]]] = answer.get("data") or {}
            for one in data.get("account_statz") or []:
                if one["acc"] in found:
                    found[one["acc"]] += one.get("conns", 0)
        return found

    async def _claim(self, subject: str, claims: str) -> list[str]:
        servers = await self.servers()
        answers = await self._ask(subject, claims.encode(), len(servers))
        for answer in answers:
            if (error := answer.get("error")) is not None:
                told = error.get("description", error)
                raise JournalFailure(f"the server {answer['server']['name']} does not take it: {told}")
        learnt = sorted({answer["server"]["name"] for answer in answers})
        if missing := sorted(set(servers) - set(learnt)):
            raise JournalFailure(
                f"{len(learnt)} of {len(servers)} servers have learnt it, and {', '.join(missing)} did not "
                "answer: they learn it from the others within minutes; or do it again",
                servers=missing,
            )
        return learnt

    async def _ask(self, subject: str, data: bytes, count: int = 0) -> list[dict[str, Any]]:
        """What the servers answer: as many as there are, which the first that answers may say itself."""
        arrived: asyncio.Queue[Any] = asyncio.Queue()
        inbox = self._connection.new_inbox()
        subscription = await self._connection.subscribe(inbox, arrived.put)
        answers: list[dict[str, Any]] = []
        until = time.monotonic() + _SECONDS
        try:
            await self._connection.publish(subject, data, reply=inbox)
            while not count or len(answers) < count:
                async with asyncio.timeout(until - time.monotonic()):
                    message = await arrived.get()
                if message.data:
                    answers.append(msgspec.json.decode(message.data))
                    count = count or answers[0].get("statsz", {}).get("active_servers", 0)
        except TimeoutError:
            pass  # those that have not answered by now are told to be missing
        finally:
            await subscription.unsubscribe()
        self._connection.check(subject)
        return answers


@asynccontextmanager
async def system_account(options: NatsOptions) -> AsyncGenerator[SystemAccount]:
    """The system account of a cluster, inside the block.

    Raises:
        UserError: the servers do not let this operator in.
        JournalUnreachable: no server answers.
    """
    try:
        connection = await connect(options)
    except UserError as error:
        raise UserError(
            f"{error}: do the servers include the resolver.conf of this folder, and were they started anew?"
        ) from error
    try:
        yield SystemAccount(connection)
    finally:
        await connection.aclose()
