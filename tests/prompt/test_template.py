"""Templates: what they become, what they need, and that no value is ever read as one."""

from __future__ import annotations

from collections import OrderedDict
from datetime import date
from enum import StrEnum
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball import Template
from flyball.core.errors import (
    ConfigurationFailure,
    TemplateError,
    TemplateMalformed,
    TemplateVariableMissing,
    UserError,
)
from tests.prompt.trees import environments, values, written

# What it becomes


@given(st.data(), environments)
def test_a_template_is_its_text_with_the_values_in_their_places(
    data: st.DataObject, given: dict[str, Any]
) -> None:
    drawn = data.draw(written(given))
    template = Template(drawn.source)
    assert set(template.variables) == drawn.needs
    assert template.format(given) == drawn.text
    assert template.format(**{name: given[name] for name in template.variables}) == drawn.text


@given(st.lists(st.tuples(st.text(st.characters(exclude_characters="{}")), values)))
def test_whatever_the_values_are_they_stand_where_their_names_stood(pieces: list[tuple[str, str]]) -> None:
    template = Template("".join([f"{text}{{{{.V{number}}}}}" for number, (text, _) in enumerate(pieces)]))
    given = {f"V{number}": value for number, (_, value) in enumerate(pieces)}
    assert template.format(given) == "".join([text + value for text, value in pieces])


@given(st.text().filter(lambda text: "{{" not in text))
def test_a_text_without_braces_is_itself(text: str) -> None:
    assert Template(text).format() == text
    assert Template(text).variables == ()


@given(st.data(), environments)
def test_filled_in_parts_it_becomes_the_same(data: st.DataObject, given: dict[str, Any]) -> None:
    template = Template(data.draw(written(given)).source)
    first = data.draw(st.sets(st.sampled_from(sorted(given))))
    partial = template.partial({name: given[name] for name in first})
    assert partial.variables == tuple(name for name in template.variables if name not in first)
    assert partial.format({name: given[name] for name in partial.variables}) == template.format(given)
    assert template.variables == Template(template.text).variables  # it has not changed


_WORDS = ["if", "else", "end", "range", "with", ".X", "$", "a", " ", "\n"]
_SIGNS = ["{{", "}}", "{{- ", " -}}", "/*", "*/", '"', "`", "\\", "|", "(", "-", "{"]
_CODE = st.lists(st.sampled_from([*_WORDS, *_SIGNS])).map("".join)


@given(_CODE)
def test_any_text_is_a_template_or_is_refused_with_its_place(text: str) -> None:
    try:
        Template(text, "odd").format(X="x")
    except TemplateError as error:
        refused = error
    else:
        return
    lines, details = text.split("\n"), refused.details
    line, column = int(details["line"]), int(details["column"])
    assert 1 <= column <= len(lines[line - 1])
    assert refused.message.startswith(f"template 'odd', line {line}, column {column}: ")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("a  {{- .X}}  b", "ax  b"),
        ("a  {{.X -}}  b", "a  xb"),
        ("a\n\t {{- .X -}}\r\n b", "axb"),
        ("a {{- /* a note */ -}} b", "ab"),
        ("a {{/* a note */ -}} b", "a b"),
        ("a {{- /* a\nnote */}} b", "a b"),
        ("a {{- `}}` -}} b", "a}}b"),
        ("{{if .X -}}\n  yes\n{{- else -}}\n  no\n{{- end}}", "yes"),
        ("- {{.X}}", "- x"),
        ("{{.X}}{{.X}}", "xx"),
        ("{ {{.X}} }", "{ x }"),
        ("}}{{.X}}", "}}x"),
        ('{{"\\u00e4 \\n"}}', "ä \n"),
        ("{{with .}}{{.X}}{{end}}", "x"),
        ("{{with $}}{{.X}}{{end}}", "x"),
    ],
)
def test_white_space_comments_and_braces(source: str, text: str) -> None:
    assert Template(source).format(X="x") == text


def test_ranges_and_withs_in_each_other() -> None:
    template = Template(
        "{{range .Rooms}}{{.Name}}:{{range .Beds}} {{.}}/{{$.House}}{{else}} none{{end}}"
        "{{with .Owner}} ({{.}}){{end}}; {{end}}"
    )
    rooms = [{"Name": "A", "Beds": [1, 2], "Owner": None}, {"Name": "B", "Beds": (), "Owner": "Ann"}]
    assert template.variables == ("Rooms", "House")
    assert template.format(Rooms=rooms, House="H") == "A: 1/H 2/H; B: none (Ann); "


class Colour(StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (2.5, "2.5"),
        (True, "True"),
        (None, ""),
        (Colour.RED, "red"),
        (date(2026, 1, 2), "2026-01-02"),
        (Template("{{.X}}").partial(X="{{.Y}}").format(), "{{.Y}}"),
    ],
)
def test_a_value_is_its_text(value: Any, text: str) -> None:
    assert Template("{{.X}}").format(X=value) == text


# What it is not


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("{{.X", r"column 1: the braces are not closed by }}"),
        ("a\n {{ upper .X}}", r"line 2, column 2: {{upper .X}}: functions and pipelines are not known: work"),
        ("{{.X | upper}}", "functions and pipelines"),
        ("{{if not .X}}{{end}}", "functions and pipelines"),
        ("{{if (.X)}}{{end}}", "functions and pipelines"),
        ("{{$x := .X}}", "functions and pipelines"),
        ("{{$x}}", "variables are not known"),
        ("{{$.}}", "variables are not known"),
        ('{{template "x"}}', "functions and pipelines"),
        ("{{break}}", "'break' is not known"),
        ("{{Name}}", r"for a value write {{.Name}}"),
        ("{{}}", "a value is missing"),
        ("{{if}}{{end}}", "a value is missing"),
        ("{{-}}", "no value"),
        ("{{.A.}}", "no value"),
        ("{{.1}}", "no value"),
        ("{{.__class__ .X}}", "functions"),
        ("{{end}}", "nothing open"),
        ("{{else}}", "nothing open"),
        ("{{if .X}}{{if .Y}}{{end}}", r"column 1: this {{if}} is not closed"),
        ("{{if .X}}{{else}}{{else}}{{end}}", "already"),
        ("{{if .X}}{{else}}{{else if .Y}}{{end}}", "already"),
        ("{{range .X}}{{else if .Y}}{{end}}", "not known"),
        ("{{if .X}}{{else with .Y}}{{end}}", "not known"),
        ("{{/* x", "comment is not closed"),
        ("{{/* x */ .X}}", "only a comment"),
        ("{{/* x */-}}", "only a comment"),
        ('{{"x}}', "quote"),
        ("{{`x}}", "quote"),
        ('{{"\\q"}}', "no value"),
        ('{{"a" "b"}}', "functions and pipelines"),
        ("{{if .X}}" * 65 + "{{end}}" * 65, "more than 64 blocks"),
    ],
)
def test_what_is_no_template_is_refused_when_it_is_made(source: str, what: str) -> None:
    with pytest.raises(TemplateMalformed, match=r"^template 'greeting', line [0-9]+, ") as caught:
        Template(source, "greeting")
    assert what in caught.value.message
    assert isinstance(caught.value, ConfigurationFailure)
    assert not caught.value.retryable


def test_blocks_may_stand_64_deep() -> None:
    assert Template("{{if .X}}" * 64 + "deep" + "{{end}}" * 64).format(X=1) == "deep"


def test_a_template_is_made_of_text() -> None:
    with pytest.raises(UserError, match="takes a text and a name"):
        Template(None)  # pyright: ignore[reportArgumentType]


# What is missing


def test_what_is_not_given_is_named_with_what_is_there() -> None:
    template = Template("{{.A}} {{if .B}}{{.C}}{{end}}", "letter")
    with pytest.raises(
        TemplateVariableMissing, match="template 'letter' needs A, C, and there is only B, D"
    ) as caught:
        template.format(B=0, D=1)
    assert (caught.value.details["missing"], caught.value.details["known"]) == (["A", "C"], ["B", "D"])
    with pytest.raises(TemplateVariableMissing, match="the template needs X, and there is nothing"):
        Template("{{.X}}").format()


def test_a_field_that_is_missing_is_named_with_those_that_are_there() -> None:
    with pytest.raises(
        TemplateVariableMissing, match=r"line 1, column 3: .* 'Age' for \.User\.Age; .*: Name"
    ) as caught:
        Template("a {{.User.Age}}").format(User={"Name": "Ann"})
    where = {"template": "", "line": 1, "column": 3, "variable": ".User.Age"}
    assert caught.value.details == {**where, "missing": ["Age"], "known": ["Name"]}


class Sly:
    secret = "secret"

    def __str__(self) -> str:
        raise RuntimeError("no")

    def __bool__(self) -> bool:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("source", "value", "what"),
    [
        ("{{.X.secret}}", Sly(), "only a mapping has fields"),
        ("{{.X.__class__}}", "text", "only a mapping has fields"),
        ("{{.X.upper}}", "text", "only a mapping has fields"),
        ("{{with .X}}{{.name}}{{end}}", SimpleNamespace(name="x"), "only a mapping has fields"),
        ("{{.X}}", Sly(), "could not say its text"),
        ("{{if .X}}{{end}}", Sly(), "cannot say whether it is empty"),
        ("{{.X}}", object(), "no text of its own"),
        ("{{.X}}", [1], "go through it by range"),
        ("{{.X}}", b"x", "go through it by range"),
        ("{{.X}}", {"a": 1}, "name one of them (.a)"),
        ("{{.}}", 1, "name one of them (.X)"),
        ("{{$}}", 1, "name one of them (.X)"),
        ("{{range .X}}{{end}}", "text", "range takes a list"),
        ("{{range .X}}{{end}}", {"a": 1}, "range takes a list"),
        ("{{range .X}}{{end}}", 3, "range takes a list"),
    ],
)
def test_values_that_cannot_be_there(source: str, value: Any, what: str) -> None:
    with pytest.raises(TemplateError) as caught:
        Template(source, "t").format(X=value)
    assert what in caught.value.message
    assert caught.value.message.startswith("template 't', line 1, column ")


@pytest.mark.parametrize("kind", [dict, OrderedDict, MappingProxyType])
def test_fields_are_looked_up_in_any_mapping(kind: Any) -> None:
    assert Template("{{.X.A}}").format(kind({"X": kind({"A": 1})})) == "1"


# In itself


def test_the_later_value_goes_before_the_earlier() -> None:
    partial = Template("{{.A}}{{.B}}").partial({"A": 1, "B": 1}, B=2)
    assert partial.format() == "12"
    assert partial.partial(A=3).format(B=4) == "34"
    assert partial.format({"A": 5}, A=6) == "62"


def test_templates_compare_by_what_they_are() -> None:
    one = Template("{{.A}}", "one")
    assert one == Template("{{.A}}", "one")
    assert len({one, Template("{{.A}}", "one")}) == 1
    assert one != Template("{{.A}}")
    assert one != one.partial(A=1)
    assert one != "{{.A}}"
    assert (one.text, one.name, repr(one)) == ("{{.A}}", "one", "Template('{{.A}}', 'one')")
    assert repr(Template("x" * 99)) == f"Template('{'x' * 60}…')"
