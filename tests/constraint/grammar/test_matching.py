"""Matching: a text follows a grammar, or the place is told from which on it does not."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball import Agent
from flyball.constraint.grammar import DecoderConstraint, GrammarConstraint, GrammarDefinition
from flyball.constraint.grammar.charset import of
from flyball.constraint.grammar.matching import Matcher
from flyball.constraint.grammar.printing import print_grammar
from flyball.constraint.grammar.tree import Chars, Expr, Literal, Ref, Rules, choice, repeat, sequence
from flyball.core.errors import (
    GrammarMalformed,
    GrammarNotFound,
    GrammarRejected,
    GrammarUnsupported,
    GrammarWithoutRoot,
    UserError,
)
from tests.constraint.grammar.recognising import recognises
from tests.orchestrate.models import Script

FOLLOWED: list[tuple[str, list[str], list[str]]] = [
    ('root ::= "yes" | "no"', ["yes", "no"], ["", "ye", "yesno", "maybe"]),
    ("root ::= [a-c]+ [^a-c]?", ["a", "abc", "abcz", "b\n"], ["", "z", "azz"]),
    ('root ::= "x"{2,3} .', ["xxy", "xxx", "xxx☃"], ["xx", "xxxyz"]),
    ('root ::= "x"{2,}', ["xx", "xxxxx"], ["x", "xxy"]),
    ('root ::= ("a" "b"?){0,2} "c"', ["c", "abc", "aac", "ababc"], ["abababc", "bc"]),
    ('root ::= "(" root ")" | ""', ["", "((()))"], ["(()", "())"]),
    ('root ::= ws "a" ws\nws ::= " " ws | ""', ["a", "  a ", " a"], ["", " ", "aa"]),
    ('root ::= s\ns ::= "a" s s | "a" | ""', ["", "a", "aaaa"], ["ab"]),
    ('root ::= e\ne ::= e2 ("+" e2)*\ne2 ::= [0-9]+ | "(" e ")"', ["1+2", "(1+(2+3))+4"], ["1+", "(1"]),
    ('root ::= "\\u00e4" "\\x41" "\\t\\"\\\\"', ['äA\t"\\'], ["äA"]),
    ('root ::= ("" | "a")* "b"', ["b", "aab"], ["a", "ba"]),
    ("root ::= [a\\-\\]]+", ["a-]"], ["b"]),
    ("# a remark\nroot ::= a # another\na ::= (\n  [x]\n  | [y]\n)", ["x", "y"], ["z"]),
]


@pytest.mark.parametrize(("grammar", "good", "bad"), FOLLOWED, ids=[row[0] for row in FOLLOWED])
def test_texts_follow_a_grammar_or_not(grammar: str, good: list[str], bad: list[str]) -> None:
    definition = GrammarDefinition("one", grammar)
    assert [text for text in good if not definition.accepts(text)] == []
    assert [text for text in bad if definition.accepts(text)] == []


_leaves: st.SearchStrategy[Expr] = st.sampled_from(
    [Literal("a"), Literal("ab"), Chars(of("bc")), Ref("more")]
)


def _grown(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    several = st.lists(inner, min_size=1, max_size=3)
    counts = st.sampled_from([(0, 1), (0, None), (1, None), (2, 3), (0, 2)])
    return (
        several.map(lambda parts: sequence(*parts))
        | several.map(lambda parts: choice(*parts))
        | st.tuples(inner, counts).map(lambda given: repeat(given[0], *given[1]))
    )


_trees = st.recursive(_leaves, _grown, max_leaves=6)
_flat = st.recursive(st.sampled_from([Literal("a"), Literal("cb"), Chars(of("bc"))]), _grown, max_leaves=3)


@given(_trees, _flat, st.text("abc", max_size=7))
def test_it_agrees_with_following_all_ways_at_once(root: Expr, more: Expr, text: str) -> None:
    rules: Rules = {"root": root, "more": more}
    found = Matcher(print_grammar(rules)).mismatch(text)
    assert (found is None) == recognises(rules, text)
    assert found is None or 0 <= found <= len(text)


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 3},
    },
    "required": ["name"],
}


@given(st.text(max_size=20), st.lists(st.sampled_from("ab"), max_size=3))
def test_what_follows_a_schema_follows_its_grammar(name: str, tags: list[str]) -> None:
    text = json.dumps({"name": name, "tags": tags}, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return  # no text that a model could write
    definition = GrammarDefinition.from_schema(SCHEMA)
    definition.require(text)
    assert not definition.accepts(text[:-1])
    assert not definition.accepts(text + "x")


def test_a_rejection_says_where() -> None:
    definition = GrammarDefinition("city", 'root ::= "name:\\n" [A-Z] [a-z]+')
    with pytest.raises(GrammarRejected) as rejected:
        definition.require("name:\nrome")
    assert rejected.value.code == "CONSTRAINT_GRAMMAR_REJECTED"
    assert rejected.value.details == {"grammar": "city", "position": 6, "line": 2, "column": 1}
    assert "line 2, column 1: 'rome' may not stand there" in rejected.value.message
    with pytest.raises(GrammarRejected, match="it ends too early"):
        definition.require("name:\nR")
    definition.require("name:\nRome")


def test_what_cannot_be_told_is_refused() -> None:
    with pytest.raises(GrammarUnsupported, match=r"the token <\[7\]>"):
        GrammarDefinition("tokens", "root ::= <[7]>").accepts("x")
    ambiguous = GrammarDefinition("many", 'root ::= s\ns ::= "a" s s s | ""')
    assert ambiguous.accepts("a" * 20)
    with pytest.raises(GrammarUnsupported, match="too many ways to read") as caught:
        ambiguous.accepts("a" * 3_000)
    assert caught.value.details["position"] < 500, "up to there it is a second's work"


@pytest.mark.slow
@pytest.mark.parametrize("rule", ['"a" root root | "a"', '"a" root? root? root?', '("a" | "a" "a" | "a"+)*'])
def test_what_can_be_read_in_too_many_ways_is_refused_soon(rule: str) -> None:
    """All steps are counted: of a text of n characters some grammars take n ** 3."""
    matcher = Matcher(f"root ::= {rule}")
    before = time.process_time()
    with pytest.raises(GrammarUnsupported):
        matcher.mismatch("a" * 3_000)
    assert time.process_time() - before < 4.0


def test_a_definition_has_a_name_and_a_root() -> None:
    assert isinstance(GrammarDefinition("one", 'root ::= "a"'), DecoderConstraint)
    assert GrammarConstraint is GrammarDefinition
    for text in ("", 'Root ::= "a"', 'roots ::= "a"', 'my-root ::= "a"'):
        with pytest.raises(GrammarWithoutRoot, match=r"the grammar 'one': .*no rule 'root'") as without:
            GrammarDefinition("one", text)
        assert without.value.details["grammar"] == "one"
    with pytest.raises(GrammarMalformed, match="is not closed"):
        GrammarDefinition("one", 'root ::= ("a"')
    for name, grammar in (("", 'root ::= "a"'), (3, 'root ::= "a"'), ("one", None)):
        with pytest.raises(UserError, match="a grammar has a name and a text"):
            GrammarDefinition(name, grammar)  # pyright: ignore[reportArgumentType]


def test_a_grammar_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "answer.gbnf"
    with pytest.raises(GrammarNotFound, match="there is no such file") as missing:
        GrammarDefinition.from_file(file)
    assert missing.value.code == "CONFIG_GRAMMAR_NOT_FOUND"
    assert missing.value.details == {"path": str(file)}
    file.write_bytes(b'\xef\xbb\xbfroot ::= "yes"\n')
    assert GrammarDefinition.from_file(str(file)) == GrammarDefinition("answer", 'root ::= "yes"\n')
    assert GrammarDefinition.from_file(file, "mine").name == "mine"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(GrammarMalformed, match="it holds no text"):
        GrammarDefinition.from_file(file)
    file.write_text("roots")
    with pytest.raises(GrammarMalformed, match=r"answer\.gbnf: line 1"):
        GrammarDefinition.from_file(file)
    with pytest.raises(UserError, match="it cannot be read"):
        GrammarDefinition.from_file(tmp_path)


async def test_an_agent_takes_a_definition() -> None:
    model = Script("yes")
    agent = Agent(model, grammar=GrammarDefinition("one", 'root ::= "yes"'))
    assert agent.config.grammar == 'root ::= "yes"'
    with pytest.raises(UserError, match="takes a GrammarDefinition, or the text"):
        Agent(model, grammar=3)  # pyright: ignore[reportArgumentType, reportCallIssue]
