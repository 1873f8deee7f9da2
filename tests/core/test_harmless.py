"""Text of others: no character of it is an order to a terminal, or hidden from who reads it."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.harmless import harmless

NASTY = st.text(
    st.one_of(st.characters(categories=["Cc", "Cf", "Zl", "Zp"]), st.sampled_from("\x1b\u202e\u200dé👩a\r\n"))
)


def hidden(text: str) -> list[str]:
    """The characters that no text may have which is shown."""
    return [
        one
        for one in text
        if one not in "\n\t\u200c\u200d" and unicodedata.category(one) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    ]


@given(st.one_of(st.text(), NASTY))
def test_nothing_is_left_that_is_an_order_or_hidden(text: str) -> None:
    shown = harmless(text)
    assert not hidden(shown)
    assert "\r" not in shown
    assert harmless(shown) == shown


def test_no_character_of_unicode_comes_through() -> None:
    everything = "".join([chr(code) for code in range(0x110000)])
    assert not hidden(harmless(everything))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2Jgone\x07", "␛[2Jgone␇"),
        ("a\x00b\x7fc\x9bd", "a␀b␡c⟨U+009B⟩d"),
        ("abc\u202etxt.exe", "abc⟨U+202E⟩txt.exe"),
        ("pay\u200bpal", "pay⟨U+200B⟩pal"),
        ("one\r\ntwo\rthree", "one\ntwo␍three"),
        ("\ud800", "\ufffd"),
        ("tag\U000e0041", "tag⟨U+E0041⟩"),
        ("plain\ttext\nof two lines", "plain\ttext\nof two lines"),
        ("\u0645\u06cc\u200c\u062e 👩\u200d🔬", "\u0645\u06cc\u200c\u062e 👩\u200d🔬"),
        ("a\u200db é\u200d\u200dé", "a⟨U+200D⟩b é⟨U+200D⟩⟨U+200D⟩é"),
    ],
)
def test_examples(text: str, shown: str) -> None:
    assert harmless(text) == shown
