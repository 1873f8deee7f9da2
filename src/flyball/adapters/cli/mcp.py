"""`flyball mcp`: what MCP servers offer."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from flyball.adapters.cli.running import run
from flyball.adapters.cli.shared import SHARED, Shared


def list_tools(
    servers: Annotated[tuple[str, ...], Parameter(name="SERVER")], /, *, shared: Shared = SHARED
) -> int:
    """List the tools that MCP servers offer, under the names that a model would call them by.

    Args:
        servers: A command, an address, or a JSON file of servers; several may be given.
        shared: Options of all commands.
    """
    from flyball.adapters.cli.screen import out, write_json
    from flyball.core.errors import UserError

    if not servers:
        raise UserError("name a server: a command, an address, or a JSON file of servers")
    rows = run(_listed(servers))
    if shared.json:
        write_json(rows)
    elif rows:
        out().print(_table(rows))
    else:
        out().print("no tools", style="dim")
    return 0


async def _listed(servers: tuple[str, ...]) -> list[dict[str, Any]]:
    from flyball.adapters.cli.servers import opened

    async with opened(servers) as toolsets:
        return [
            {
                "server": tools.name,
                "name": tool.spec.definition.name,
                "description": tool.spec.definition.description,
                "parameters": tool.spec.definition.parameters,
                "safety": tool.spec.safety.value,
                "approval": tool.spec.approval,
                **(tool.spec.definition.extra or {}),
            }
            for tools in toolsets
            for tool in tools
        ]


def _table(rows: list[dict[str, Any]]) -> Any:
    """The tools as a table. What a server says is shown as text, and nothing in it is markup."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from flyball.adapters.cli.screen import one_line

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for name in ("tool", "arguments", "approval", "about"):
        table.add_column(name, overflow="fold", min_width=8 if name == "approval" else None)
    for row in rows:
        required = row["parameters"].get("required", ())
        arguments = [
            name if name in required else f"[{name}]" for name in row["parameters"].get("properties", {})
        ]
        table.add_row(
            Text(row["name"]),
            Text(", ".join(arguments)),
            Text("asked" if row["approval"] else "", style="yellow"),
            Text(one_line(row["description"], 200), style="dim"),
        )
    return table
