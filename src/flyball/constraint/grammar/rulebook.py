"""The rules of a grammar in the making: each expression once, under a name that says what it is for."""

from __future__ import annotations

import re

from flyball.constraint.grammar.tree import NOTHING, Chars, Expr, Literal, Ref, Rules

_NO_WORD = re.compile(r"[^a-z0-9]+")


class RuleBook:
    """Rules by name, found again by what they say. The name `root` is never given away."""

    def __init__(self) -> None:
        self.rules: Rules = {}
        self._named: dict[Expr, Ref] = {}

    def add(self, name: str, expr: Expr) -> Expr:
        """A reference to a rule that says this; an equal one is found again, what is short stays itself."""
        if isinstance(expr, Ref | Chars | Literal) or expr == NOTHING:
            return expr
        found = self._named.get(expr)
        if found is None:
            found = self._named[expr] = Ref(self._unused(name))
            self.rules[found.rule] = expr
        return found

    def _unused(self, name: str) -> str:
        wanted = _NO_WORD.sub("-", name.lower())[:40].strip("-")
        if not wanted[:1].isalpha():
            wanted = f"r-{wanted}".rstrip("-")
        unique, n = wanted, 1
        while unique in self.rules or unique == "root":
            n += 1
            unique = f"{wanted}-{n}"
        return unique
