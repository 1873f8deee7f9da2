"""What middleware did around a model call, written down: in what its requests differ from the loop's own.

Only what differs is recorded, because all else follows from the journal. A call that went to the model once
and as the loop made it leaves nothing here.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, UnsetType

from flyball.core.compaction import ContextCompaction
from flyball.core.edits import Edit
from flyball.core.settings import ModelSettings
from flyball.core.tools import ToolChoice, ToolDefinition


class Sent(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True, gc=False):
    """In what a request that reached the model differs from the one that the loop made.

    `edits` are of its messages. `tools` are all that were on offer: by name those that the loop's request
    has, whole those that it has not, or has otherwise. `rest` holds what else was changed, by the names of
    the request's fields. `by` are the middlewares that changed something, the outermost first; `times` is
    how often in a row it was sent.
    """

    edits: tuple[Edit, ...] = ()
    settings: ModelSettings | None = None
    tools: tuple[str | ToolDefinition, ...] | None = None
    tool_choice: ToolChoice | UnsetType | None = UNSET
    rest: dict[str, Any] | None = None
    by: tuple[str, ...] = ()
    times: int = 1


class Around(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True, gc=False):
    """What middleware did around one call of the loop's.

    `sent` are the requests that reached the model, in the order in which they began; none, where it was not
    called: then `skipped` names the middleware that answered, or failed, in its place. `compactions` say how
    much shorter a middleware made what it sent.

    `fresh` says that the edits are against the messages of the loop's request, which is all that whoever
    makes a call knows. As it is recorded they are against what reached the model last, with what is new
    since: a middleware that changes the same old messages each time is not written down each time.
    """

    sent: tuple[Sent, ...] = ()
    skipped: str = ""
    fresh: bool = False
    compactions: tuple[ContextCompaction, ...] = ()


def note(error: BaseException, around: Around | None) -> None:
    """Leave on an error what was done around the call that it ended."""
    error.__dict__["around"] = around


def noted(of: object) -> Around | None:
    """What was done around a call, told by its error, or by its stream when that has ended."""
    found = getattr(of, "around", None)
    return found if type(found) is Around else None
