"""Copies that nothing can be changed through."""

from __future__ import annotations

from typing import Any, cast

from hypothesis import given
from msgspec import Struct

from flyball.core.apart import apart, messages_apart
from flyball.core.messages import Message, assistant, user
from tests.strategies import messages


def changeable(value: Any) -> list[int]:
    """The ids of all lists and dicts in a value."""
    inside: list[Any] = []
    if isinstance(value, Struct):
        inside = [getattr(value, name) for name in value.__struct_fields__]
    elif isinstance(value, dict):
        inside = list(cast("dict[str, Any]", value).values())
    elif isinstance(value, list | tuple):
        inside = list(cast("list[Any]", value))
    own = [id(cast("object", value))] if isinstance(value, dict | list) else []
    return [*own, *[one for item in inside for one in changeable(item)]]


@given(messages)
def test_copies_are_equal_and_share_nothing_that_can_be_changed(message: Message) -> None:
    for copy in (apart(message), *messages_apart([message])):
        assert copy == message
        assert set(changeable(copy)).isdisjoint(changeable(message))


@given(messages)
def test_what_holds_nothing_that_can_be_changed_is_not_copied(message: Message) -> None:
    copy = apart(message)
    assert (copy is message) == (not changeable(message))


def test_plain_messages_are_passed_as_they_are() -> None:
    said = (user("hi"), assistant("there"))
    assert all(one is other for one, other in zip(messages_apart(said), said, strict=True))
