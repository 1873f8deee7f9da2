"""What the user said last, of a history that grows: the same as by looking at all of it."""

from __future__ import annotations

from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from flyball.core.messages import Message, Role, Text
from flyball.orchestrate.projections.trajectory import LastSaid, last_said

MESSAGES = st.builds(Message, st.sampled_from(list(Role)), st.tuples(st.builds(Text, st.sampled_from("abc"))))
CHANGES = st.lists(st.tuples(st.sampled_from(["append", "before", "last", "anew"]), MESSAGES), max_size=30)


@given(CHANGES)
def test_it_is_what_one_finds_by_looking_at_all_of_it(changes: list[tuple[str, Message]]) -> None:
    history: list[Message] = []
    said = LastSaid()
    for change, message in changes:
        if change == "append" or not history:
            history.append(message)
        elif change == "before":
            history.insert(0, Message(Role.SYSTEM, message.parts))
        elif change == "last":
            history[-1] = message
        else:
            history = [message]
        assert said(history) == last_said(history)


class Counted(list[Message]):
    """A history that counts how often a message of it is looked at."""

    looked = 0

    def __getitem__(self, index: Any) -> Any:
        self.looked += 1
        return cast("Any", super()).__getitem__(index)


def test_a_long_history_is_not_looked_through_each_time() -> None:
    history, said = Counted([Message(Role.USER, (Text("hello"),))]), LastSaid()
    for _ in range(1_000):
        history.append(Message(Role.ASSISTANT, (Text("well"),)))
        assert said(history) == "hello"
    assert history.looked < 10_000
