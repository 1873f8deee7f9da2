"""LoopQuery: which loops are wanted, and whether one of them is; LoopPage: what was found. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from msgspec import Struct

from flyball.core.errors import InvalidRequest
from flyball.core.events import Stage
from flyball.orchestrate.projections.summary import LoopSummary
from flyball.orchestrate.standing import DEFERRED, INTERRUPTED

MOST = 200
STAGES = frozenset({*map(str, Stage), DEFERRED, INTERRUPTED, ""})
"""How a loop may stand; with nothing it cannot be read."""


class LoopQuery(Struct, frozen=True):
    """Which loops are wanted. What is left out does not matter; what is given must all hold.

    - `text`: words that must all be found, without regard to case, in the id, the agent, the model, the
      prompt, the (shortened) answer or the error.
    - `stage`: one of these, as a summary has it; `""` is that of a loop that cannot be read.
    - `agent`, `model`, `session_id`, `user_id`, `channel`: exactly this one.
    - `since`, `until`: begun at this time or later, and before that time (seconds since the epoch).
    - `roots_only`: no loops that were begun under others.
    - `limit`: as many of them at most, from 1 to 200. `cursor`: the `next` of the page before.
    """

    text: str = ""
    stage: tuple[str, ...] = ()
    agent: str = ""
    model: str = ""
    session_id: str = ""
    since: float | None = None
    until: float | None = None
    roots_only: bool = False
    limit: int = 50
    cursor: str = ""
    user_id: str = ""
    channel: str = ""


class LoopPage(Struct, frozen=True):
    """Loops, the newest first. `next` is the cursor of the page after it, and empty if there is none."""

    loops: tuple[LoopSummary, ...]
    next: str = ""


def checked(query: LoopQuery) -> LoopQuery:
    """A query that can be asked.

    Raises:
        InvalidRequest: it cannot; the error names the field.
    """
    limit = cast("Any", query.limit)
    if type(limit) is not int or not 1 <= limit <= MOST:
        raise InvalidRequest(f"limit={limit!r}: give a number from 1 to {MOST}", field="limit")
    stages = cast("Any", query.stage)
    if not isinstance(stages, tuple | list) or not STAGES.issuperset(cast("tuple[str, ...]", stages)):
        names = ", ".join(sorted(STAGES - {""}))
        raise InvalidRequest(f"stage={stages!r}: give some of {names}", field="stage")
    for name in ("since", "until"):
        time = getattr(query, name)
        if time is not None and not (type(time) in (int, float) and time == time):  # noqa: PLR0124 - not NaN
            raise InvalidRequest(f"{name}={time!r}: give seconds since the epoch", field=name)
    return query


def matcher(query: LoopQuery) -> Callable[[LoopSummary], bool]:
    """Whether a loop is wanted."""
    words = query.text.casefold().split()

    def wanted(one: LoopSummary) -> bool:
        return (
            (not query.stage or one.stage in query.stage)
            and (not query.agent or one.agent == query.agent)
            and (not query.model or one.model == query.model)
            and (not query.session_id or one.session_id == query.session_id)
            and (not query.user_id or one.user_id == query.user_id)
            and (not query.channel or one.channel == query.channel)
            and (query.since is None or one.started_at >= query.since)
            and (query.until is None or one.started_at < query.until)
            and not (query.roots_only and one.parent_loop_id)
            and (not words or _has(one, words))
        )

    return wanted


def _has(one: LoopSummary, words: list[str]) -> bool:
    said = "\n".join((one.loop_id, one.agent, one.model, one.prompt, one.answer, one.error)).casefold()
    return all(word in said for word in words)
