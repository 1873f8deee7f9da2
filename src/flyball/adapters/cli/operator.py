"""The options of `flyball tenants`: where the operator's files are, and how much a tenant may have."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from flyball.adapters.cli.cluster import Cluster
from flyball.adapters.cli.places import data_folder
from flyball.runtime.nats.accounts.quota import FEWEST_STREAMS

if TYPE_CHECKING:
    from flyball.runtime.nats.accounts import Folder, Quota, Tenancy


@Parameter(name="*")
@dataclass(frozen=True)
class Operator:
    """Options of all commands about tenants."""

    operator: Annotated[Path | None, Parameter(name="--folder")] = None
    """The operator's folder, as `flyball tenants init` made it; without it, `operator` in the data folder."""
    json: bool = False
    """Print one JSON document on stdout, and nothing else there."""
    debug: bool = False
    """Show the traceback of an error."""

    @property
    def folder(self) -> Folder:
        """The folder."""
        from flyball.runtime.nats.accounts import Folder

        given = data_folder() / "operator" if self.operator is None else self.operator.expanduser()
        return Folder(given)

    def tenancy(self, cluster: Cluster) -> Tenancy:
        """The tenants on a cluster.

        Raises:
            UserError: none is named.
        """
        from flyball.runtime.nats.accounts import Tenancy

        return Tenancy(self.folder, cluster.options())


@Parameter(name="*")
@dataclass(frozen=True)
class Limits:
    """How much a tenant may have."""

    disk: str | None = None
    """Bytes on disk, as 10GiB; each copy of three counts, and none is no limit."""
    memory: str | None = None
    """Bytes in memory, where flyball itself keeps nothing."""
    streams: Annotated[
        int | None,
        Parameter(help=f"Streams; 0 is no limit. Flyball has {FEWEST_STREAMS}, with four partitions."),
    ] = None
    consumers: int | None = None
    """Consumers; 0 is no limit."""
    connections: int | None = None
    """Connections at once: workers, and servers of the API; 0 is no limit."""

    def read(self, before: Quota | None = None) -> Quota:
        """The quota; what is not said is as it was.

        Raises:
            UserError: something cannot be read.
        """
        from msgspec.structs import replace

        from flyball.runtime.nats.accounts.quota import Quota, read_size

        said = {
            name: read_size(text) for name in ("disk", "memory") if (text := getattr(self, name)) is not None
        }
        counts = ("streams", "consumers", "connections")
        said |= {name: number for name in counts if (number := getattr(self, name)) is not None}
        return replace(before or Quota(), **said)


OPERATOR = Operator()
