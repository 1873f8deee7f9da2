"""What the schema accepts, the grammar accepts; what the grammar generates, the schema accepts."""

from __future__ import annotations

import json
import random
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from flyball.constraint.grammar.bounds import Bounds
from flyball.constraint.grammar.printing import print_grammar
from flyball.constraint.grammar.schemas import schema_key, schema_rules
from flyball.constraint.validation import validate
from tests.constraint.grammar.oracle import Oracle
from tests.constraint.grammar.sampling import sample
from tests.constraint.grammar.schemas import Pair, canonical, documents


def _plain(value: Any) -> Any:
    return json.loads(canonical(value))


@given(documents(), st.data())
def test_what_the_schema_accepts_the_grammar_accepts(document: Pair, data: st.DataObject) -> None:
    schema, values = document
    rules = schema_rules(schema_key(schema), Bounds())
    oracle = Oracle.of_gbnf(print_grammar(rules))
    for _ in range(3):
        value = data.draw(values)
        assert validate(schema, _plain(value)) == []  # the strategy keeps its word
        assert oracle.accepts(canonical(value)), canonical(value)


@given(documents(), st.integers(0, 2**32), st.booleans())
def test_what_the_grammar_generates_the_schema_accepts(document: Pair, seed: int, undeclared: bool) -> None:
    schema = document[0]
    rules = schema_rules(schema_key(schema), Bounds(undeclared=undeclared))
    oracle = Oracle.of_gbnf(print_grammar(rules))
    chance = random.Random(seed)
    for n in range(12):
        text = sample(rules, chance)
        assert validate(schema, json.loads(text)) == [], text
        msgspec.json.decode(text)
        if n < 3:
            assert oracle.accepts(text), text


@given(documents(), st.integers(0, 2**32))
def test_what_the_printed_grammar_lets_a_model_write_the_schema_accepts(document: Pair, seed: int) -> None:
    schema = document[0]
    oracle = Oracle.of_gbnf(print_grammar(schema_rules(schema_key(schema), Bounds())))
    text = oracle.walk(random.Random(seed))
    if text is not None:
        assert validate(schema, json.loads(text)) == [], text
