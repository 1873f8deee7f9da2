from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.errors import IdentityInvalid
from flyball.identity import base58

TEXTS = st.text("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz", max_size=100)


@given(st.binary(max_size=100))
def test_bytes_come_back(data: bytes) -> None:
    assert base58.decode(base58.encode(data)) == data


@given(TEXTS)
def test_each_text_is_the_only_one_of_its_bytes(text: str) -> None:
    assert base58.encode(base58.decode(text)) == text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        (b"Hello World!", "2NEpo7TZRRrLZSi2U"),
        (b"\0\0\x28\x7f\xb4\xcd", "11233QC4"),
    ],
)
def test_published_examples(data: bytes, text: str) -> None:
    assert base58.encode(data) == text
    assert base58.decode(text) == data


@pytest.mark.parametrize("text", ["0", "O", "I", "l", "a b", "ä", "1" * 2000])
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(IdentityInvalid):
        base58.decode(text)
