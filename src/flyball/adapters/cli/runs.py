"""`flyball runs`: what is recorded, as a table."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from msgspec import Struct, to_builtins

from flyball.adapters.cli.cluster import CLUSTER, Cluster
from flyball.adapters.cli.running import run
from flyball.adapters.cli.shared import SHARED, Shared
from flyball.core.errors import UserError
from flyball.core.events import Stage
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.standing import DEFERRED, INTERRUPTED

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from flyball.observe.run_cost import RunCost
    from flyball.orchestrate.projections.summary import LoopSummary

_COLOURS: dict[str, str] = {
    DEFERRED: "yellow",
    INTERRUPTED: "yellow",
    Stage.COMPLETE: "green",
    Stage.FAILED: "red",
    Stage.CANCELLED: "yellow",
    Stage.PAUSED: "yellow",
    Stage.AWAITING_APPROVAL: "yellow",
}


class Line(Struct, frozen=True):
    """A run in a few words: a `LoopSummary`, as it is listed.

    `stage` is a `Stage`, `deferred` or `interrupted`, `error` a code of the taxonomy; `input` and `output`
    are tokens. `waits` are the calls of runs under it that wait for somebody. `cost` is None where no price
    is meant, or nobody here knows any.
    """

    run: str
    at: float
    agent: str
    model: str
    stage: str
    turns: int
    input: int
    output: int
    prompt: str
    error: str = ""
    waits: tuple[str, ...] = ()
    cost: RunCost | None = None


def runs(
    *,
    failed: bool = False,
    limit: Annotated[int, Parameter(name=["--limit", "-n"], show_default=True)] = 20,
    cluster: Cluster = CLUSTER,
    shared: Shared = SHARED,
) -> int:
    """List the runs that are recorded, the newest first.

    Args:
        failed: Only those that failed or were cancelled.
        limit: How many at most; 0 for all.
        cluster: The NATS server whose runs are listed; without it, those of this user's journal.
        shared: Options of all commands.
    """
    if limit < 0:
        raise UserError(f"--limit {limit}: give a number from 0")
    return run(_runs(cluster, shared, failed=failed, limit=limit))


async def _runs(cluster: Cluster, shared: Shared, *, failed: bool, limit: int) -> int:
    from flyball.adapters.cli.finding import listed, others
    from flyball.adapters.cli.screen import err, out, write_json

    found: list[Line] = []
    async with listed(cluster, shared) as (journal, place):
        for loop_id in [] if journal is None else await journal.loops():
            assert journal is not None, "it has loops"
            one = await line_of(journal, loop_id)
            if not failed or one.stage in (Stage.FAILED, Stage.CANCELLED, ""):
                found.append(one)
            if limit and len(found) == limit:
                break
    if shared.json:
        write_json(to_builtins(found))
    elif found:
        out().print(table_of(found, out().width))
    else:
        which = "no run has failed" if failed else f"no runs are recorded in {place}"
        more = others(cluster, shared) or ("" if failed or cluster.named else 'flyball ask "…" makes one')
        err().print(f"{which}: {more}" if more else which, style="dim", soft_wrap=True)
    return 0


async def line_of(journal: Journal, loop_id: str) -> Line:
    """A run in a few words; of one that cannot be read, why."""
    from flyball.orchestrate.projections.summary import summary_of

    return line(await summary_of(journal, loop_id))


def line(told: LoopSummary) -> Line:
    """A summary as it is listed."""
    is_flow = told.kind == "flow"  # its model and its cost are those of the runs under it
    return Line(
        told.loop_id,
        told.started_at,
        told.agent,
        "" if is_flow else told.model,
        told.stage,
        told.turns,
        told.usage.input_tokens,
        told.usage.output_tokens,
        told.prompt,
        told.error,
        told.waits,
        told.cost,
    )


def table_of(lines: list[Line], width: int) -> Table:
    """The runs as a table that fits a width: the prompt is cut, and where room is short, more is left out."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from flyball.adapters.cli.screen import one_line

    names = ["run", "when", "model", "stage", "turns", "tokens"]
    if any(line.cost is not None for line in lines):
        names.append("cost")
    if width < 100:
        names = ["run", "model", "stage"] if width >= 72 else ["run", "stage"]
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold", expand=True)
    cells = [_cells(line, names) for line in lines]
    for name in names:
        widest = max([len(name), *[row[name].cell_len for row in cells]])
        table.add_column(
            name,
            justify="right" if name in ("turns", "tokens", "cost") else "left",
            no_wrap=True,
            width=widest,
        )
    table.add_column("prompt", no_wrap=True, overflow="ellipsis", ratio=1)
    for line, row in zip(lines, cells, strict=True):
        table.add_row(*[row[name] for name in names], Text(one_line(line.prompt, 300)))
    return table


def _cells(line: Line, names: list[str]) -> dict[str, Text]:
    from rich.text import Text

    from flyball.adapters.cli.naming import short
    from flyball.adapters.cli.screen import one_line

    named = [name for name in (line.agent, line.model) if name and name != "agent"]
    model = " · ".join(named)
    colour = _COLOURS.get(line.stage, "cyan") if line.stage else "red"
    tokens = f"{line.input} → {line.output}" if line.input or line.output else ""
    cells = {
        "run": Text(short(line.run), style="cyan"),
        "when": Text(_when(line.at), style="dim"),
        "model": Text(one_line(model, 24)),
        "stage": Text(line.stage or "unreadable", style=colour),
        "turns": Text(str(line.turns)),
        "tokens": Text(tokens),
        "cost": Text("" if line.cost is None else "unknown" if line.cost.total is None else str(line.cost)),
    }
    return {name: cells[name] for name in names}


def _when(at: float) -> str:
    """When it was, in the shortest way that is clear."""
    if not at:
        return ""
    then, now = datetime.fromtimestamp(at), datetime.now()
    if then.date() == now.date():
        return then.strftime("%H:%M:%S")
    return then.strftime("%d %b %H:%M" if then.year == now.year else "%d %b %Y")
