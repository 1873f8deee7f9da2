"""`flyball models`: the embedded engine's model files: what there is, fetching, removing."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from flyball.adapters.cli.running import run
from flyball.adapters.cli.shared import SHARED, Shared


def list_models(*, shared: Shared = SHARED) -> int:
    """List the models of the catalogue, and those that are on this disk.

    Args:
        shared: Options of all commands.
    """
    from flyball.adapters.cli.screen import out, write_json
    from flyball.models import DEFAULT, catalogue, installed, models_folder

    there = {record.name: record for record in installed()}
    rows: list[dict[str, Any]] = [
        {
            "name": model.name,
            "here": model.name in there,
            "default": model.name == DEFAULT.name,
            "size": model.size,
            "licence": model.licence,
            "context_window": model.context_window,
            "about": model.about,
            "repo": model.repo,
            "sha256": model.sha256,
        }
        for model in catalogue()
    ]
    known = {row["name"] for row in rows}
    rows += [
        {"name": record.name, "here": True, "default": False, "size": record.size, "sha256": record.sha256}
        for record in there.values()
        if record.name not in known
    ]
    if shared.json:
        write_json(rows)
        return 0
    out().print(_table(rows))
    out().print(f"kept in {models_folder()}", style="dim", soft_wrap=True)
    return 0


def pull_models(
    name: Annotated[str | None, Parameter(name="MODEL")] = None, /, *, shared: Shared = SHARED
) -> int:
    """Fetch a model's file; one that is there already is not fetched again.

    Args:
        name: A name of the catalogue, or hf:OWNER/REPO/FILE.gguf; without it, the default model.
        shared: Options of all commands.
    """
    from flyball.adapters.cli.fetching import fetch
    from flyball.adapters.cli.screen import err, write_json
    from flyball.models import DEFAULT

    wanted = name or DEFAULT.name
    path = run(fetch(wanted))
    if shared.json:
        write_json({"name": wanted, "path": str(path), "size": path.stat().st_size})
    else:
        err().print(f"✓ {wanted} is here: {path}", soft_wrap=True)
    return 0


def remove_models(name: Annotated[str, Parameter(name="MODEL")], /, *, shared: Shared = SHARED) -> int:
    """Remove a model's file from this disk.

    Args:
        name: Its name, as `flyball models list` shows it.
        shared: Options of all commands.
    """
    from flyball.adapters.cli.screen import err, write_json
    from flyball.models import remove

    record = remove(name)
    if shared.json:
        write_json({"name": record.name, "size": record.size, "sha256": record.sha256})
    else:
        err().print(f"✓ removed {record.name}: {record.size / 1e6:,.0f} MB are free again", soft_wrap=True)
    return 0


def _table(rows: list[dict[str, Any]]) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    table.add_column("")
    table.add_column("model", no_wrap=True)
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("licence", no_wrap=True)
    table.add_column("about")
    for row in rows:
        table.add_row(
            Text("✓", style="green") if row["here"] else Text("·", style="dim"),
            Text(row["name"], style="bold" if row["default"] else ""),
            f"{row['size'] / 1e6:,.0f} MB" if row["size"] else "",
            row.get("licence", ""),
            Text(row.get("about", ""), style="dim"),
        )
    return table
