"""What a person is shown of a message."""

from __future__ import annotations

import pytest

from flyball.core.messages import Audio, Content, Document, Image, Message, Role, Text, Thinking, user
from flyball.orchestrate.projections.words import words_of


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("look", "look"),
        (
            ["look", "a.py\n```\nx = 1\n```\n", "page: http://a"],
            "look\n\na.py\n```\nx = 1\n```\n\npage: http://a",
        ),
        (["look", Image("data:image/png;base64,AAAA")], "look\n\n[image image/png]"),
        ([Image("https://a/b.png")], "[image https://a/b.png]"),
        ([Audio("data:;base64,AAAA", "audio/wav")], "[audio audio/wav]"),
        (
            [Document("data:application/pdf;base64,AAAA", "application/pdf", "plan.pdf"), "?"],
            "[document plan.pdf application/pdf]\n\n?",
        ),
        (["", "\n"], ""),
    ],
)
def test_what_somebody_says_has_its_parts_apart(said: Content, shown: str) -> None:
    assert words_of(user(said)) == shown


def test_what_a_model_says_is_one_text() -> None:
    assert (
        words_of(Message(Role.ASSISTANT, (Text("It is "), Thinking("hm"), Text("raining."))))
        == "It is raining."
    )
