"""How a user names a run: its id, the beginning of it that no other has, or `last`.

A conversation's runs are numbered: talk-3f2a9c-2 is the second of the one that begins like that.

The runs under a run have ids that begin with its own, and are not meant by the beginning that they share, nor
by `last`: that is the newest that somebody began, and not another run.
"""

from __future__ import annotations

import re

from flyball.core.errors import LoopNotFound, UserError
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.projections.shortened import short

LAST = "last"
_OF_CONVERSATION = re.compile(r"(talk-[0-9a-f]{4,})(-[0-9]+)")


async def find_run(journal: Journal, name: str) -> str:
    """The id of the run that is meant.

    Raises:
        LoopNotFound: there is none; the message says which are near.
        UserError: several begin like that.
    """
    runs = await journal.loops()
    if name in runs:
        return name
    if name == LAST and runs:
        return await _last(journal, runs)
    found = [run for run in runs if name and (run.startswith(name) or _is_of_conversation(run, name))]
    above = min(found, key=len, default="")
    if found and all(run == above or run.startswith(f"{above}-") for run in found):
        return above
    if found:
        shown = ", ".join(found[:3])
        raise UserError(f"{len(found)} runs begin with {name!r}: give more of the id, such as {shown}")
    newest = f": the newest is {short(runs[0])}, and `flyball runs` lists them" if runs else ", nor any other"
    raise LoopNotFound(f"there is no run {name[:100]!r}{newest}", loop_id=name)


def _is_of_conversation(run: str, name: str) -> bool:
    """Whether a run is the one of that number, of a conversation whose beginning is named."""
    said, own = _OF_CONVERSATION.fullmatch(name), _OF_CONVERSATION.fullmatch(run)
    return said is not None and own is not None and own[1].startswith(said[1]) and own[2] == said[2]


async def _last(journal: Journal, runs: list[str]) -> str:
    for run in runs:
        events = await journal.read(run)
        if events and not getattr(events[0], "parent_loop_id", ""):
            return run
    return runs[0]
