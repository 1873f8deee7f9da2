"""RunSnapshot: a run at one moment, as data: to be kept, sent, looked at, changed, and gone on from.

Its fields and JSON keys are gollem's. `to_json` and `from_json` lose nothing; the bytes that gollem itself
reads and writes, in which messages have its form, are in `flyball.core.forms.gollem`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, TypeAlias, cast

from msgspec import MsgspecError, Struct, json
from msgspec.structs import replace

from flyball.core.carried import Carried
from flyball.core.errors import InvalidMessage
from flyball.core.history import check_history
from flyball.core.messages import Message, Role
from flyball.core.usage import RunUsage

Modifier: TypeAlias = Callable[[list[Message]], "Sequence[Message] | None"]
"""Changes messages: gives others, or changes the list that it is given and gives None."""


class RunSnapshot(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """What is needed to go on with a run: `agent.run(prompt, snapshot=snapshot)`.

    `messages` can be sent as they are: an answer whose calls were still open when it was taken is not among
    them, and `run_step` is the number of turns that they hold. Times are seconds since the epoch.
    """

    messages: tuple[Message, ...] = ()
    usage: RunUsage = RunUsage()
    last_input_tokens: int = 0
    retries: int = 0
    tool_retries: dict[str, int] | None = None
    run_id: str = ""
    parent_run_id: str = ""
    run_step: int = 0
    run_start_time: float | None = None
    prompt: str = ""
    tool_state: dict[str, Any] | None = None
    timestamp: float | None = None
    extra: dict[str, Any] | None = None

    def branch(self, modify: Modifier) -> RunSnapshot:
        """This snapshot with other messages, to go on from there; this one stays as it is.

        Raises:
            InvalidMessage: what came of it is no history that providers take; it says which message is wrong.
        """
        messages = list(self.messages)
        given = cast("object", modify(messages))
        changed: object = cast("object", messages) if given is None else given
        if not isinstance(changed, Sequence) or isinstance(changed, str | bytes):
            raise InvalidMessage(
                "the modifier of a branch gives messages, or None if it changed the list that it was given; "
                f"not {changed!r:.200}"
            )
        history = tuple(cast("Sequence[Message]", changed))
        check_history(history)
        return replace(
            self,
            messages=history,
            last_input_tokens=last_input_tokens(history),
            tool_state=deepcopy(self.tool_state),
        )

    @property
    def carried(self) -> Carried:
        """What a run that goes on from here takes over, besides the messages."""
        return Carried(
            self.run_id,
            self.parent_run_id,
            self.run_step,
            self.prompt,
            self.usage,
            self.retries,
            self.tool_retries or None,
            self.tool_state,
        )

    def to_json(self) -> bytes:
        """The snapshot as JSON; `from_json` gives the same one back."""
        return json.encode(self)

    @classmethod
    def from_json(cls, data: bytes | str) -> RunSnapshot:
        """A snapshot from what `to_json` gave.

        Raises:
            InvalidMessage: it is none; it says where it is wrong.
        """
        try:
            return json.decode(data, type=RunSnapshot)
        except (MsgspecError, UnicodeError, TypeError) as error:
            raise InvalidMessage(
                f"the snapshot cannot be read ({error}): give what RunSnapshot.to_json() gave; gollem's own "
                "are read by flyball.core.forms.gollem.unmarshal_snapshot"
            ) from error


def taken(
    history: Sequence[Message],
    carried: Carried,
    *,
    started_at: float,
    at: float | None,
) -> RunSnapshot:
    """A snapshot of a run with this history, as far as it can be gone on from."""
    messages = answered(history)
    return RunSnapshot(
        messages,
        carried.usage,
        last_input_tokens(messages),
        carried.retries,
        carried.tool_retries,
        carried.run_id,
        carried.parent_run_id,
        carried.step,
        started_at,
        carried.prompt,
        carried.tool_state,
        at,
    )


def answered(history: Sequence[Message]) -> tuple[Message, ...]:
    """A history without a last answer whose calls have no results yet: no provider takes that."""
    if history and history[-1].role is Role.ASSISTANT and history[-1].tool_calls:
        return tuple(history[:-1])
    return tuple(history)


def last_input_tokens(messages: Sequence[Message]) -> int:
    """How many tokens went into the last answer, as its provider counted them; 0 where none did."""
    for message in reversed(messages):
        if message.role is Role.ASSISTANT:
            return 0 if message.usage is None else message.usage.input_tokens
    return 0
