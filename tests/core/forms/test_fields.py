"""Documents from bytes: taken as they are where nothing can be wrong with them, looked at where it can."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given

from flyball.core.encodable import MAX_DEPTH
from flyball.core.errors import InvalidMessage
from flyball.core.forms.fields import decoded, entered
from tests.strategies import json_values


@given(json_values)
def test_a_document_from_bytes_is_the_one_that_was_looked_at(value: Any) -> None:
    data = msgspec.json.encode(value)
    assert decoded(data, "x") == entered(msgspec.json.decode(data), "x")


def or_refused(read: Callable[[Any, str], Any], value: Any) -> Any:
    try:
        return read(value, "x")
    except InvalidMessage as refused:
        return refused.message


@pytest.mark.parametrize("depth", range(MAX_DEPTH - 4, MAX_DEPTH + 5))
def test_what_is_nested_too_deeply_is_refused_from_bytes_too(depth: int) -> None:
    data = b"[" * depth + b"]" * depth
    assert or_refused(decoded, data) == or_refused(entered, msgspec.json.decode(data))
    with pytest.raises(InvalidMessage):
        decoded(b'{"a":' * (depth + 10) + b"1" + b"}" * (depth + 10), "x")


def test_numbers_of_thousands_of_digits_are_refused_and_large_ones_are_kept() -> None:
    assert decoded(str(1 << 70).encode(), "x") == 1 << 70
    assert decoded(b"[" + str(-(1 << 64)).encode() + b"]", "x") == [-(1 << 64)]
    with pytest.raises(InvalidMessage):
        decoded(b'{"a":' + b"9" * 2000 + b"}", "x")
