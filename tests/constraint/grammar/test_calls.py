"""Grammars of a turn: calls, an answer, or one of both, in any layout."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.constraint.grammar import (
    FREE_TEXT,
    Bounds,
    CallLayout,
    call_grammar,
    check_grammar,
    plan_grammar,
    turn_grammar,
)
from flyball.constraint.grammar.calls import turn_rules
from flyball.constraint.grammar.schemas import schema_key
from flyball.core.errors import GrammarUnsupported, SchemaMalformed, UserError
from flyball.core.tools import ToolDefinition
from tests.constraint.grammar.oracle import Oracle
from tests.constraint.grammar.recognising import recognises

ADD = ToolDefinition(
    "add",
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
)
NOW = ToolDefinition("now", {"type": "object"})
SUM = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": -2}}\n</tool_call>'
CLOCK = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
ANSWER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def read(grammar: str) -> Oracle:
    check_grammar(grammar)
    return Oracle.of_gbnf(grammar)


def test_one_call() -> None:
    oracle = read(call_grammar([ADD, NOW]))
    assert oracle.accepts(SUM)
    assert oracle.accepts(CLOCK)
    for wrong in (
        f"{SUM}\n{CLOCK}",
        SUM.replace("add", "sub"),
        SUM.replace("-2", '"x"'),
        SUM.replace("{}", '{"a": 1}'),
        CLOCK.replace("{}", '{"a": 1}'),
        SUM + "\n",
        "3",
        "",
    ):
        assert wrong in (SUM, CLOCK) or not oracle.accepts(wrong), wrong


@pytest.mark.parametrize(("several", "most"), [(False, 1), (True, 8), (1, 1), (3, 3)])
def test_several_calls(several: bool | int, most: int) -> None:
    oracle = read(call_grammar([ADD, NOW], several=several))
    assert oracle.accepts("\n".join([CLOCK] * most))
    assert not oracle.accepts("\n".join([CLOCK] * (most + 1)))


@pytest.mark.parametrize(
    "layout", [CallLayout(), CallLayout(before="<calls>", after="</calls>")], ids=["", "in"]
)
def test_a_plan_is_these_calls_in_this_order(layout: CallLayout) -> None:
    oracle = read(plan_grammar([ADD, NOW, ADD], layout=layout))

    def written(*calls: str) -> str:
        return layout.before + layout.between.join(calls) + layout.after

    assert oracle.accepts(written(SUM, CLOCK, SUM))
    for wrong in ((SUM, CLOCK), (SUM, SUM, CLOCK), (SUM, CLOCK, SUM, CLOCK), (SUM,), ()):
        assert not oracle.accepts(written(*wrong))


def test_a_plan_has_calls() -> None:
    with pytest.raises(UserError, match="without calls"):
        plan_grammar([])


def test_calls_or_a_typed_answer() -> None:
    oracle = read(turn_grammar([ADD, NOW], ANSWER, several=2))
    for text in (SUM, f"{CLOCK}\n{SUM}", '{"n": 3}'):
        assert oracle.accepts(text)
    for text in ('{"n": "3"}', f'{SUM}\n{{"n": 3}}', "three"):
        assert not oracle.accepts(text)


def test_calls_or_free_text() -> None:
    check_grammar(turn_grammar([ADD], FREE_TEXT))
    rules = turn_rules(((ADD.name, schema_key(ADD.parameters)),), FREE_TEXT, (1, 1), CallLayout(), Bounds())
    for text in (
        SUM,
        "It is three.",
        "<tool>",
        "a <tool_call is no call",
        "é\n\n<<tool_cal",
        "{}",
        "x" * 500,
    ):
        assert recognises(rules, text), text
    for text in ("", " x", "So: <tool_call>", "<tool_call>\n{}", f"Sure.\n{SUM}", "<<tool_call>"):
        assert not recognises(rules, text), text


@given(st.text(st.sampled_from("<>tol_ca x\n"), min_size=1, max_size=40))
def test_free_text_is_all_but_what_has_the_mark_in_it(text: str) -> None:
    free = not text[0].isspace() and "<tool_call>" not in text
    rules = turn_rules((("now", b"{}"),), FREE_TEXT, (1, 1), CallLayout(), Bounds())
    assert recognises(rules, text) == free


def test_only_an_answer() -> None:
    assert read(turn_grammar([], ANSWER)).accepts('{"n": 1}')
    free = read(turn_grammar([], FREE_TEXT))
    assert free.accepts(SUM)
    assert not free.accepts("")


@pytest.mark.parametrize(
    ("layout", "call", "calls"),
    [
        (
            CallLayout(
                call='{"name": "$name", "arguments": $arguments}', before="[", between=", ", after="]"
            ),
            '[{"name": "now", "arguments": {}}]',
            '[{"name": "now", "arguments": {}}, {"name": "now", "arguments": {}}]',
        ),
        (
            CallLayout(call="<function=$name>$arguments</function>", between=""),
            "<function=now>{}</function>",
            "<function=now>{}</function><function=now>{}</function>",
        ),
        (
            CallLayout(call="$name($arguments)", before="CALL ", between="; ", after="."),
            "CALL now({}).",
            "CALL now({}); now({}).",
        ),
    ],
    ids=["a list", "tags", "functions"],
)
def test_layouts(layout: CallLayout, call: str, calls: str) -> None:
    oracle = read(call_grammar([NOW], several=2, layout=layout))
    assert oracle.accepts(call)
    assert oracle.accepts(calls)
    assert not oracle.accepts(CLOCK)


def test_an_answer_between_marks() -> None:
    layout = CallLayout(answer="<answer>\n$answer\n</answer>")
    typed = read(turn_grammar([NOW], ANSWER, layout=layout))
    assert typed.accepts('<answer>\n{"n": 1}\n</answer>')
    assert not typed.accepts('{"n": 1}')
    free = read(turn_grammar([NOW], FREE_TEXT, layout=layout))
    assert free.accepts("<answer>\nIt is 3.\n</answer>")
    assert not free.accepts("<answer>\nIt </answer> is 3.\n</answer>")
    assert not free.accepts("It is 3.")


def test_the_answer_may_stand_first() -> None:
    calls_first = turn_grammar([ADD], ANSWER)
    answer_first = turn_grammar([ADD], ANSWER, layout=CallLayout(answer_first=True))
    assert calls_first.splitlines()[0] == "root ::= call | answer"
    assert answer_first.splitlines()[0] == "root ::= answer | call"


def test_a_call_as_plain_json_needs_a_mark_beside_an_answer() -> None:
    layout = CallLayout(call='{"name": "$name", "arguments": $arguments}')
    read(call_grammar([NOW], layout=layout))
    read(turn_grammar([NOW], FREE_TEXT, layout=layout))
    with pytest.raises(UserError, match="mistaken for a call"):
        turn_grammar([NOW], ANSWER, layout=layout)
    with pytest.raises(UserError, match="mistaken for a call"):
        turn_grammar([NOW], FREE_TEXT, layout=CallLayout(call="$name $arguments"))


@pytest.mark.parametrize(
    "make",
    [
        lambda: CallLayout(call="$name"),
        lambda: CallLayout(call="$arguments $name"),
        lambda: CallLayout(call="$name $name $arguments"),
        lambda: CallLayout(answer="x"),
        lambda: CallLayout(most=0),
        lambda: turn_grammar([], None),
        lambda: turn_grammar([NOW, NOW], None),
        lambda: call_grammar([NOW], several=0),
    ],
    ids=["no arguments", "order", "twice", "no answer", "most", "nothing", "same name", "no call"],
)
def test_what_cannot_work_is_said(make: Any) -> None:
    with pytest.raises(UserError):
        make()


def test_a_refusal_names_the_tool() -> None:
    bad = ToolDefinition("bad", {"type": "object", "properties": {"x": {"not": {}}}})
    with pytest.raises(GrammarUnsupported) as caught:
        call_grammar([NOW, bad])
    assert caught.value.details == {"tool": "bad", "path": "#/properties/x/not", "keyword": "not"}
    with pytest.raises(SchemaMalformed):
        call_grammar([ToolDefinition("bad", {"type": "objec"})])


def test_parameters_behind_a_reference_or_open() -> None:
    parameters = {"$ref": "#/$defs/p", "$defs": {"p": ADD.parameters}}
    assert read(call_grammar([ToolDefinition("add", parameters)])).accepts(SUM)
    free = {"type": "object", "additionalProperties": {"type": "integer"}}
    assert read(call_grammar([ToolDefinition("add", free)])).accepts(SUM)


def test_a_name_is_written_as_json_has_it() -> None:
    odd = ToolDefinition('say "é"', {"type": "object"})
    assert read(call_grammar([odd])).accepts(CLOCK.replace("now", 'say \\"é\\"'))


def test_the_same_turn_is_compiled_once() -> None:
    assert turn_grammar([ADD], ANSWER) is turn_grammar([ADD], ANSWER)
