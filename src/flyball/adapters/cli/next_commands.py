"""What may be done next with a run, as commands."""

from __future__ import annotations

from typing import Any, assert_never

from msgspec import Struct, to_builtins

from flyball.adapters.cli.naming import short
from flyball.orchestrate.projections.explanation import Explanation, Next


class Command(Struct, frozen=True):
    """A command, and what it is good for."""

    command: str
    what: str


def commands(told: Explanation) -> tuple[Command, ...]:
    """What may be done with a run that is explained."""
    return tuple([Command(_command(one, short(told.run)), one.what) for one in told.next])


def document(told: Explanation) -> dict[str, Any]:
    """An explanation as a document: what may be done next stands there as commands."""
    whole: dict[str, Any] = to_builtins(told)
    del whole["flow"]
    return {**whole, "next": to_builtins(commands(told))}


def _command(one: Next, run: str) -> str:
    match one.action:
        case "resume" | "retry":
            return f"flyball resume {run}"
        case "approve":
            return f"flyball resume {run} --approve"
        case "reject":
            return f'flyball resume {run} --reject "why"'
        case "answer":
            return f'flyball answer {run} {" ".join(one.calls)} "…"'
        case "replay":
            return f"flyball replay {run}"
        case "continue":
            return f"flyball chat --resume {run}"
        case "fork":
            return f"flyball fork {run} --at {one.turn} -m MODEL"
        case "explain":
            return f"flyball why {one.loop_id}"
        case _:
            assert_never(one.action)
