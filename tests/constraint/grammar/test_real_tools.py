"""The schemas of real tools: both ways, quickly, and not much to read for the decoder."""

from __future__ import annotations

import json
import random
import time
from typing import Any

import pytest

from flyball.constraint.grammar import Bounds, call_grammar, check_grammar, schema_grammar
from flyball.constraint.grammar.schemas import schema_key, schema_rules
from flyball.constraint.validation import validate
from flyball.core.tools import ToolDefinition
from tests.constraint.grammar.oracle import Oracle
from tests.constraint.grammar.real_tools import TOOLS
from tests.constraint.grammar.sampling import sample
from tests.constraint.grammar.schemas import canonical


@pytest.mark.parametrize("name", TOOLS)
def test_good_arguments_are_accepted(name: str) -> None:
    schema, good = TOOLS[name]
    oracle = Oracle.of_gbnf(schema_grammar(schema))
    for value in good:
        assert validate(schema, value) == []
        assert oracle.accepts(canonical(value)), value
        assert not oracle.accepts(canonical(value) + " ")
        assert not oracle.accepts(canonical(value)[:-1])


@pytest.mark.parametrize("name", TOOLS)
def test_what_is_generated_follows_the_schema(name: str) -> None:
    schema = TOOLS[name][0]
    rules = schema_rules(schema_key(schema), Bounds())
    oracle = Oracle.of_gbnf(schema_grammar(schema))
    chance = random.Random(name)
    for _ in range(60):
        text = sample(rules, chance)
        assert validate(schema, json.loads(text)) == [], text
    for _ in range(3):
        walked = oracle.walk(chance)
        assert walked is None or validate(schema, json.loads(walked)) == [], walked


@pytest.mark.parametrize("name", TOOLS)
def test_a_broken_argument_is_refused(name: str) -> None:
    """Values replaced by ones of another type: what validation refuses, the grammar refuses."""
    others: list[Any] = ["\x7fno", -77.125, None, [[]], {"no": 1}]
    schema, good = TOOLS[name]
    oracle = Oracle.of_gbnf(schema_grammar(schema))
    for value in good:
        for key in value:
            for wrong in others:
                broken = {**value, key: wrong}
                if validate(schema, broken):
                    assert not oracle.accepts(canonical(broken)), broken


def test_all_tools_at_once() -> None:
    tools = [ToolDefinition(name, schema) for name, (schema, _) in TOOLS.items()]
    grammar = call_grammar(tools, several=True)
    check_grammar(grammar)
    oracle = Oracle.of_gbnf(grammar)
    for name, (_, good) in TOOLS.items():
        text = f'<tool_call>\n{{"name": "{name}", "arguments": {canonical(good[0])}}}\n</tool_call>'
        assert oracle.accepts(text), text
        assert oracle.accepts(f"{text}\n{text}")
        assert not oracle.accepts(f"{text}{text}")


@pytest.mark.slow
def test_compiling_takes_little_time_and_none_the_second_time() -> None:
    grammars = {name: schema_key(schema) for name, (schema, _) in TOOLS.items()}
    best: dict[str, float] = {}
    for name, key in grammars.items():
        for _ in range(3):
            start = time.process_time()  # whatever else the machine does meanwhile
            schema_rules(key, Bounds())
            best[name] = min(best.get(name, 1.0), time.process_time() - start)
    assert sorted(best.values())[len(best) // 2] < 0.005, best
    schema = TOOLS["ticket"][0]
    assert schema_grammar(schema) is schema_grammar(json.loads(json.dumps(schema)))
