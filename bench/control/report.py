"""What is printed: a table a set, and, for tasks that may be looked at, what went wrong.

Of held tasks only counts are shown, unless they are to be revealed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from bench.control.methods import Reply
from bench.control.scoring import right_fields
from bench.control.tally import Score, Tally, score, tally, wilson
from bench.control.tasks import Task, ToolTask, spellings

if TYPE_CHECKING:
    from rich.table import Table

TITLES = {
    "tool_choice": ("Tool choice", "arguments"),
    "extraction": ("Extraction", "fields"),
}
TARGETS = {"tool_choice": 0.85, "extraction": 0.90}
"""What the default model must be above, under a grammar, on the held half."""


class Outcome(Struct, frozen=True):
    """A reply with everything it belongs to."""

    model: str
    method: str
    task: Task
    reply: Reply

    @property
    def half(self) -> str:
        """`open` or `held`."""
        return "held" if self.task.held else "open"

    @property
    def score(self) -> Score:
        """What the reply is worth."""
        return score(self.task, self.reply)


class Row(Struct, frozen=True):
    """One line of a table."""

    group: str
    model: str
    method: str
    half: str
    tally: Tally


def rows(outcomes: Sequence[Outcome]) -> list[Row]:
    """The lines, in the order in which their first outcomes came."""
    return [
        Row(group, model, method, half, counts)
        for (group, model, method, half), counts in _tallied(
            outcomes, lambda one: (one.task.group, one.model, one.method, one.half)
        )
    ]


def tables(lines: Sequence[Row]) -> list[Table]:
    """A table for each set that has lines."""
    return [
        _table(group, [line for line in lines if line.group == group])
        for group in TITLES
        if any(line.group == group for line in lines)
    ]


def kinds(outcomes: Sequence[Outcome]) -> list[str]:
    """How each kind of task went: one line for each model and method."""
    told: dict[str, list[str]] = {}
    for (group, model, method, kind), counts in _tallied(
        outcomes, lambda one: (one.task.group, one.model, one.method, one.task.kind)
    ):
        told.setdefault(f"{group}, {model}, {method}", []).append(f"{kind} {counts.right}/{counts.tasks}")
    return [f"{about}: {', '.join(parts)}" for about, parts in told.items()]


def mistakes(outcomes: Iterable[Outcome]) -> list[str]:
    """What was asked, wanted and said, for each reply that is not wholly right."""
    return [
        _mistake(one) for one in outcomes if one.score.parts_right < one.score.parts or not one.score.right
    ]


def seen(outcomes: Sequence[Outcome], *, reveal: bool) -> list[Outcome]:
    """Those whose details may be shown."""
    return [one for one in outcomes if reveal or not one.task.held]


def missed(lines: Sequence[Row]) -> list[str]:
    """The targets that are not reached; one that no line is about is not reached either."""
    faults: list[str] = []
    for group, target in TARGETS.items():
        about = [one for one in lines if (one.group, one.method, one.half) == (group, "grammar", "held")]
        share = about[0].tally.right / about[0].tally.tasks if about else 0.0
        if share <= target:
            faults.append(f"{TITLES[group][0]} on the held half: {share:.0%}, to be above {target:.0%}")
    return faults


def as_json(outcomes: Sequence[Outcome], about: dict[str, Any], *, reveal: bool) -> dict[str, Any]:
    """Everything as JSON: the lines with their intervals, and the replies that may be looked at."""
    return {
        **about,
        "rows": [
            {**msgspec.to_builtins(line), "interval": wilson(line.tally.right, line.tally.tasks)}
            for line in rows(outcomes)
        ],
        "replies": [
            {
                "model": one.model,
                "method": one.method,
                "task": one.task.id,
                "kind": one.task.kind,
                "level": one.task.level,
                "score": msgspec.to_builtins(one.score),
                "reply": msgspec.to_builtins(one.reply),
            }
            for one in seen(outcomes, reveal=reveal)
        ],
    }


def share(right: int, of: int) -> str:
    """Such as `34/40 85%`."""
    return f"{right}/{of} {right / of:.0%}" if of else "0/0"


def interval(right: int, of: int) -> str:
    """Such as `71-93`, in percent."""
    low, high = wilson(right, of)
    return f"{100 * low:.0f}-{100 * high:.0f}"


def _table(group: str, lines: Sequence[Row]) -> Table:
    from rich.box import SIMPLE
    from rich.table import Table

    title, parts = TITLES[group]
    table = Table(title=title, title_justify="left", box=SIMPLE)
    for heading in ("model", "method", "half"):
        table.add_column(heading, no_wrap=True)
    for heading in ("valid", "right", "95%", parts, "cut", "s/task", "tokens/s", "agree"):
        table.add_column(heading, justify="right", no_wrap=True)
    for line in lines:
        counts = line.tally
        table.add_row(
            line.model,
            line.method,
            line.half,
            share(counts.valid, counts.tasks),
            share(counts.right, counts.tasks),
            interval(counts.right, counts.tasks),
            share(counts.parts_right, counts.parts),
            str(counts.cut),
            f"{counts.seconds:.2f}",
            f"{counts.speed:.1f}",
            "" if counts.confidence is None else f"{counts.confidence:.0%}",
        )
    return table


def _tallied(
    outcomes: Iterable[Outcome], key: Callable[[Outcome], tuple[str, str, str, str]]
) -> list[tuple[tuple[str, str, str, str], Tally]]:
    groups: dict[tuple[str, str, str, str], list[Outcome]] = {}
    for one in outcomes:
        groups.setdefault(key(one), []).append(one)
    return [(about, tally([(one.score, one.reply) for one in members])) for about, members in groups.items()]


def _mistake(one: Outcome) -> str:
    task, reply = one.task, one.reply
    if isinstance(task, ToolTask):
        wanted: Any = [{"tool": call.tool, "args": spellings(call)[0]} for call in task.calls]
        said: Any = msgspec.to_builtins(reply.calls)
        about = "wrong arguments" if one.score.right else "wrong tools"
    else:
        wanted, said = task.answer, reply.value
        about = ""
        if one.score.valid:
            about = ", ".join(name for name, right in right_fields(task, reply.value).items() if not right)
    about = about if one.score.valid else ("cut" if reply.cut else "not valid")
    return "\n".join(
        [
            f"{task.id}  ({one.model}, {one.method}, level {task.level}, {one.half}): {about}",
            f"  asked   {task.prompt!r}",
            f"  wanted  {json.dumps(wanted, ensure_ascii=False)}",
            f"  read    {json.dumps(said, ensure_ascii=False)}",
            f"  said    {reply.text!r:.400}",
        ]
    )
