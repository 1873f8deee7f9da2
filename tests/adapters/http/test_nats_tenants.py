"""Tenants on NATS over HTTP: each token's tenant is served by its own account, and nobody sees another's."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from httpx import AsyncClient, Response

from flyball.adapters.http.tokens import Tokens
from flyball.runtime.nats import Crew, NatsJournal
from flyball.runtime.nats.accounts import Quota
from flyball.runtime.nats.accounts.served import ServedTenants
from flyball.runtime.nats.identity import Role
from flyball.runtime.services import Tenants, nats_services
from flyball.testing.conformance.samples import numbered
from tests.adapters.http.running import ASK, agents, followed, problem, served
from tests.adapters.http.test_trespassing import nothing_is_told
from tests.runtime.nats.accounts import conftest
from tests.runtime.nats.accounts.conftest import Operated

operator, acme = conftest.operator, conftest.acme


class Callers:
    """A token for each name; `none` is of no tenant."""

    def __init__(self, file: Path) -> None:
        self.tokens = Tokens(file)
        self.texts = {name: self.tokens.add(name, tenant=name)[0] for name in ("acme", "globex", "umbrella")}
        self.texts["none"] = self.tokens.add("none")[0]

    def of(self, name: str) -> dict[str, Any]:
        return {"headers": {"Authorization": f"Bearer {self.texts[name]}"}}


@asynccontextmanager
async def serving(
    given: Operated, callers: Callers, folder: Path
) -> AsyncGenerator[tuple[AsyncClient, Tenants]]:
    """A server for acme and globex, each of which has a worker."""
    await given.tenancy.add("globex", Quota())
    known = ServedTenants(folder, given.options)
    tenants = nats_services(agents(), None, known)
    async with (
        await NatsJournal.open(given.creds("acme", Role.ALL)) as ours,
        await NatsJournal.open(given.creds("globex", Role.ALL)) as theirs,
        Crew(ours, agents()),
        Crew(theirs, agents()),
    ):
        try:
            await tenants()
            await tenants.open_known()
            async with served(tenants, tokens=callers.tokens) as client:
                yield client, tenants
        finally:
            await tenants.aclose()


async def test_tenants_see_nothing_of_each_other(acme: Operated, tmp_path: Path) -> None:
    callers = Callers(tmp_path / "tokens.json")
    async with serving(acme, callers, acme.folder.path / "tenants") as (client, tenants):
        ann, bob = callers.texts["acme"], callers.texts["globex"]
        await nothing_is_told(client, tenants, ann, bob, "acme")


async def test_the_same_name_is_another_loop_for_each(acme: Operated, tmp_path: Path) -> None:
    callers = Callers(tmp_path / "tokens.json")
    async with serving(acme, callers, acme.folder.path / "tenants") as (client, _):

        async def ask(name: str, what: str, **more: Any) -> Response:
            return await client.post(what, **callers.of(name), **more)

        for name in ("acme", "globex"):
            said = {"messages": [{"role": "user", "content": name}]}
            answer = await ask(name, "/api/agents/echo/requests", json=said, params={"loop_id": "one"})
            assert (answer.status_code, answer.json()["content"]) == (200, f"You said: {name}")
        told = await followed(client, "/api/loops/one/stream", **callers.of("acme"))
        assert "globex" not in str(told)
        forked = await ask("acme", "/api/loops/one/fork", json={"turn": 0, "loop_id": "two"})
        assert forked.status_code == 201, forked.text
        lists = [
            (await client.get("/api/loops", **callers.of(name))).json()["loops"]
            for name in ("acme", "globex")
        ]
        assert [sorted(one["loop_id"] for one in loops) for loops in lists] == [["one", "two"], ["one"]]
        used = [(await client.get("/api/usage", **callers.of(name))).json() for name in ("acme", "globex")]
        assert [report["total"]["loops"] for report in used] == [2, 1], used


async def test_who_is_of_no_tenant_or_of_one_without_an_account_is_told_so(
    acme: Operated,
    tmp_path: Path,
) -> None:
    callers = Callers(tmp_path / "tokens.json")
    folder = tmp_path / "creds"
    folder.mkdir()
    async with serving(acme, callers, folder) as (client, _):
        refused = (403, "CONFIG_UNKNOWN_TENANT")
        for name in ("none", "acme", "umbrella"):
            for path in ("/api/loops", "/api/loops/l1"):
                assert problem(await client.get(path, **callers.of(name))) == refused, path
            assert (
                problem(await client.post("/api/agents/echo/requests", json=ASK, **callers.of(name)))
                == refused
            )
        assert (await client.get("/health")).status_code == 200
        assert (await client.get("/ready")).status_code == 200
        # What is put there is served from then on.
        shutil.copy(acme.folder.path / "tenants" / "acme" / "api.creds", folder / "acme.creds")
        listed = await client.get("/api/loops", **callers.of("acme"))
        assert (listed.status_code, listed.json().get("loops")) == (200, []), listed.text
        assert (await client.get("/ready")).status_code == 200
        # Credentials that are revoked are no way in; new ones are.
        await acme.tenancy.revoke("acme", Role.API)
        while (await client.get("/api/loops", **callers.of("acme"))).status_code == 200:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        # It is no fault of those who call, and where the servers are is nothing for them.
        for path in ("/api/loops", "/v1/models"):
            told = await client.get(path, **callers.of("acme"))
            assert told.status_code == 503, told.text
            assert "127.0.0.1" not in told.text
            assert "nats" not in told.text.lower()
        answer = await client.post("/api/agents/echo/requests", json=ASK, **callers.of("acme"))
        assert problem(answer) == (503, "ORCHESTRATION_JOURNAL_UNREACHABLE")
        assert answer.json()["retryable"] is True
        # So it is with a file that cannot be read.
        (folder / "acme.creds").write_text("no credentials")
        told = await client.get("/api/loops", **callers.of("acme"))
        assert told.status_code == 503, told.text
        assert str(folder) not in told.text
        shutil.copy(acme.folder.creds("acme", Role.API), folder / "acme.creds")
        assert (await client.get("/api/loops", **callers.of("acme"))).status_code == 200


async def test_a_full_tenant_is_told_so(acme: Operated, tmp_path: Path) -> None:
    callers = Callers(tmp_path / "tokens.json")
    async with serving(acme, callers, acme.folder.path / "tenants") as (client, tenants):
        await (await tenants("acme")).journal.append("filler", numbered(3_000), 0)
        await acme.tenancy.change("acme", Quota(disk=1_000))
        large = {"messages": [{"role": "user", "content": "x" * 100_000}]}
        answer = await client.post("/api/agents/echo/requests", json=large, **callers.of("acme"))
        assert problem(answer) == (507, "ORCHESTRATION_JOURNAL_FULL")
        assert "the quota is used up" in answer.json()["detail"]
        assert "acme" not in answer.text
        answer = await client.post("/api/agents/echo/requests", json=large, **callers.of("globex"))
        assert answer.status_code == 200
