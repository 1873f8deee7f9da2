"""The credentials that a server of the API has: a folder with those of the role `api`, for each tenant.

<folder>/<tenant>/api.creds     as the operator's folder has them
<folder>/<tenant>.creds         as somebody has copied them
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec.structs import replace

from flyball.core.errors import UserError
from flyball.runtime.nats.connection import NatsOptions
from flyball.runtime.nats.identity import Role

_SUFFIX = ".creds"


class ServedTenants(Mapping[str, NatsOptions]):
    """How to come in for each tenant. The folder is looked at each time: tenants come and go meanwhile."""

    def __init__(self, folder: Path, options: NatsOptions) -> None:
        """`options` say where the servers are.

        Raises:
            UserError: there is no such folder.
        """
        if not folder.is_dir():
            raise UserError(f"{folder} is no folder: name one that has <tenant>/api.creds for each tenant")
        self._folder = folder
        self._options = options

    def __getitem__(self, tenant: str) -> NatsOptions:
        if not tenant or "/" in tenant or tenant.startswith("."):
            raise KeyError(tenant)
        for file in (self._folder / tenant / f"{Role.API}{_SUFFIX}", self._folder / f"{tenant}{_SUFFIX}"):
            if file.is_file():
                return replace(self._options, credentials=str(file))
        raise KeyError(tenant)

    def __iter__(self) -> Iterator[str]:
        kept = [file.parent.name for file in self._folder.glob(f"*/{Role.API}{_SUFFIX}")]
        copied = [file.name.removesuffix(_SUFFIX) for file in self._folder.glob(f"*{_SUFFIX}")]
        return iter(sorted({*kept, *copied}))

    def __len__(self) -> int:
        return len(list(iter(self)))
