"""What is printed."""

# ruff: noqa: RUF001 - the multiplication sign is meant

from __future__ import annotations

import pytest
from bench.figures import Figures
from bench.rows import Row
from bench.table import Outcome, amount, table, verdict
from inline_snapshot import snapshot

FAST = Outcome(Row("W1", "a reply", 15, "runs:w1"), Figures(1_000, 14_500))
SLOW = Outcome(Row("W2t", "ten turns, timed", 7, "runs:w2t"), Figures(50_000, 360_000))
SHOWN = Outcome(Row("W5", "many", None, "runs:w5"), Figures(40e6, 2.1e9))
BYTES = Outcome(Row("journal", "bytes", 1.1, "growth:journal"), Figures(440, 484, "bytes"))
VOID = Outcome(Row("W3", "typed", 2.5, "runs:w3"), None, "the usage is 1, not 2")


def test_the_columns_are_aligned() -> None:
    assert table([FAST, SLOW, SHOWN, BYTES, VOID]) == snapshot("""\
row      what                 base  flyball   ratio  budget
W1       a reply           1.00 µs  14.5 µs  14.50×     15×  ✓
W2t      ten turns, timed  50.0 µs   360 µs   7.20×      7×  ✗
W5       many              40.0 ms   2.10 s  52.50×
journal  bytes               440 B    484 B   1.10×    1.1×  ✓
W3       typed                                         2.5×  VOID\
""")


def test_colours_are_only_there_when_asked_for() -> None:
    assert "\033" not in table([FAST, SLOW, VOID])
    coloured = table([FAST, SLOW, SHOWN, VOID], colour=True).splitlines()
    assert coloured[1].endswith("\033[32m✓\033[0m")
    assert coloured[2].endswith("\033[31m✗\033[0m")
    assert "\033" not in coloured[3]
    assert coloured[4].endswith("\033[31;1mVOID\033[0m")


def test_the_verdict_names_what_missed_and_what_is_void() -> None:
    assert verdict([FAST, SHOWN, BYTES]) == "all within budget"
    assert verdict([FAST, SLOW, VOID]) == ("void: W3: the usage is 1, not 2\nover budget: W2t (7.20× of 7×)")


def test_a_ratio_at_its_budget_is_within_it() -> None:
    assert BYTES.ratio == pytest.approx(1.1)
    assert Outcome(FAST.row, Figures(1, 15)).verdict == "within"
    assert Outcome(FAST.row, Figures(1, 15.01)).verdict == "over"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.4, "ns", "0.40 ns"),
        (999, "ns", "999 ns"),
        (1_150, "ns", "1.15 µs"),
        (25_040, "ns", "25.0 µs"),
        (545_300, "ns", "545 µs"),
        (5_400_000, "ns", "5.40 ms"),
        (2e9, "ns", "2.00 s"),
        (440, "bytes", "440 B"),
        (1_600, "bytes", "1.60 kB"),
        (8.38e6, "bytes", "8.38 MB"),
    ],
)
def test_amounts_have_three_digits_that_count(value: float, unit: str, text: str) -> None:
    assert amount(value, unit) == text
