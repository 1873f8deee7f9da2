"""A real server in operator mode, and tenants on it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from flyball.runtime.nats import EmbeddedServer, NatsOptions
from flyball.runtime.nats.accounts import Folder, Quota, Tenancy
from flyball.runtime.nats.identity import Role
from flyball.runtime.nats.server.settings import ServerSettings
from tests.patience import PATIENCE
from tests.runtime.nats.conftest import in_thread


class _Settings(ServerSettings, frozen=True):
    instead: str = ""

    def text(self) -> str:
        # Here no power is cut: a server that syncs always only takes longer.
        kept = [
            line
            for line in super().text().splitlines()
            if not line.startswith("authorization") and "sync_interval" not in line
        ]
        return "\n".join([*kept, self.instead, ""])


class _Server(EmbeddedServer):
    """One whose messages are small, so that what is larger is kept beside them."""

    def __init__(self, folder: Path, resolver: str) -> None:
        super().__init__(folder)
        self._settings = _Settings(folder.resolve(), "", max_payload=2**20, instead=resolver)


class Operated:
    """A server and its operator."""

    def __init__(self, folder: Folder, options: NatsOptions) -> None:
        self.folder = folder
        self.options = options
        self.tenancy = Tenancy(folder, options)

    def creds(self, tenant: str, role: Role) -> NatsOptions:
        """How a user of a role comes in."""
        file = self.folder.path / "tenants" / tenant / f"{role}.creds"
        return NatsOptions(self.options.servers, credentials=str(file), patience=PATIENCE)


def made(path: Path) -> Folder:
    """A new operator, whose servers keep what they are told beside it."""
    folder = Folder(path / "operator")
    folder.make("test", str(path / "claims"))
    return folder


@pytest.fixture(scope="session")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Generator[Operated]:
    """A server in a thread of its own, for tests whose event loops come and go."""
    path = tmp_path_factory.mktemp("operated")
    folder = made(path)
    with in_thread(_Server(path / "server", (folder.path / "resolver.conf").read_text())) as server:
        yield Operated(folder, NatsOptions((server.url,), patience=PATIENCE, partitions=1))


@pytest.fixture
async def acme(operator: Operated) -> AsyncGenerator[Operated]:
    """A server with the tenant acme, and no other."""
    await operator.tenancy.add("acme", Quota(disk=64 * 2**20))
    yield operator
    for tenant in operator.folder.tenants():
        await operator.tenancy.remove(tenant)
