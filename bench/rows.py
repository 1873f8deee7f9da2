"""The rows: what is measured, what it is held against, and where the measuring stands.

A row's function takes the effort and gives its figures. It is imported and called in a fresh process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Row(NamedTuple):
    """One measurement. `where` is `module:function` in this package; `budget` the highest ratio allowed.

    `processes` is how many it is measured in: how fast one is depends a little on where its memory lies,
    so what is judged by microseconds is tried in several, and the lowest figures count.
    """

    name: str
    what: str
    budget: float | None
    where: str
    processes: int = 1


ROWS: tuple[Row, ...] = (
    Row("W1", "one prompt, one text reply", 15, "runs:w1", 3),
    Row("W2", "ten tool turns", 5, "runs:w2", 3),
    Row("W2t", "ten tool turns, a time-out on each", 7, "runs:w2t", 3),
    Row("W3", "typed output, 6 fields, 20 objects", 2.5, "runs:w3", 3),
    Row("W3t", "the same through the output tool", 2.5, "runs:w3t", 3),
    Row("W4", "stream of 1,000 deltas", 5, "runs:w4", 3),
    Row("W5", "1,000 three-tool runs at once", None, "runs:w5", 3),
    Row("W5-mem", "  their memory, as Python counts it", 2.5, "memory:traced"),
    Row("W5-rss", "  their memory, as the system counts it", 2.5, "memory:resident"),
    Row("W6", "one reply after 2,000 messages", None, "runs:w6", 3),
    Row("import", "from flyball import Agent, tool", 1.5, "startup:imports"),
    Row("sqlite", "append beside INSERT, synchronous=normal", 2, "storage:normal", 3),
    Row("sqlite-full", "append beside INSERT, synchronous=full", 2, "storage:full"),
    Row("turns", "a turn of 200 beside one of 20", 1.2, "growth:turns", 3),
    Row("deltas", "a delta of 10,000 beside one of 1,000", 1.2, "growth:deltas", 3),
    Row("journal", "bytes a turn, 200 turns beside 20", 1.1, "growth:journal"),
)


def chosen(names: Sequence[str]) -> list[Row]:
    """The rows that are asked for: by name, in any case, or by what stands before a dash; none means all.

    Raises:
        ValueError: there is no such row; the message names those there are.
    """
    wanted = {name.lower() for name in names}
    rows = [row for row in ROWS if {row.name.lower(), row.name.lower().split("-")[0]} & wanted]
    known = {key for row in rows for key in (row.name.lower(), row.name.lower().split("-")[0])}
    if unknown := sorted(wanted - known):
        raise ValueError(f"there is no row {unknown[0]!r}; there are {', '.join(row.name for row in ROWS)}")
    return rows if wanted else list(ROWS)
