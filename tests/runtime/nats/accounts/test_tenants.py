"""Tenants on a server that runs: nobody sees another's, and what is changed holds from then on."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncGenerator, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from flyball import Agent, CallDeferred, Deferred, DeferredToolResult, tool
from flyball.core.errors import (
    JournalFailure,
    JournalFull,
    JournalUnreachable,
    LoopNotFound,
    UnknownTenant,
    UserError,
)
from flyball.core.events import Ended
from flyball.core.signals import SignalType
from flyball.runtime.nats import Crew, NatsJournal, NatsOptions, NatsRuntime
from flyball.runtime.nats.accounts import Folder, Quota, Tenancy
from flyball.runtime.nats.accounts.claims import account_claims, creds_text, user_claims
from flyball.runtime.nats.accounts.folder import User
from flyball.runtime.nats.accounts.keys import Key, Kind
from flyball.runtime.nats.accounts.permissions import APART
from flyball.runtime.nats.accounts.quota import read_size, tell_size
from flyball.runtime.nats.accounts.sharing import imports
from flyball.runtime.nats.accounts.system import system_account
from flyball.runtime.nats.connection import Connection, connect
from flyball.runtime.nats.dead import dead_letters, drop
from flyball.runtime.nats.identity import Role, claims_in, identity_of, tags_of
from flyball.runtime.nats.room import lacks_room
from flyball.runtime.nats.subjects import DEAD
from flyball.testing import ScriptedEngine, tool_call
from flyball.testing.conformance.samples import numbered
from tests.inference.wrapped import logged
from tests.patience import PATIENCE
from tests.runtime.nats.accounts.conftest import Operated

if TYPE_CHECKING:
    from nats.aio.msg import Msg


async def test_what_one_tenant_has_no_other_sees(acme: Operated) -> None:
    await acme.tenancy.add("globex", Quota())
    async with (
        await NatsJournal.open(acme.creds("acme", Role.API)) as ours,
        await NatsJournal.open(acme.creds("globex", Role.API)) as theirs,
    ):
        await ours.append("loop", numbered(2), 0)
        assert (await ours.loops(), await theirs.loops()) == (["loop"], [])
        with pytest.raises(LoopNotFound):
            await theirs.loops(before="loop")
        await theirs.append("loop", numbered(1), 0)
        assert [len(await one.read("loop")) for one in (ours, theirs)] == [2, 1]
    used = {one.tenant: one for one in await acme.tenancy.used()}
    assert set(used) == {"acme", "globex"}
    assert (used["acme"].quota.disk, used["globex"].quota.disk) == (64 * 2**20, 0)
    assert used["acme"].disk > used["globex"].disk > 0
    assert (used["acme"].streams, used["acme"].consumers, used["acme"].error) == (15, 0, "")


async def test_files_are_their_owners_alone(acme: Operated) -> None:
    folder = acme.folder.path
    for path in folder.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not list(folder.rglob(".*"))
    told = (folder / "resolver.conf").read_text()
    assert not [seed for seed in folder.rglob("*.nk") if seed.read_text().strip() in told], "none for servers"
    who = identity_of(acme.creds("acme", Role.TOOLS).credentials)
    assert (who.tenant, who.role) == ("acme", Role.TOOLS)
    (user,) = [user for user in acme.folder.users("acme") if user.role == Role.TOOLS]
    assert who.inbox == f"_INBOX.tools.{user.key}"
    with pytest.raises(UserError, match="has an operator"):
        acme.folder.make("again")


def written(options: NatsOptions) -> str:
    """The credentials in their file."""
    return Path(options.credentials or "").read_text(encoding="utf-8")


async def until_refused(line: Connection, options: NatsOptions) -> None:
    """Wait until a user is let in no more."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await (await connect(msgspec.structs.replace(options, patience=2.0))).aclose()
            except UserError:
                return
            await asyncio.sleep(0.05)


async def test_credentials_are_renewed_and_revoked_while_it_runs(acme: Operated, tmp_path: Path) -> None:
    old = tmp_path / "old.creds"
    old.write_text(written(acme.creds("acme", Role.API)))
    before = msgspec.structs.replace(acme.creds("acme", Role.API), credentials=str(old))
    acme.folder.creds("acme", Role.API)
    line = await connect(before)
    try:
        gone = await acme.tenancy.revoke("acme", Role.API, but_newest=True)
        assert len(gone) == 1
        await until_refused(line, before)
        async with await NatsJournal.open(acme.creds("acme", Role.API)) as journal:
            await journal.append("loop", numbered(1), 0)
        await acme.tenancy.revoke("acme", Role.API)
        await until_refused(line, acme.creds("acme", Role.API))
        await (await connect(acme.creds("acme", Role.TOOLS))).aclose()
    finally:
        await line.aclose()


async def test_who_is_removed_is_gone_with_all_that_was_there(acme: Operated) -> None:
    options = acme.creds("acme", Role.API)
    text = msgspec.structs.replace(options, credentials=written(options))
    async with await NatsJournal.open(text) as journal:
        await journal.append("loop", numbered(1), 0)
    await acme.tenancy.remove("acme")
    assert acme.folder.tenants() == []
    with pytest.raises(UserError, match="does not let this user in"):
        await connect(text)
    with pytest.raises(UnknownTenant, match="there is no tenant 'acme'"):
        await acme.tenancy.used("acme")
    await acme.tenancy.add("acme", Quota())
    async with await NatsJournal.open(acme.creds("acme", Role.API)) as journal:
        assert await journal.loops() == []


def forget_apart(folder: Folder) -> None:
    """Have acme as an earlier release has made it: in one account."""
    for role in APART:
        (folder.path / f"tenants/acme/{role}.nk").unlink()


def made_before(folder: Folder) -> str:
    """Credentials of the role `tools` as an earlier release has made them: of the tenant's one account."""
    user = Key.new(Kind.USER)
    tags = tags_of("acme", Role.TOOLS)
    jwt = user_claims(
        folder.key("acme"), user.public, "acme-tools", publish=["tool.>"], subscribe=["_INBOX.>"], tags=tags
    )
    users = [*folder.users("acme"), User(Role.TOOLS, user.public, claims_in(jwt)["iat"])]
    (folder.path / "tenants/acme/users.json").write_bytes(msgspec.json.encode(users))
    return creds_text(jwt, user)


async def test_what_is_missing_in_an_account_is_made_and_what_is_old_made_new(acme: Operated) -> None:
    """Credentials of before stay good until they are revoked; then those alone are let in no more."""
    folder = acme.folder
    forget_apart(folder)
    folder.change(folder.account("acme"))
    with pytest.raises(UserError, match="flyball tenants furnish acme"):
        folder.creds("acme", Role.TOOLS)
    old = msgspec.structs.replace(acme.options, credentials=made_before(folder))
    visitor = msgspec.structs.replace(acme.options, credentials=folder.visitor("acme"))
    line = await connect(visitor)
    await line.js.delete_stream("GOVERNANCE")
    await line.aclose()
    done = await acme.tenancy.furnish("acme")
    assert (done.accounts, done.streams, list(done.creds)) == (True, ["GOVERNANCE"], list(APART))
    again = await acme.tenancy.furnish("acme")
    assert (again.accounts, again.streams, again.creds) == (False, [], {})
    lines = [await connect(one) for one in (old, acme.creds("acme", Role.TOOLS))]
    try:
        for one in lines:
            await one.request("tool.for.x", b"{}")
        assert (await acme.tenancy.used("acme"))[0].connections == 2
    finally:
        for one in lines:
            await one.aclose()
    await acme.tenancy.revoke("acme", Role.TOOLS, but_newest=True)
    await until_refused(lines[0], old)
    await (await connect(acme.creds("acme", Role.TOOLS))).aclose()


async def test_what_an_account_shares_no_other_tenant_can_import(acme: Operated) -> None:
    """Not even where the operator signs it: the tenant's own key has signed for one account only."""
    await acme.tenancy.add("globex", Quota())
    folder = acme.folder
    ours, theirs = folder.account("acme"), folder.account("globex")
    tokens = imports(Role.TOOLS, folder.key("acme"), ours.apart[Role.TOOLS])
    key = theirs.apart[Role.TOOLS]
    for taken in (tokens, [{**one, "token": ""} for one in tokens]):
        forged = account_claims(folder.operator, key, "globex-tools", theirs.quota, imports=taken)
        async with system_account(acme.tenancy.as_system()) as system:
            with suppress(JournalFailure):  # it is not even taken
                await system.push(forged)
        line = await connect(msgspec.structs.replace(acme.creds("globex", Role.TOOLS), patience=1.0))
        try:
            with suppress(JournalUnreachable):  # or it is stored in their own
                await line.request("tool.for.x", b"{}")
        finally:
            await line.aclose()
    visitor = msgspec.structs.replace(acme.options, credentials=folder.visitor("acme"))
    line = await connect(visitor)
    try:
        assert (await line.js.stream_info("AGENT_TOOLS")).state.messages == 0
    finally:
        await line.aclose()
    assert ours.apart[Role.TOOLS] != key


async def test_a_full_account_waits_and_goes_on_when_there_is_room(acme: Operated) -> None:
    """And leaves all others alone."""
    await acme.tenancy.add("globex", Quota(disk=64 * 2**20))
    agent = Agent(ScriptedEngine("Hello."), name="greeter")
    async with (
        await NatsJournal.open(acme.creds("acme", Role.ALL)) as journal,
        Crew(journal, [agent]),
        await NatsRuntime.open(acme.creds("acme", Role.API)) as runtime,
        await NatsJournal.open(acme.creds("globex", Role.API)) as theirs,
        asyncio.timeout(PATIENCE),
    ):
        used = (await acme.tenancy.used("acme"))[0].disk
        await acme.tenancy.change("acme", Quota(disk=used + 300_000))
        text = "x" * 100_000
        asked = [agent.begun(text, {"loop_id": f"filler-{n}"})[1] for n in range(50)]
        fitted = 0

        async def fill() -> None:
            nonlocal fitted
            for started in asked:
                await runtime.ask_for(started)
                fitted += 1

        with pytest.raises(JournalFull, match="the tenant 'acme' has used up its quota") as caught:
            await fill()
        assert (caught.value.retryable, caught.value.details["tenant"]) == (True, "acme")
        assert 0 < fitted < 50
        with pytest.raises(JournalFull):
            await journal.append("more", numbered(9_000), 0)
        assert await theirs.append("loop", numbered(5), 0) == 5
        await acme.tenancy.change("acme", Quota(disk=64 * 2**20))
        for loop in range(fitted):
            assert await runtime.journal.wait(f"filler-{loop}", 0)
            assert (await runtime.result(agent, f"filler-{loop}")).output == "Hello."


async def test_what_is_put_aside_takes_a_part_of_the_quota_and_can_be_let_go_of(acme: Operated) -> None:
    visitor = msgspec.structs.replace(acme.options, credentials=acme.folder.visitor("acme"))
    line, tools = await connect(visitor), await connect(acme.creds("acme", Role.TOOLS))
    try:
        config = (await line.js.stream_info(DEAD)).config
        config.max_bytes = -1
        await line.js.update_stream(config)  # as an earlier release has made it
        await acme.tenancy.furnish("acme")
        assert (await line.js.stream_info(DEAD)).config.max_bytes == 64 * 2**20 // 10

        async def put() -> bool:
            said = await tools.request("fly.dead._.tool.execute.x", bytes(10**6), {"Flyball-Dead": "garbage"})
            return b'"error"' not in said.data

        assert [await put() for _ in range(8)] == [True] * 6 + [False] * 2
        async with await NatsRuntime.open(acme.creds("acme", Role.API)) as runtime:
            letters = await dead_letters(runtime.bus)
            assert len(letters) == 6
            for number, _ in letters:
                await drop(runtime.bus, number)
        assert await put()
        await acme.tenancy.change("acme", Quota(disk=32 * 2**20))
        assert (await line.js.stream_info(DEAD)).config.max_bytes == 32 * 2**20 // 10
        await acme.tenancy.change("acme", Quota())
        assert (await line.js.stream_info(DEAD)).config.max_bytes == -1
    finally:
        for one in (line, tools):
            await one.aclose()


async def left(given: Operated, room: int) -> None:
    """Leave acme room for so many bytes more."""
    used = (await given.tenancy.used("acme"))[0].disk
    await given.tenancy.change("acme", Quota(disk=used + room))


async def test_callers_of_a_full_account_are_all_told_that_it_is(acme: Operated) -> None:
    """Also those whose message still had room, and what a loop worker records of it has none."""
    agent = Agent(ScriptedEngine(*["Hello."] * 12), name="greeter")
    async with (
        await NatsJournal.open(acme.creds("acme", Role.ALL)) as journal,
        Crew(journal, [agent]),
        await NatsRuntime.open(acme.creds("acme", Role.API)) as runtime,
        asyncio.timeout(PATIENCE),
    ):
        await left(acme, 550_000)
        asked = [runtime.submit(agent, "x" * 100_000, loop_id=f"loop-{n}") for n in range(12)]
        done = await asyncio.gather(*asked, return_exceptions=True)
        assert {type(one) for one in done} in ({str, JournalFull}, {JournalFull})


@pytest.fixture
async def saying(acme: Operated) -> AsyncGenerator[asyncio.Queue[str]]:
    """The subjects on which something is said to loop workers."""
    said: asyncio.Queue[str] = asyncio.Queue()
    line = await connect(msgspec.structs.replace(acme.options, credentials=acme.folder.visitor("acme")))

    async def heard(message: Msg) -> None:
        await said.put(message.subject)

    for subject in ("agent.task.*", "agent.signal.*", "tool.result.*"):
        await line.subscribe(subject, heard)
    await line.flush()
    yield said
    await line.aclose()


async def test_what_is_on_the_wire_when_an_account_is_full_waits_there(
    acme: Operated, saying: asyncio.Queue[str]
) -> None:
    """Who waits for it is told of that, and not that nobody is there to take it."""

    @tool
    async def stock() -> int:
        """How many there are; somebody goes and counts them."""
        raise CallDeferred

    script = (tool_call("stock", {}), "Seven.", "Seven.")
    agent = Agent(ScriptedEngine(*script), tools=[stock], name="shop")
    options = msgspec.structs.replace(acme.creds("acme", Role.API), patience=5.0)

    async def told(waiting: Coroutine[Any, Any, Any], where: str) -> JournalFull:
        """What somebody is told who said something before the account was full."""
        task = asyncio.ensure_future(waiting)
        while not (await saying.get()).startswith(where):
            pass
        await left(acme, 0)
        with pytest.raises(JournalFull, match="the tenant 'acme' has used up its quota") as caught:
            await task
        await acme.tenancy.change("acme", Quota(disk=64 * 2**20))
        return caught.value

    async with (
        await NatsJournal.open(acme.creds("acme", Role.ALL)) as journal,
        await NatsRuntime.open(options) as runtime,
        asyncio.timeout(PATIENCE),
    ):
        why = await told(runtime.submit(agent, "How many?", loop_id="loop"), "agent.task.")
        assert "there is no room to begin loop 'loop'" in str(why)
        assert (why.retryable, why.details["loop_id"]) == (True, "loop")
        async with Crew(journal, [agent]):
            assert await runtime.journal.wait("loop", 0)
            with pytest.raises(Deferred) as deferred:
                await runtime.result(agent, "loop")
        (request,) = deferred.value.requests
        result = DeferredToolResult("stock", request.tool_call_id, 7)
        why = await told(runtime.signal("loop", SignalType.FEEDBACK, "Hurry."), "agent.signal.")
        assert "there is no room to record the signal feedback for loop 'loop'" in str(why)
        why = await told(runtime.answer("loop", [result]), "tool.result.")
        assert "there is no room to record the results for loop 'loop'" in str(why)
        async with Crew(journal, [agent]):
            while not isinstance((events := await runtime.journal.read("loop"))[-1], Ended):
                await runtime.journal.wait("loop", len(events))
            assert (await runtime.result(agent, "loop")).output == "Seven."


async def test_credentials_that_may_not_ask_for_room_do_no_harm(acme: Operated) -> None:
    """As those of an earlier release: then it is not known."""
    line = await connect(acme.creds("acme", Role.LOOP))
    with logged("flyball.nats") as said:
        try:
            await left(acme, 0)
            assert not await lacks_room(line, 10, 1)
        finally:
            await line.aclose()
    assert not said


async def test_of_changes_at_the_same_time_all_hold(acme: Operated) -> None:
    """Also those that are told to the servers one after the other."""
    for number in range(3):
        acme.folder.creds("acme", Role.TOOLS)
        other = Tenancy(Folder(acme.folder.path), acme.options)
        quota = Quota(disk=(40 + number) * 2**20)
        await asyncio.gather(acme.tenancy.change("acme", quota), other.revoke("acme", Role.TOOLS))
        account = acme.folder.account("acme")
        assert account.quota == quota
        assert {user.key for user in acme.folder.users("acme") if user.role == Role.TOOLS} <= set(
            account.revoked
        )
    made = [asyncio.to_thread(Folder(acme.folder.path).creds, "acme", Role.API) for _ in range(6)]
    before = len(acme.folder.users("acme"))
    await asyncio.gather(*made)
    assert len(acme.folder.users("acme")) == before + 6


async def test_what_was_killed_while_it_was_added_is_gone_on_with(
    acme: Operated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever: each file is written whole, and the next one perhaps never."""
    write = Folder._write  # pyright: ignore[reportPrivateUsage]
    for before in (1, 2, 3, 5, 7, 9, 12, 18):
        written, tenant = 0, f"killed-{before}"

        def killed(folder: Folder, name: str, text: str, before: int = before) -> Path:
            nonlocal written
            written += 1
            if written > before:
                raise KeyboardInterrupt
            return write(folder, name, text)

        with monkeypatch.context() as patched:
            patched.setattr(Folder, "_write", killed)
            with pytest.raises(KeyboardInterrupt):
                await acme.tenancy.add(tenant, Quota(disk=32 * 2**20))
        await acme.tenancy.add(tenant, Quota(disk=16 * 2**20))
        assert acme.folder.is_complete(tenant)
        assert acme.folder.account(tenant).quota.disk == 16 * 2**20
        for role in Role:
            await (await connect(acme.creds(tenant, role))).aclose()
        with pytest.raises(UserError, match=f"flyball tenants furnish {tenant}"):
            await acme.tenancy.add(tenant, Quota())
        await acme.tenancy.remove(tenant)


async def test_names_that_cannot_be_and_those_that_are_there(acme: Operated) -> None:
    for name in ("", "Acme", "../x", "a.b", "x" * 64, "-a", "*"):
        with pytest.raises(UserError, match="a tenant's name"):
            await acme.tenancy.add(name, Quota())
        with pytest.raises(UnknownTenant):
            acme.folder.account(name)
    with pytest.raises(UserError, match="there is a tenant 'acme'"):
        await acme.tenancy.add("acme", Quota())


async def test_an_operator_that_the_servers_do_not_know(acme: Operated, tmp_path: Path) -> None:
    from flyball.runtime.nats.accounts import Tenancy

    stranger = Folder(tmp_path / "stranger")
    stranger.make("stranger")
    options = msgspec.structs.replace(acme.options, patience=5.0)
    with pytest.raises(UserError, match=r"do the servers include the resolver\.conf"):
        await Tenancy(stranger, options).add("eve", Quota())
    with pytest.raises(UserError, match="flyball tenants init"):
        await Tenancy(Folder(tmp_path / "nothing"), options).add("eve", Quota())


@pytest.mark.parametrize(
    ("text", "size"),
    [("10GiB", 10 * 2**30), ("500MB", 500_000_000), ("1.5k", 1536), ("17", 17), ("17 b", 17), ("none", 0)],
)
def test_sizes_as_people_write_them(text: str, size: int) -> None:
    assert read_size(text) == size


@pytest.mark.parametrize("text", ["", "ten", "-1", "10XB", "1e9"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(UserError, match="is no size"):
        read_size(text)


def test_sizes_are_told_and_quotas_can_be() -> None:
    assert [tell_size(n) for n in (5, 2048, 3 * 2**30, 2**41)] == ["5 B", "2.0 KiB", "3.0 GiB", "2.0 TiB"]
    with pytest.raises(UserError, match="flyball needs"):
        Quota(streams=3)
    with pytest.raises(UserError, match="a number from 0"):
        Quota(disk=-1)
