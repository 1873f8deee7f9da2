"""What an answer keeps on its way into a history."""

from __future__ import annotations

from flyball.core.messages import Message, Role, Text, Thinking
from flyball.orchestrate.soundness import sound


def test_thoughts_that_only_their_provider_reads_are_kept() -> None:
    signed, opaque = Thinking("", "c2ln"), Thinking("", provider_data={"encrypted": "ZW5j"})
    message, notes = sound(Message(Role.ASSISTANT, (signed, opaque, Text("So."))))
    assert message.parts == (signed, opaque, Text("So."))
    assert notes == ()


def test_what_says_nothing_is_left_out() -> None:
    message, notes = sound(Message(Role.ASSISTANT, (Thinking(""), Text(""), Text("So."))))
    assert message.parts == (Text("So."),)
    assert notes == ()
