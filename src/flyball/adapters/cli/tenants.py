"""`flyball tenants`: an account of a NATS cluster for each tenant, set up while the cluster runs."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from flyball.adapters.cli.cluster import CLUSTER, Cluster
from flyball.adapters.cli.operator import OPERATOR, Limits, Operator
from flyball.adapters.cli.running import run
from flyball.adapters.cli.screen import err, out, write_json
from flyball.core.errors import UserError

if TYPE_CHECKING:
    from flyball.runtime.nats.identity import Role

_DAY = 86400.0
Name = Annotated[str, Parameter(name="NAME")]
RoleName = Annotated[str, Parameter(name="ROLE")]


def init_tenants(
    folder: Annotated[Path | None, Parameter(name="FOLDER")] = None,
    /,
    *,
    name: Annotated[str, Parameter(show_default=True)] = "flyball",
    json: bool = False,
    debug: bool = False,
) -> int:
    """Make an operator, whose key signs the accounts of tenants, and what the servers of a cluster include.

    Args:
        folder: Where its files are to be; without it, `operator` in the user's data folder. Who has them has
            the cluster.
        name: The operator's name.
        json: Print one JSON document on stdout.
        debug: Show the traceback of an error.
    """
    del debug
    made = Operator(folder).folder
    made.make(name)
    resolver = made.path / "resolver.conf"
    if json:
        write_json({"folder": str(made.path), "resolver": str(resolver)})
        return 0
    out().print(str(resolver), soft_wrap=True)
    there = "" if folder is None else f" --folder {shlex.quote(str(folder))}"
    err().print(
        "include that file in the configuration of every server (it holds no keys), name a folder in each "
        f"one's environment as ACCOUNTS, and start them anew; then: flyball tenants add NAME{there}",
        style="dim",
    )
    return 0


def add_tenant(
    name: Name,
    /,
    *,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    operator: Operator = OPERATOR,
    cluster: Cluster = CLUSTER,
) -> int:
    """Make a tenant: its account on all servers, all that is kept in it, and credentials for each role.

    Args:
        name: The tenant's name, as tokens have it (flyball tokens add --tenant).
        limits: How much it may have.
        operator: Options of these commands.
        cluster: The NATS servers.
    """
    quota = limits.read()
    made = run(operator.tenancy(cluster).add(name, quota))
    if operator.json:
        files = {str(role): str(file) for role, file in made.items()}
        write_json({"tenant": name, "quota": quota.as_dict(), "creds": files})
        return 0
    for file in made.values():
        out().print(str(file), soft_wrap=True)
    err().print(
        f"{name} is there. Workers: flyball worker AGENTS --creds {made_for(made, 'all')}, or one of each "
        "kind with its own. The API: flyball serve AGENTS --tenants FOLDER, which has <tenant>/api.creds",
        style="dim",
    )
    return 0


def list_tenants(*, operator: Operator = OPERATOR, cluster: Cluster = CLUSTER) -> int:
    """List the tenants, and how much of its quota each uses.

    Args:
        operator: Options of these commands.
        cluster: The NATS servers.
    """
    used = run(operator.tenancy(cluster).used())
    if operator.json:
        write_json([use_as_json(one) for one in used])
        return 0
    if not used:
        err().print("there are no tenants: flyball tenants add NAME makes one", style="dim")
        return 0
    out().print(drawn(used))
    return 0


def furnish_tenant(name: Name, /, *, operator: Operator = OPERATOR, cluster: Cluster = CLUSTER) -> int:
    """Bring a tenant to what this release needs: accounts, streams and credentials. Twice does no harm.

    Credentials of an earlier release stay good until they are revoked.

    Args:
        name: The tenant.
        operator: Options of these commands.
        cluster: The NATS servers.
    """
    done = run(operator.tenancy(cluster).furnish(name))
    if operator.json:
        files = {str(role): str(file) for role, file in done.creds.items()}
        write_json({"tenant": name, "accounts": done.accounts, "streams": done.streams, "creds": files})
        return 0
    for file in done.creds.values():
        out().print(str(file), soft_wrap=True)
    parts = ["its accounts are those of this release now"] if done.accounts else []
    parts += [f"made: {', '.join(done.streams)}"] if done.streams else []
    if done.creds:
        parts.append(
            f"new credentials for {', '.join(done.creds)}: give them to loop workers first; when all have "
            f"them, flyball tenants revoke {name} ROLE --old"
        )
    err().print(f"{name}: {'; '.join(parts) or 'all is there'}")
    return 0


def change_quota(
    name: Name,
    /,
    *,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    operator: Operator = OPERATOR,
    cluster: Cluster = CLUSTER,
) -> int:
    """Change how much a tenant may have, from now on. What waits for room goes on.

    Args:
        name: The tenant.
        limits: How much it may have; what is not said stays as it is.
        operator: Options of these commands.
        cluster: The NATS servers.
    """
    quota = limits.read(operator.folder.account(name).quota)
    servers = run(operator.tenancy(cluster).change(name, quota))
    if operator.json:
        write_json({"tenant": name, "quota": quota.as_dict(), "servers": servers})
        return 0
    err().print(f"{name} may have {told(quota)}: known to {', '.join(servers)}")
    return 0


def remove_tenant(
    name: Name,
    /,
    *,
    yes: bool = False,
    operator: Operator = OPERATOR,
    cluster: Cluster = CLUSTER,
) -> int:
    """Remove a tenant, with all its loops, its account and its credentials.

    Args:
        name: The tenant.
        yes: That this is meant.
        operator: Options of these commands.
        cluster: The NATS servers.
    """
    from flyball.runtime.nats.accounts.quota import tell_size

    tenancy = operator.tenancy(cluster)
    (use,) = run(tenancy.used(name))
    lost = f"{use.streams} streams with {tell_size(use.disk)}, and {use.connections} connections"
    if use.error:
        lost = f"what is not known ({use.error})"
    if not yes:
        raise UserError(f"{name} has {lost}: all of it would be lost, for ever; --yes does that")
    run(operator.tenancy(cluster).remove(name))
    if operator.json:
        write_json({"tenant": name, "removed": True, "streams": use.streams, "disk": use.disk})
        return 0
    err().print(f"removed: {name}, which had {lost}")
    return 0


def make_creds(
    name: Name,
    role: RoleName,
    /,
    *,
    days: float = 0.0,
    operator: Operator = OPERATOR,
) -> int:
    """Make new credentials for a role; those before stay good until they are revoked.

    Args:
        name: The tenant.
        role: api, loop, model, tools, dispatch, or all.
        days: For how many days they are good; without it, until they are revoked.
        operator: Options of these commands.
    """
    if not 0 <= days < 100_000:
        raise UserError(f"--days {days:g}: give a number from 0")
    file = operator.folder.creds(name, read_role(role), seconds=days * _DAY)
    if operator.json:
        write_json({"tenant": name, "role": role, "creds": str(file)})
        return 0
    out().print(str(file), soft_wrap=True)
    return 0


def revoke_creds(
    name: Name,
    role: RoleName,
    /,
    *,
    old: bool = False,
    operator: Operator = OPERATOR,
    cluster: Cluster = CLUSTER,
) -> int:
    """Let in no more who has credentials of a role; who is in with them is put out.

    Args:
        name: The tenant.
        role: api, loop, model, tools, dispatch, or all.
        old: Only those before the newest: after `flyball tenants creds`, when all have the new ones.
        operator: Options of these commands.
        cluster: The NATS servers.
    """
    gone = run(operator.tenancy(cluster).revoke(name, read_role(role), but_newest=old))
    if operator.json:
        write_json({"tenant": name, "role": role, "revoked": gone})
        return 0
    err().print(f"revoked: {len(gone)} credentials of the role {role} of {name}")
    return 0


def read_role(text: str) -> Role:
    """A role by its name.

    Raises:
        UserError: there is none.
    """
    from flyball.runtime.nats.identity import Role

    if text not in set(Role):
        raise UserError(f"there is no role {text!r:.80}; there are {', '.join(Role)}")
    return Role(text)


def made_for(made: dict[Role, Path], role: str) -> str:
    """The file of a role."""
    return str(next(file for known, file in made.items() if known == role))


def use_as_json(use: Any) -> dict[str, Any]:
    """What a tenant uses; `connections` is how many all its accounts may have, and the quota is of each."""
    names = ("disk", "memory", "streams", "consumers", "connections")
    document = {
        "tenant": use.tenant,
        "quota": use.quota.as_dict(),
        "accounts": use.accounts,
        "connections": use.quota.connections * use.accounts,
        "used": {name: getattr(use, name) for name in names},
    }
    return document | ({"error": use.error} if use.error else {})


def told(quota: Any) -> str:
    """A quota in words."""
    from flyball.runtime.nats.accounts.quota import tell_size

    numbers = [
        f"{number} {name}"
        for name in ("streams", "consumers", "connections")
        if (number := getattr(quota, name))
    ]
    disk = tell_size(quota.disk) if quota.disk else "as much as there is"
    return ", ".join([f"{disk} on disk", *numbers])


def drawn(used: list[Any]) -> Any:
    """What tenants use, as a table: a bar each for their disk."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from flyball.runtime.nats.accounts.quota import tell_size

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for column in ("tenant", "disk", "", "streams", "consumers", "connections"):
        table.add_column(column, justify="left" if column in ("tenant", "", "disk") else "right")
    for one in used:
        if one.error:
            table.add_row(one.tenant, "?", one.error)
            continue
        quota = one.quota
        disk = f"{tell_size(one.disk)} of {tell_size(quota.disk)}" if quota.disk else tell_size(one.disk)
        counts = [
            f"{number}/{most}" if most else str(number)
            for number, most in (
                (one.streams, quota.streams),
                (one.consumers, quota.consumers),
                (one.connections, quota.connections * one.accounts),
            )
        ]
        if quota.connections and one.accounts > 1:
            counts[-1] += f" ({one.accounts} accounts)"
        table.add_row(one.tenant, disk, bar(one.disk, quota.disk, full=one.is_full), *counts)
    return table


def bar(part: int, whole: int, *, full: bool = False, width: int = 20) -> Any:
    """How much of something is used; nothing where it has no end."""
    from rich.text import Text

    if not whole:
        return Text("no limit", style="dim")
    filled = min(width, part * width // whole)
    text = f"{'█' * filled}{'░' * (width - filled)} {100 * part // whole:3d}%"
    return Text(text, style="red" if full else "")
