"""Grammars that hold a decoder to a schema, to tool calls, or to one of both.

The grammar of a schema is built as a tree (`tree`), one file a kind of value, and printed as GBNF
(`printing`). Rules: what a grammar generates, the schema accepts; what cannot be said is refused with its
path, never loosened; whatever is generated comes to an end (`Bounds`).

A grammar of one's own is read (`reading`), checked (`checking`) and named (`definition`); whether a text
follows one is found out by `matching`.
"""

from flyball.constraint.grammar.bounds import Bounds
from flyball.constraint.grammar.calls import (
    FREE_TEXT,
    Answer,
    FreeText,
    call_grammar,
    plan_grammar,
    turn_grammar,
)
from flyball.constraint.grammar.checking import check_grammar
from flyball.constraint.grammar.definition import DecoderConstraint, GrammarConstraint, GrammarDefinition
from flyball.constraint.grammar.layout import CallLayout
from flyball.constraint.grammar.schemas import schema_grammar

__all__ = [
    "Answer",
    "Bounds",
    "CallLayout",
    "DecoderConstraint",
    "FREE_TEXT",
    "FreeText",
    "GrammarConstraint",
    "GrammarDefinition",
    "call_grammar",
    "check_grammar",
    "plan_grammar",
    "schema_grammar",
    "turn_grammar",
]
