"""Whether a text follows a grammar, found out after it was written: an Earley recogniser over the characters.

A decoder that is held to a grammar writes nothing else. A model without one, an answer that was cut off, or
one from elsewhere can: this says so, and where. Each rule is a small automaton; an item is a state of it with
the place in the text where the rule began. Ambiguity, nesting and rules that may be empty are all taken; the
work is counted, and grows with the text for grammars as they are usually written.
"""

from __future__ import annotations

from functools import lru_cache
from typing import assert_never

from flyball.constraint.grammar.charset import Ranges
from flyball.constraint.grammar.checking import checked
from flyball.constraint.grammar.tree import Chars, Choice, Expr, Literal, Ref, Repeat, Sequence
from flyball.core.errors import GrammarUnsupported

MOST_WORK = 1_000_000
"""How many items are followed at most, in one text: about a second's work."""
_TOLD = 8
"""How many who asked for a rule are told that it is over in the time that an item takes."""
KEPT = 64

Item = tuple[int, int]
"""A state, and where in the text its rule began."""


class _State:
    """Where a rule may stand: what it reads, which rules it asks, where it may go without either."""

    __slots__ = ("asks", "ends", "leads", "reads")

    def __init__(self) -> None:
        self.reads: list[tuple[Ranges, int]] = []
        self.asks: list[tuple[int, int]] = []
        self.leads: list[int] = []
        self.ends = -1
        """The number of the rule that is over here; -1 if none is."""


class Matcher:
    """A grammar that texts are held against.

    Raises:
        GrammarMalformed: the text is no grammar.
        GrammarUnsupported: it speaks of a model's tokens: what these are only that model knows.
    """

    def __init__(self, grammar: str) -> None:
        reader = checked(grammar)
        if reader.token:
            raise GrammarUnsupported(
                f"the grammar has the token {reader.token}: whether a text follows it, only its model knows",
                keyword=reader.token,
            )
        trees = reader.trees
        self._numbers = {name: number for number, name in enumerate(trees)}
        self._states: list[_State] = []
        self._starts: list[int] = []
        self._parts: dict[Expr, int] = {}
        for _ in trees:  # parts that are repeated get numbers after those of the rules
            self._starts.append(self._state())
        for number, tree in enumerate(trees.values()):
            self._rule(number, tree)
        self._nullable = self._which_may_be_empty()
        self._root = self._numbers["root"]

    def mismatch(self, text: str) -> int | None:
        """Where a text stops following the grammar; its length, if only its end is missing; None if it does.

        Raises:
            GrammarUnsupported: it would take too long to find out.
        """
        asked: list[dict[int, list[Item]]] = []
        column: set[Item] = {(self._starts[self._root], 0)}
        work = 0
        for at in range(len(text) + 1):
            point = ord(text[at]) if at < len(text) else -1
            steps, following, over = self._closed(column, asked, at, point)
            work += steps
            if work > MOST_WORK:
                raise GrammarUnsupported(
                    f"to check these {len(text):,} characters would take too long: the grammar has too many "
                    "ways to read them",
                    position=at,
                )
            if at == len(text):
                return None if over else at
            if not following:
                return at
            column = following
        raise AssertionError("the last place is the end of the text")

    def _closed(
        self, column: set[Item], asked: list[dict[int, list[Item]]], at: int, point: int
    ) -> tuple[int, set[Item], bool]:
        """The work at a place, the items after its character, and whether the whole text may end there.

        A rule that is over is told to all that asked for it: for each item there may be as many of them as
        there are characters.
        """
        here: dict[int, list[Item]] = {}
        asked.append(here)
        seen, waiting = set(column), list(column)
        following: set[Item] = set()
        over, told = False, 0

        def add(item: Item) -> None:
            if item not in seen:
                seen.add(item)
                waiting.append(item)

        while waiting:
            number, began = waiting.pop()
            state = self._states[number]
            for ranges, then in state.reads:
                if any(low <= point <= high for low, high in ranges):
                    following.add((then, began))
            for then in state.leads:
                add((then, began))
            for rule, then in state.asks:
                here.setdefault(rule, []).append((then, began))
                add((self._starts[rule], at))
                if rule in self._nullable:
                    add((then, began))
            if state.ends >= 0:
                if state.ends == self._root and began == 0:
                    over = True
                waits = tuple(asked[began].get(state.ends, ()))
                told += len(waits)
                for then, before in waits:
                    add((then, before))
        return len(seen) + told // _TOLD, following, over

    # Building

    def _state(self) -> int:
        self._states.append(_State())
        return len(self._states) - 1

    def _rule(self, number: int, tree: Expr) -> None:
        end = self._state()
        self._states[end].ends = number
        self._build(tree, self._starts[number], end)

    def _build(self, tree: Expr, start: int, end: int) -> None:
        """Add the ways that lead from one state to another by what a tree matches."""
        states = self._states
        match tree:
            case Literal():
                at = start
                for char in tree.text:
                    following = self._state()
                    states[at].reads.append((((ord(char), ord(char)),), following))
                    at = following
                states[at].leads.append(end)
            case Chars():
                states[start].reads.append((tree.ranges, end))
            case Ref():
                states[start].asks.append((self._numbers[tree.rule], end))
            case Sequence():
                at = start
                for part in tree.parts:
                    following = self._state()
                    self._build(part, at, following)
                    at = following
                states[at].leads.append(end)
            case Choice():
                for option in tree.options:
                    self._build(option, start, end)
            case Repeat():
                self._repeat(tree, start, end)
            case _:
                assert_never(tree)

    def _repeat(self, tree: Repeat, start: int, end: int) -> None:
        """So many of an item in a row. One that is no single step is a rule: else counts would multiply."""
        at = start
        for _ in range(tree.low):
            following = self._state()
            self._step(tree.item, at, following)
            at = following
        if tree.high is None:
            around = self._state()
            self._states[at].leads.append(around)
            self._step(tree.item, around, around)
            self._states[around].leads.append(end)
            return
        for _ in range(tree.high - tree.low):
            self._states[at].leads.append(end)
            following = self._state()
            self._step(tree.item, at, following)
            at = following
        self._states[at].leads.append(end)

    def _step(self, item: Expr, start: int, end: int) -> None:
        if isinstance(item, Chars | Ref):
            self._build(item, start, end)
            return
        if item not in self._parts:
            self._parts[item] = number = len(self._starts)
            self._starts.append(self._state())
            self._rule(number, item)
        self._states[start].asks.append((self._parts[item], end))

    def _which_may_be_empty(self) -> frozenset[int]:
        """The rules that match the empty text."""
        empty: set[int] = set()
        while True:
            more = {
                number
                for number, start in enumerate(self._starts)
                if number not in empty and self._ends_at_once(start, empty)
            }
            if not more:
                return frozenset(empty)
            empty |= more

    def _ends_at_once(self, start: int, empty: set[int]) -> bool:
        seen, waiting = {start}, [start]
        while waiting:
            state = self._states[waiting.pop()]
            if state.ends >= 0:
                return True
            for then in [*state.leads, *[then for rule, then in state.asks if rule in empty]]:
                if then not in seen:
                    seen.add(then)
                    waiting.append(then)
        return False


@lru_cache(maxsize=KEPT)
def matcher(grammar: str) -> Matcher:
    """The matcher of a grammar, which is kept: see `Matcher`."""
    return Matcher(grammar)
