"""How one comes in to a server that is not everybody's: nkeys, credentials, TLS, each on a real one."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import pytest

from flyball import Agent
from flyball.core.errors import JournalUnreachable, UserError
from flyball.runtime.nats import Crew, EmbeddedServer, NatsJournal, NatsOptions, NatsRuntime
from flyball.runtime.nats.server.settings import ServerSettings
from flyball.testing import ScriptedEngine

nkeys: Any = import_module("nkeys")  # it has no types


class _Settings(ServerSettings, frozen=True):
    instead: str = ""

    def text(self) -> str:
        kept = [line for line in super().text().splitlines() if not line.startswith("authorization")]
        return "\n".join([*kept, self.instead, ""])


class Guarded(EmbeddedServer):
    """A server that lets in whom its configuration names."""

    def __init__(self, folder: Path, instead: str) -> None:
        super().__init__(folder)
        self._settings = _Settings(folder.resolve(), "", instead=instead)


def key(prefix: int) -> tuple[bytes, Any]:
    """A new seed, and its key."""
    seed: Any = nkeys.encode_seed(os.urandom(32), prefix)
    return bytes(seed), nkeys.from_seed(bytearray(seed))


def public(pair: Any) -> str:
    return pair.public_key.decode()


def token(issuer: Any, subject: Any, name: str, nats: dict[str, Any]) -> str:
    """A signed claim about a key, as NATS has them."""

    def part(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    claims = {"iat": 1, "iss": public(issuer), "name": name, "sub": public(subject), "nats": nats}
    claims["jti"] = (
        base64.b32encode(hashlib.sha256(json.dumps(claims).encode()).digest()).decode().rstrip("=")
    )
    signed = f"{part({'typ': 'JWT', 'alg': 'ed25519-nkey'})}.{part(claims)}"
    signature = base64.urlsafe_b64encode(issuer.sign(signed.encode())).decode().rstrip("=")
    return f"{signed}.{signature}"


async def works(options: NatsOptions) -> None:
    """See that everything can be done there."""
    agent = Agent(ScriptedEngine("Come in."), name="porter")
    async with (
        await NatsJournal.open(options) as journal,
        Crew(journal, [agent]),
        await NatsRuntime.open(options) as runtime,
    ):
        assert (await agent.run("May I?", runtime=runtime)).output == "Come in."


async def refused(options: NatsOptions) -> None:
    impatient = msgspec.structs.replace(options, patience=2.0)
    with pytest.raises((UserError, JournalUnreachable)):
        await NatsJournal.open(impatient)


async def test_by_an_nkey(tmp_path: Path) -> None:
    seed, pair = key(nkeys.PREFIX_BYTE_USER)
    other, _ = key(nkeys.PREFIX_BYTE_USER)
    (tmp_path / "mine.nk").write_bytes(seed)
    (tmp_path / "other.nk").write_bytes(other)
    allowed = f"authorization {{ users: [ {{ nkey: {public(pair)} }} ] }}"
    async with Guarded(tmp_path / "server", allowed) as server:
        await works(NatsOptions((server.url,), nkey=str(tmp_path / "mine.nk")))
        await refused(NatsOptions((server.url,), nkey=str(tmp_path / "other.nk")))
        await refused(NatsOptions((server.url,)))


async def test_by_credentials(tmp_path: Path) -> None:
    _, operator = key(nkeys.PREFIX_BYTE_OPERATOR)
    _, account = key(nkeys.PREFIX_BYTE_ACCOUNT)
    _, system = key(nkeys.PREFIX_BYTE_ACCOUNT)
    seed, user = key(nkeys.PREFIX_BYTE_USER)
    endless = dict.fromkeys(("subs", "data", "payload", "imports", "exports", "conn", "leaf"), -1)
    stored = {"mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1}
    limits = endless | stored | {"wildcards": True}
    its_operator = token(operator, operator, "op", {"type": "operator", "version": 2})
    its_account = token(operator, account, "acc", {"type": "account", "version": 2, "limits": limits})
    its_user = token(
        account, user, "me", {"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1}
    )
    creds = tmp_path / "me.creds"
    creds.write_text(
        f"-----BEGIN NATS USER JWT-----\n{its_user}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{seed.decode()}\n------END USER NKEY SEED------\n"
    )
    its_system = token(
        operator, system, "SYS", {"type": "account", "version": 2, "limits": endless | {"wildcards": True}}
    )
    known = f"operator: {its_operator}\nresolver: MEMORY\nsystem_account: {public(system)}\n"
    known += f"resolver_preload: {{ {public(account)}: {its_account}, {public(system)}: {its_system} }}"
    async with Guarded(tmp_path / "server", known) as server:
        await works(NatsOptions((server.url,), credentials=str(creds)))
        await refused(NatsOptions((server.url,)))


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")
async def test_by_tls(tmp_path: Path) -> None:
    def openssl(*argv: str) -> None:
        subprocess.run(["openssl", *argv], cwd=tmp_path, check=True, capture_output=True)

    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", "-x509", *new, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=us")
    (tmp_path / "names").write_text("subjectAltName=IP:127.0.0.1")
    for name in ("server", "client"):
        openssl("req", *new, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "names", "-days", "2")
        openssl("x509", "-req", "-in", f"{name}.csr", *signed, "-out", f"{name}.pem")

    def place(name: str) -> str:
        return str(tmp_path / name)

    tls = f'tls {{ cert_file: "{place("server.pem")}", key_file: "{place("server.key")}", '
    tls += f'ca_file: "{place("ca.pem")}", verify: true }}'
    async with Guarded(tmp_path / "server", tls) as server:
        whole = NatsOptions(
            (server.url,),
            tls_ca=place("ca.pem"),
            tls_cert=place("client.pem"),
            tls_key=place("client.key"),
        )
        await works(whole)
        await refused(msgspec.structs.replace(whole, tls_cert=None, tls_key=None))
        await refused(msgspec.structs.replace(whole, tls_ca=None))
