"""The rows: what is measured, and by how many times flyball must be faster than the fastest peer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal["time", "memory", "import"]


class Row(NamedTuple):
    """One measurement. The fastest peer's figure must be `target` times flyball's; None means: only shown.

    Rows with the same `workload` do it in different ways: the fastest peer is the fastest by any of them.
    """

    name: str
    what: str
    target: float | None
    workload: str
    kind: Kind = "time"

    @property
    def unit(self) -> str:
        """What its figures count."""
        return "bytes" if self.kind == "memory" else "ns"


ROWS: tuple[Row, ...] = (
    Row("W1", "text", 15, "W1"),
    Row("W2", "tools: ten turns", 15, "W2"),
    Row("W3", "typed: native", 8, "typed"),
    Row("W3t", "typed: output tool", 8, "typed"),
    Row("W4", "stream: 1,000 deltas", 8, "W4"),
    Row("W5", "1,000 runs at once", 8, "W5"),
    Row("W6", "after 2,000 messages", 15, "W6"),
    Row("memory", "of W5, at the peak", None, "memory", "memory"),
    Row("import", "of the framework", None, "import", "import"),
)


def chosen_rows(names: Sequence[str]) -> list[Row]:
    """The rows that are asked for, by name in any case; none means all. W3 and W3t are asked for together.

    Raises:
        ValueError: there is no such row; the message names those there are.
    """
    wanted = {name.lower() for name in names}
    if unknown := sorted(wanted - {row.name.lower() for row in ROWS}):
        raise ValueError(f"there is no row {unknown[0]!r}; there are {', '.join(row.name for row in ROWS)}")
    workloads = {row.workload for row in ROWS if row.name.lower() in wanted}
    return [row for row in ROWS if row.workload in workloads] if wanted else list(ROWS)
