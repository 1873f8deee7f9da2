"""UserSignal and SignalMessage: what a person, or a program, says to a running loop.

Both say what our `Signal` says, and beside it which loop is meant and where it came from.
"""

from __future__ import annotations

from typing import Any, ClassVar, cast

from flyball.core.errors import InvalidMessage
from flyball.core.forms.fields import filled
from flyball.core.forms.semstreams.keyed import Always, Payload
from flyball.core.forms.semstreams.kinds import Anything, Moment
from flyball.core.forms.semstreams.types import Category
from flyball.core.messages import JSON
from flyball.core.signals import Signal, SignalType

SEVEN = tuple([kind for kind in SignalType if kind is not SignalType.DETACH])
"""The signals that SemStreams has. The eighth, detach, is gollem's, and has no form here."""
_TEXTS = ("text", "reason", "feedback", "message", "comment")
"""Under which keys of its payload a signal may carry what it says; we write the first."""


class UserSignal(Payload, frozen=True, kw_only=True):
    """A signal of a user's. Its payload is what is said: text, or an object that may name a tool call."""

    NAME: ClassVar[str] = Category.SIGNAL

    signal_id: Always[str] = ""
    type: Always[str] = ""
    loop_id: Always[str] = ""
    user_id: Always[str] = ""
    channel_type: Always[str] = ""
    channel_id: Always[str] = ""
    payload: Anything = None
    timestamp: Always[Moment] = None

    @classmethod
    def of(
        cls,
        signal: Signal,
        loop_id: str,
        *,
        at: float | None = None,
        channel_type: str = "",
        channel_id: str = "",
    ) -> UserSignal:
        """Our signal to a loop. It is valid if the signal has an id and says by whom it is."""
        said: JSON = signal.text or None
        if signal.call_id is not None:
            said = filled(text=signal.text) | {"call_id": signal.call_id}
        return cls(
            signal_id=signal.id,
            type=str(signal.type),
            loop_id=loop_id,
            user_id=signal.by,
            channel_type=channel_type,
            channel_id=channel_id,
            payload=said,
            timestamp=at,
        )

    @property
    def signal(self) -> Signal:
        """The same as our signal.

        Raises:
            InvalidMessage: there is no such signal.
        """
        self.require_one_of("type", SEVEN)
        text, call_id = _said(self.payload)
        return Signal(SignalType(self.type), self.signal_id, self.user_id, text, call_id)

    def validate(self) -> None:
        """Check that it has an id, a type, a loop and a user; raises InvalidMessage."""
        self.require("signal_id")
        self.require_one_of("type", SEVEN)
        self.require("loop_id", "user_id")


class SignalMessage(Payload, frozen=True, kw_only=True):
    """The short form of a signal: it has no id, so that it is taken as often as it comes."""

    NAME: ClassVar[str] = Category.SIGNAL_MESSAGE

    loop_id: Always[str] = ""
    type: Always[str] = ""
    reason: Always[str] = ""
    timestamp: Always[Moment] = None

    @property
    def signal(self) -> Signal:
        """The same as our signal.

        Raises:
            InvalidMessage: there is no such signal.
        """
        self.require_one_of("type", SEVEN)
        return Signal(SignalType(self.type), text=self.reason)

    def validate(self) -> None:
        """Check that it has a type and a loop; raises InvalidMessage."""
        self.require_one_of("type", SEVEN)
        self.require("loop_id")


def _said(payload: JSON) -> tuple[str, str | None]:
    """The text of a signal's payload, and the tool call that it names.

    Raises:
        InvalidMessage: a text or the call's id is something else than text.
    """
    if payload is None or isinstance(payload, str):
        return payload or "", None
    said = cast("dict[str, Any]", payload) if isinstance(payload, dict) else {}
    found = [said[key] for key in _TEXTS if said.get(key)]
    text, call_id = (found[0] if found else ""), said.get("call_id") or None
    if not isinstance(text, str) or not isinstance(call_id, str | None):
        raise InvalidMessage(
            f"payload in a signal should say its text and its call_id as text: {payload!r:.200}",
            field="payload",
            where="signal.payload",
        )
    return text, call_id
