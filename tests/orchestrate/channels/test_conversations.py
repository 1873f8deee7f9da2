"""Which loop a conversation has come to."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.orchestrate.channels.conversations import Conversation


class Counted:
    """A journal of which only one thing is asked: how long loops are."""

    def __init__(self, talk: Conversation, loops: int) -> None:
        self._there = {talk.loop_id(number) for number in range(1, loops + 1)}
        self.questions = 0

    async def sizes(self, names: Sequence[str]) -> list[int]:
        self.questions += 1
        return [int(name in self._there) for name in names]


@given(st.integers(0, 5000))
def test_the_last_loop_is_found_by_few_questions(loops: int) -> None:
    talk = Conversation("cli/here/user:ann")
    journal = Counted(talk, loops)
    assert asyncio.run(talk.length(cast("Any", journal))) == loops
    assert journal.questions <= 7


@pytest.mark.parametrize("name", ["a", "cli/x/user:\ud800", "x" * 10_000])
def test_ids_are_plain_and_differ(name: str) -> None:
    one, two = Conversation(name), Conversation(f"{name}.")
    assert one.loop_id(1).replace("-", "").isalnum()
    assert len({one.loop_id(1), one.loop_id(2), two.loop_id(1)}) == 3
