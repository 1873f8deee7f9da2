"""A text that is no grammar is refused with the line and the column."""

from __future__ import annotations

import pytest

from flyball.constraint.grammar import check_grammar, schema_grammar
from flyball.core.errors import GrammarMalformed, GrammarWithoutRoot
from tests.constraint.grammar.real_tools import TOOLS

GOOD = {
    "one rule": 'root ::= "a"',
    "spread over lines": (
        'root ::=\n  ("a" |\n   # a remark\n   b)+ [^x-z\\]]?\n'
        'b ::= [a-z\\x41]{2,3} .* "\\u00e9\\U0001f600\\n"\n'
    ),
    "Windows' lines": 'root ::= a\r\na ::= "x"\r\n',
    "remarks": '# first\n\nroot ::= "a" # behind\n# last',
    "tokens": "root ::= <[12]> !<[7]> <think>",
    "recursion on the right": 'root ::= "a" root | ""',
    "an empty alternative": 'root ::= "a" |',
    "counts": 'root ::= "a"{2} "b"{2,} "c"{0,3} ("d" "e"){1, 2}',
    "a dash at the end of a set": "root ::= [a-] [-a] [a\\-c] [+--]",
    "a way out in a group": 'root ::= "a" ("b" | root)',
    "a way out by a count": 'root ::= "a" root{0,2}',
    "recursion behind something": 'root ::= a* "x" root?\na ::= "y"',
}

BAD = {
    "nothing": ("", 1, 1, "no rule 'root'"),
    "no root": ('a ::= "x"', 1, 1, "no rule 'root'"),
    "an undefined rule": ('root ::= "x" |\n  y', 2, 3, "'y' is not defined"),
    "no definition": ("root = x", 1, 6, "'::='"),
    "no name": ('root ::= "x"\n_a ::= "y"', 2, 1, "expected the name of a rule"),
    "text without an end": ('root ::= "x', 1, 10, "not closed"),
    "a set without an end": ("root ::= [a-", 1, 10, "not closed"),
    "a group without an end": ('root ::= ("x"', 1, 10, "not closed"),
    "a group that is broken off": ('root ::= ("x" }', 1, 15, "expected '\\)'"),
    "an escape that is none": ('root ::= "\\q"', 1, 11, "no escape"),
    "too few digits": ('root ::= "\\x1"', 1, 11, "2 hexadecimal digits"),
    "nothing to repeat": ("root ::= *", 1, 10, "nothing before it"),
    "a count that is none": ('root ::= "x"{a}', 1, 13, "a count is written"),
    "a large count": ('root ::= "x"{0,2001}', 1, 13, "up to 2000"),
    "two rules in a line": ('root ::= "x" a ::= "y"', 1, 16, "unexpected"),
    "a token that is none": ("root ::= <", 1, 10, "a token"),
    "left recursion": ('root ::= a\na ::= b? (c | a "x")\nb ::= "y"\nc ::= "z"', 2, 1, "begins with itself"),
    "left recursion behind what may be empty": (
        'root ::= e root\ne ::= "" | "x"',
        1,
        1,
        "begins with itself",
    ),
    "a range the wrong way round": ("root ::= [0-9z-a]", 1, 14, "the range z-a holds nothing"),
    "such a range of escapes": ("root ::= [\\x41-\\n]", 1, 11, r"the range \\x41-\\n holds nothing"),
    "an empty set": ('root ::= "a" [^]', 1, 14, "this set is empty"),
    "a count the wrong way round": ('root ::= "x"{3,2}', 1, 13, r"\{3,2\} begins after its end"),
    "two definitions": ('root ::= "a"\na ::= "b"\nroot ::= "c"', 3, 1, "is defined already, in line 1"),
    "no way out": ('root ::= "a" root', 1, 1, "can never end"),
    "no way out of one alternative": (
        'root ::= "x" | a\na ::= "y" (b | b "z")\nb ::= "x" a',
        2,
        1,
        "'a' can never end",
    ),
    "a NUL": ('root ::= "a\0"', 1, 12, "NUL"),
}


@pytest.mark.parametrize("name", GOOD)
def test_good(name: str) -> None:
    check_grammar(GOOD[name])


@pytest.mark.parametrize("name", BAD)
def test_bad(name: str) -> None:
    text, line, column, says = BAD[name]
    with pytest.raises(GrammarMalformed, match=says) as caught:
        check_grammar(text)
    assert (caught.value.details["line"], caught.value.details["column"]) == (line, column), str(caught.value)
    assert caught.value.code == ("CONFIG_GRAMMAR_NO_ROOT" if "root" in says else "CONFIG_GRAMMAR_MALFORMED")


def test_a_grammar_without_a_root_says_which_rules_it_has() -> None:
    with pytest.raises(GrammarWithoutRoot, match=r"no rule 'root'.*\(its rules: answer, no\)") as caught:
        check_grammar('answer ::= "yes" | no\nno ::= "no"')
    assert caught.value.details["rules"] == ["answer", "no"]
    with pytest.raises(GrammarWithoutRoot, match=r"\(its rules: none\)"):
        check_grammar("# nothing\n")


@pytest.mark.parametrize("name", TOOLS)
def test_our_own_grammars_pass(name: str) -> None:
    check_grammar(schema_grammar(TOOLS[name][0]))
