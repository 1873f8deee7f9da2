"""Names with their articles."""

from __future__ import annotations

import pytest

from flyball.core.article import a
from flyball.core.errors import InvalidMessage
from flyball.core.messages import Image, Message, Role


@pytest.mark.parametrize("name", ["a user", "a tool", "an assistant", "an Image", "an attachment", "a "])
def test_a_name_has_its_article(name: str) -> None:
    assert a(name.partition(" ")[2]) == name


def test_messages_have_it() -> None:
    with pytest.raises(InvalidMessage, match="a tool message cannot carry an Image part"):
        Message(Role.TOOL, (Image("https://a/b"),)).check()
