"""The parts below the schemas: trees, sets, patterns, lengths, and large counts in print."""

from __future__ import annotations

import re
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.constraint.grammar import checking
from flyball.constraint.grammar.automaton import derivative, matches, nullable
from flyball.constraint.grammar.charset import ANY, common, of, united, without
from flyball.constraint.grammar.lengths import length, within
from flyball.constraint.grammar.pattern import PatternError, pattern_tree
from flyball.constraint.grammar.printing import LONGEST, print_grammar
from flyball.constraint.grammar.tree import (
    EMPTY,
    NOTHING,
    Chars,
    Literal,
    Ref,
    Repeat,
    Rules,
    Sequence,
    choice,
    optional,
    repeat,
    sequence,
)
from tests.constraint.grammar.oracle import Oracle
from tests.constraint.grammar.schemas import PATTERNS

POINTS = st.sets(st.integers(0, 40), max_size=20)


def _set(points: set[int]) -> tuple[tuple[int, int], ...]:
    return united((point, point) for point in points)


def _points(ranges: tuple[tuple[int, int], ...]) -> set[int]:
    return {point for low, high in ranges for point in range(low, high + 1)}


@given(POINTS, POINTS)
def test_sets_are_sets(one: set[int], other: set[int]) -> None:
    assert _points(_set(one)) == one
    assert _points(without(_set(one), _set(other))) == one - other
    assert _points(common(_set(one), _set(other))) == one & other
    assert _points(united([*_set(one), *_set(other)])) == one | other


def test_trees_stay_simple() -> None:
    a, b = Literal("a"), Literal("b")
    assert sequence(a, EMPTY, b) == Literal("ab")
    assert sequence() == EMPTY
    assert sequence(a, NOTHING) == NOTHING
    assert choice(a, NOTHING, choice(b, a)) == choice(a, b)
    assert choice() == NOTHING
    assert repeat(a, 1, 1) == a
    assert repeat(a, 2, 1) == NOTHING
    assert repeat(NOTHING, 0, 3) == optional(NOTHING) == EMPTY
    assert repeat(NOTHING, 1, 3) == NOTHING
    assert repeat(EMPTY, 0, 3) == repeat(a, 0, 0) == EMPTY


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_mean_what_they_mean_to_others(pattern: str) -> None:
    @given(st.text(st.sampled_from('abcfoxzXY019-._"\\\t\n ne dlsrt'), max_size=10))
    def check(text: str) -> None:
        found = re.search(pattern.replace("$", r"\Z"), text, re.ASCII) is not None
        assert matches(pattern_tree(pattern), text) == found

    check()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_find_what_they_describe(pattern: str) -> None:
    @given(st.from_regex(pattern.replace("$", r"\Z"), alphabet=st.characters(codec="ascii")))
    def check(text: str) -> None:
        assert matches(pattern_tree(pattern), text)

    check()


@pytest.mark.parametrize(
    "pattern",
    ["a)", "(a", "(?<x", "(?i)a", "a**", "a{2}{3}", "a{3,2}", "[z-a]", "[\\d-z]", "[a", "[]", "\\", "\\q",
     "\\xg1", "\\u12", "\\ud800", "]", "x}", "^*", "a$b", "[a&&b]", "\\-"],
)  # fmt: skip
def test_what_is_no_pattern_or_not_taken(pattern: str) -> None:
    with pytest.raises(PatternError):
        pattern_tree(pattern)


@pytest.mark.parametrize(
    ("pattern", "low", "high", "fits"),
    [
        ("^[a-z]+$", 2, 5, (2, 5)),
        ("^x[a-z]*$", 0, 4, (1, 4)),
        ("^(?:a{1,9}|[0-9]{3})$", 2, 4, (2, 4)),
        ("^abc$", 0, 2, (0, 0)),
        ("^[a-z]{3}$", 3, None, (3, 3)),
    ],
)
def test_lengths_that_the_shape_shows(
    pattern: str, low: int, high: int | None, fits: tuple[int, int]
) -> None:
    tree = within(pattern_tree(pattern), low, high)
    assert tree is not None
    assert length(tree) == fits


@pytest.mark.parametrize("pattern", ["^a*b*$", "^(?:ab)*$", "^(?:a*b*|c)$"])
def test_lengths_that_it_does_not_show(pattern: str) -> None:
    assert within(pattern_tree(pattern), 0, 5) is None


def test_rules_are_not_looked_into() -> None:
    for look in (nullable, length, partial(derivative, point=0x61)):
        with pytest.raises(TypeError, match="rule x"):
            look(Ref("x"))


COUNTS = [
    (0, 1),
    (0, 5),
    (3, 3),
    (1, None),
    (0, None),
    (2, None),
    (0, LONGEST + 1),
    (LONGEST, LONGEST + 2),
    (5_000, 5_000),
    (4_000, 9_001),
    (0, 100_000),
    (4_000, None),
]


@pytest.mark.parametrize(("low", "high"), COUNTS)
def test_counts_are_exact_however_large(low: int, high: int | None) -> None:
    grammar = print_grammar(
        {
            "root": sequence(
                Literal("<"), Repeat(choice(Literal("ab"), Chars(of("c"))), low, high), Literal(">")
            )
        }
    )
    checking.check_grammar(grammar)
    assert len(grammar) < 8_000
    oracle = Oracle.of_gbnf(grammar)
    for count in {
        0,
        1,
        low - 1,
        low,
        low + 1,
        *([high - 1, high, high + 1] if high is not None else [low + 3_000]),
    }:
        if 0 <= count < 12_000:
            fits = low <= count and (high is None or count <= high)
            assert oracle.accepts("<" + "c" * count + ">") == fits, count


def test_characters_are_printed_so_that_they_are_read_again() -> None:
    text = "a\"\\\n\r\t\x00\x7f\x85é\u2028\ufeff😀[]^-#'`"
    rules: Rules = {"root": Sequence((Literal(text), Chars(of(']^-\\"[a\n😀é'))))}
    oracle = Oracle.of_gbnf(print_grammar(rules))
    for char in ']^-\\"[a\n😀é':
        assert oracle.accepts(text + char)
    assert not oracle.accepts(text + "b")
    every = Oracle.of_gbnf(print_grammar({"root": Chars(ANY)}))
    assert all(every.accepts(char) for char in '\x00\n"\\a\ud7ff\ue000\U0010ffff')
