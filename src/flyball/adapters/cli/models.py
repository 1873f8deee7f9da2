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
    out().print(_table(rows, out().width))
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

    wanted = DEFAULT.name if name is None else _as_file(name)
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

    record = remove(_as_file(name))
    if shared.json:
        write_json({"name": record.name, "size": record.size, "sha256": record.sha256})
    else:
        err().print(f"✓ removed {record.name}: {_size(record.size)} are free again", soft_wrap=True)
    return 0


def _as_file(name: str) -> str:
    """How a model's file is named, where it may have been named as a model string: local, local:NAME."""
    from flyball.adapters.cli.fetching import LOCAL
    from flyball.models import DEFAULT

    return DEFAULT.name if name == LOCAL else name.removeprefix(f"{LOCAL}:")


def _table(rows: list[dict[str, Any]], width: int) -> Any:
    """The models as a table; in a narrow place without what is about them, and without their licences."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    names = ["", "model", "size", "licence", "about"][: 5 if width >= 80 else 4 if width >= 60 else 3]
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    least = {"": 1, "size": 8, "licence": 10, "about": 20}
    for name in names:  # a name is folded, never cut: it is what one types
        table.add_column(
            name, justify="right" if name == "size" else "left", overflow="fold", min_width=least.get(name)
        )
    for row in rows:
        cells = {
            "": Text("✓", style="green") if row["here"] else Text("·", style="dim"),
            "model": Text(row["name"], style="bold" if row["default"] else ""),
            "size": _size(row["size"]),
            "licence": row.get("licence", ""),
            "about": Text(row.get("about", ""), style="dim"),
        }
        table.add_row(*[cells[name] for name in names])
    return table


def _size(size: int) -> str:
    """A size for people; of a small file, too."""
    if size >= 1e6:
        return f"{size / 1e6:,.0f} MB"
    return f"{size / 1e3:,.0f} kB" if size >= 1e3 else f"{size} B" if size else ""
