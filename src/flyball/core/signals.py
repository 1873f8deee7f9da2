"""What a person or a program may say to a running loop."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import force_setattr

from flyball.core.encodable import clean_text
from flyball.core.errors import UserError

NO_ANSWER = "none"
"""The `call_id` of a feedback that is about no answer: where one waits for approval, it does not fit."""


class SignalType(StrEnum):
    """SemStreams' seven signals, and gollem's detach."""

    CANCEL = "cancel"
    """Stop at once."""
    PAUSE = "pause"
    """Pause at the next checkpoint: what runs may finish, nothing new starts."""
    RESUME = "resume"
    """Go on."""
    APPROVE = "approve"
    """Let the waiting tool call (or all of them) run, or the answer that waits count."""
    REJECT = "reject"
    """Refuse it; the model reads the reason."""
    FEEDBACK = "feedback"
    """Say something to the model, without deciding anything."""
    RETRY = "retry"
    """Try a failed loop again."""
    DETACH = "detach"
    """Ask the tools that run to move their work to the background, and return."""


class Signal(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """One signal, with who sent it and why.

    `id` makes it safe to send twice. `call_id` names the tool call, or the answer, that is approved, rejected
    or detached; without it all that wait (or run) are meant. Of a feedback it is the answer that it sends
    back, where one waits; what was said before it did has `NO_ANSWER`.
    """

    type: SignalType
    id: str = ""
    by: str = ""
    text: str = ""
    call_id: str | None = None

    def __post_init__(self) -> None:
        if type(self.type) is not SignalType:
            try:
                force_setattr(self, "type", SignalType(self.type))
            except ValueError:
                known = ", ".join(SignalType)
                raise UserError(f"there is no signal {self.type!r}; there are: {known}") from None
        if not (self.text.isascii() and self.by.isascii()):
            # What a person types must not keep a loop from being recorded.
            force_setattr(self, "text", clean_text(self.text))
            force_setattr(self, "by", clean_text(self.by))
