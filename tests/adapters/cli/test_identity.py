"""`flyball identity`, as it is typed."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from socketserver import BaseRequestHandler, TCPServer
from threading import Thread

import pytest

from flyball import Agent, AgentStep
from flyball.identity import DID, ActsAs, MemoryProvider
from flyball.runtime.sqlite import SQLiteJournal
from flyball.testing import ScriptedEngine
from tests.adapters.cli.conftest import Flyball


def created(flyball: Flyball, *more: str) -> str:
    said = flyball("identity", "create", "clerk", "--role", "editor", *more)
    assert said.code == 0, said.err
    return said.out.strip()


def test_an_identity_from_its_beginning_to_its_end(flyball: Flyball, home: Path, tmp_path: Path) -> None:
    assert "there are no identities" in flyball("identity", "list").err
    did = created(flyball, "--capability", "a.read", "--capability", "a.write,b", "--days", "2")
    assert did.startswith("did:key:z6Mk")
    listed = flyball("identity", "list")
    for word in (did, "clerk", "editor", "a.read, a.write, b"):
        assert word in listed.out
    shown = flyball("identity", "show", did[:16])
    assert shown.out.count(" yes") == 3
    issued = flyball("identity", "issue", "clerk", "--capability", "c").out.strip()
    document = flyball("identity", "show", did, "--json")
    assert [one["did"] for one in flyball("identity", "list", "--json").json] == [did]
    assert document.json["credentials"][-1]["id"] == issued
    file = tmp_path / "clerk.json"
    file.write_text(document.out)
    assert flyball("identity", "verify", str(file)).out == "✔ a.read\n✔ a.write\n✔ b\n✔ c\n"
    assert flyball("identity", "revoke", issued).err == f"revoked: {issued}\n"
    refused = flyball("identity", "verify", str(file))
    assert (refused.code, refused.out.splitlines()[-1][:13]) == (7, "✘ c: revoked,")
    assert flyball("identity", "show", "clerk").out.count("revoked") == 1
    assert flyball("identity", "delete", did).code == 0
    assert flyball("identity", "verify", str(file)).out.count("revoked,") == 4
    gone = flyball("identity", "show", did)
    assert (gone.code, gone.out) == (3, "")
    assert "CONFIG_IDENTITY_NOT_FOUND" in gone.err
    assert (home / "identities").stat().st_mode & 0o777 == 0o700


def test_a_credential_from_stdin(flyball: Flyball) -> None:
    created(flyball)
    (credential,) = flyball("identity", "issue", "clerk", "--capability", "c", "--json").json
    good = flyball("identity", "verify", "-", "--json", stdin=json.dumps(credential))
    assert good.code == 0
    assert good.json["holds"] is True
    credential["credentialSubject"]["capability"] = "everything"
    bad = flyball("identity", "verify", "-", "--json", stdin=json.dumps(credential))
    assert bad.code == 7
    assert bad.json["verdicts"][0]["problem"] == "bad_signature"


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"did": "x"}', b"\xff\xfe", '{"did": "did:key:x"}'])
def test_what_is_none_does_not_hold(flyball: Flyball, text: str | bytes) -> None:
    said = flyball("identity", "verify", "-", stdin=text)
    assert said.code == 7
    assert said.out.startswith("✘ ")


def test_others_count_if_they_are_trusted(flyball: Flyball, tmp_path: Path) -> None:
    created(flyball, "--folder", str(tmp_path / "there"))
    there = ("--folder", str(tmp_path / "there"))
    (credential,) = flyball("identity", "issue", "clerk", "--capability", "c", "--json", *there).json

    def verified(*more: str) -> int:
        return flyball("identity", "verify", "-", *more, stdin=json.dumps(credential)).code

    assert verified() == 7
    assert verified("--trust", credential["issuer"]) == 7
    assert verified("--trust", credential["issuer"], "--unchecked-status") == 0
    assert verified(*there) == 0


def test_a_made_up_identity_has_nobody_on_this_machine_asked(flyball: Flyball, tmp_path: Path) -> None:
    from tests.identity.test_chain import handed

    asked = list[bytes]()

    class Listens(BaseRequestHandler):
        def handle(self) -> None:
            asked.append(self.request.recv(100))

    async def made_up(port: int) -> str:
        stranger = MemoryProvider()
        admin = await stranger.create("admin", did=DID.web(f"localhost:{port}", "admin"))
        below = await stranger.create("below")
        return json.dumps(below.add_credential(await handed(stranger, admin, below, ["a"])).write())

    with TCPServer(("127.0.0.1", 0), Listens) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        file = tmp_path / "mal.json"
        file.write_text(asyncio.run(made_up(server.server_address[1])))
        for more in ((), ("--trust", f"did:web:localhost%3A{server.server_address[1]}:admin")):
            assert flyball("identity", "verify", str(file), *more).code == 7
        assert flyball("identity", "verify", str(file), "--private-hosts").code == 7
        server.shutdown()
    assert asked == []


def test_a_did_of_the_web_has_a_document_to_publish(flyball: Flyball) -> None:
    did = created(flyball, "--did", "did:web:example.com:clerk")
    assert did == "did:web:example.com:clerk"
    assert flyball("identity", "show", did, "--document").json["id"] == did


@pytest.mark.parametrize(
    ("argv", "code", "told"),
    [
        (["create", ""], 3, "display_name"),
        (["create", "x", "--did", "nonsense"], 3, "is no DID"),
        (["create", "x", "--days", "-1"], 2, "--days -1"),
        (["issue", "nobody", "--capability", "c"], 3, "there is no identity 'nobody'"),
        (["issue", "nobody"], 2, "--capability is missing"),
        (["revoke", "urn:uuid:x"], 3, "was issued here"),
        (["delete", "clerk"], 3, "is no DID"),
        (["verify", "no-such-file"], 2, "cannot be read"),
        (["show"], 2, "DID is missing"),
    ],
)
def test_what_cannot_be_is_told(flyball: Flyball, argv: list[str], code: int, told: str) -> None:
    said = flyball("identity", *argv)
    assert (said.code, said.out) == (code, "")
    assert told in said.err


def test_two_of_a_name_are_told_apart(flyball: Flyball) -> None:
    for _ in range(2):
        created(flyball)
    said = flyball("identity", "show", "clerk")
    assert (said.code, "2 identities" in said.err) == (2, True)


def test_a_run_shows_as_whom_it_acts(flyball: Flyball, home: Path) -> None:
    home.mkdir(exist_ok=True)

    async def ran() -> str:
        identity = await MemoryProvider().create("clerk", capabilities=["a.read"])
        async with SQLiteJournal(home / "runs.db") as journal:
            await Agent(ScriptedEngine("hi"), features=[ActsAs(identity)]).run("go", journal=journal)
        return str(identity.did)

    did = asyncio.run(ran())
    assert f"acts as {did}, who may: a.read\n" in flyball("show").out
    assert flyball("show", "--json").json["identity"]["did"] == did


def test_a_flow_shows_as_whom_it_acts(flyball: Flyball, home: Path) -> None:
    home.mkdir(exist_ok=True)

    async def ran() -> str:
        identity = await MemoryProvider().create("clerk", capabilities=["a.read"])
        async with SQLiteJournal(home / "runs.db") as journal:
            step = AgentStep(Agent(ScriptedEngine("hi")))
            await step.run("go", journal=journal, loop_id="flow", features=[ActsAs(identity)])
        return str(identity.did)

    did = asyncio.run(ran())
    assert f"acts as {did}, who may: a.read\n" in flyball("show", "flow").out


def test_who_is_called_like_another_is_told_of(flyball: Flyball) -> None:
    did = created(flyball)
    again = flyball("identity", "create", "clerk")
    assert f"so called is {did}, too: name each by its DID" in again.err
    assert flyball("identity", "delete", "clerk").code == 2
    assert flyball("identity", "delete", did).code == 0
    assert flyball("identity", "delete", "clerk").err == f"deleted: {again.out.strip()}\n"
