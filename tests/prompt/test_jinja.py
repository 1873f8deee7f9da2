"""Jinja in a sandbox: what prompts need works, all else is refused, and all that it does has an end."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball import Agent, JinjaTemplate, Template
from flyball.core.errors import TemplateError, TemplateMalformed, TemplateVariableMissing, UserError
from flyball.core.messages import Text
from tests.orchestrate.models import Script
from tests.strategies import json_values

VALUES: dict[str, Any] = {
    "name": "Ann",
    "n": 5,
    "price": 2.5,
    "nothing": None,
    "xs": ["b", "a", "b"],
    "rows": [{"k": "one", "v": 1}, {"k": "two", "v": 2}],
    "map": {"x": 1, "y": 2},
    "long": "a line\nand another",
}

BECOMES = [
    ("Hello {{ name }}!", "Hello Ann!"),
    (
        "{{ n + 1 }} {{ n * 2 }} {{ n / 2 }} {{ n // 2 }} {{ n % 3 }} {{ -n }} {{ n - 1 }}",
        "6 10 2.5 2 2 -5 4",
    ),
    ("{{ name + '!' }}{{ name ~ n ~ nothing }}", "Ann!Ann5"),
    ("{% if n > 3 and not nothing %}yes{% elif n %}some{% else %}no{% endif %}", "yes"),
    ("{{ 'a' if n is odd else 'b' }}{{ 'c' if nothing is none }}", "ac"),
    ("{% for x in xs %}{{ loop.index }}{{ x }}{{ ', ' if not loop.last }}{% endfor %}", "1b, 2a, 3b"),
    ("{% for x in [] %}{{ x }}{% else %}none{% endfor %}", "none"),
    ("{% for x in xs if x != 'a' %}{{ x }}{% endfor %}", "bb"),
    ("{% for k, v in map|items %}{{ k }}={{ v }} {% endfor %}", "x=1 y=2 "),
    ("{% for k in map %}{{ k }}{{ map[k] }}{% endfor %}", "x1y2"),
    ("{% for r in rows %}{{ r.k }}{{ r['v'] }}{% endfor %}{{ xs[0] }}{{ name[0] }}", "one1two2bA"),
    ("{% set y = n + 1 %}{{ y }}{% with z = 2 %}{{ z }}{% endwith %}", "62"),
    (
        "{{ xs|join(', ') }} {{ xs|sort|join }} {{ xs|unique|join }} {{ xs|reverse|join }}",
        "b, a, b abb ba bab",
    ),
    (
        "{{ name|upper }}{{ name|lower }}{{ 'ab cd'|title }}{{ 'ab'|capitalize }}{{ ' x '|trim }}",
        "ANNannAb CdAbx",
    ),
    ("{{ xs|length }}{{ xs|count }}{{ xs|first }}{{ xs|last }}{{ 'a b c'|wordcount }}", "33bb3"),
    (
        "{{ map.z|default('?') }}{{ ''|d('!', true) }}{{ map.z is defined }}{{ map.x is defined }}",
        "?!FalseTrue",
    ),
    ("{{ long|indent(2) }}|{{ long|indent(2, true) }}", "a line\n  and another|  a line\n  and another"),
    ("{{ name|replace('n', 'm') }}{{ 'abcdef'|truncate(3) }}{{ price|round }}{{ '7'|int }}", "Ammabc…2.07"),
    ("{{ rows|tojson }}", '[{"k":"one","v":1},{"k":"two","v":2}]'),
    ("{{ [3, -1, 2]|max }}{{ [3, -1]|min }}{{ [3, 1]|sum }}{{ '1.5'|float }}{{ -3|abs }}", "3-141.53"),
    ("{{ 'x' in map }}{{ 'n' in name }}{{ n in range(3, 9, 2) }}{{ 2 not in [1, 3] }}", "TrueTrueTrueTrue"),
    ("{% for i in range(3) %}{{ i }}{% endfor %}", "012"),
    ("{# a remark #}{% raw %}{{ name }}{% endraw %} <b>&</b>\n", "{{ name }} <b>&</b>\n"),
    ("a{%- if true %} b {%- endif -%} c", "a bc"),
]


@pytest.mark.parametrize(("text", "becomes"), BECOMES)
def test_what_prompts_need_works(text: str, becomes: str) -> None:
    assert JinjaTemplate(text).format(VALUES) == becomes


REFUSED = [
    ("{% macro f() %}{{ f() }}{% endmacro %}", "macros are not known"),
    ("{% include 'x' %}", "includes are not known"),
    ("{% import 'x' as y %}", "imports are not known"),
    ("{% from 'x' import y %}", "imports are not known"),
    ("{% extends 'x' %}", "extends are not known"),
    ("{% block b %}{% endblock %}", "blocks are not known"),
    ("{% set x %}a{% endset %}", "blocks that are set are not known"),
    ("{% filter upper %}a{% endfilter %}", "filter blocks are not known"),
    ("{{ 2 ** 9 }}", "powers are not known"),
    ("{{ xs[0:2] }}", "slices are not known"),
    ("{{ [xs, xs] }}", "a list that is written out"),
    ("{{ {'a': xs} }}", "a list that is written out"),
    ("{{ [[1]] }}", "a list that is written out"),
    ("{% for x in xs recursive %}{{ loop(xs) }}{% endfor %}", "loops that call themselves"),
    ("{{ 'a'|center(9) }}", "No filter named 'center'"),
    ("{{ 'a' is callable }}", "No test named 'callable'"),
    ("{% if %}", "Expected an expression"),
    ("{{ name", "unexpected end of template"),
    ("{% for x in xs %}", "Unexpected end of template"),
    ("{{ " + "(" * 5_000 + "1" + ")" * 5_000 + " }}", "nested too deeply"),
    ("{% for i in xs %}" * 40 + "{% endfor %}" * 40, "nested too deeply"),
    ("x" * 100_001, "100,000 are allowed"),
]


@pytest.mark.parametrize(("text", "told"), REFUSED, ids=[row[1] for row in REFUSED])
def test_what_is_not_known_is_refused_when_it_is_read(text: str, told: str) -> None:
    with pytest.raises(TemplateMalformed) as refused:
        JinjaTemplate(text, "odd")
    assert told in refused.value.message
    assert refused.value.details["template"] == "odd"
    assert refused.value.details["line"] == 1


class Secret:
    """An object with something in it."""

    token = "1234"

    def tell(self) -> str:
        return self.token


FAILS = [
    ("{{ thing.token }}", "a Secret has no 'token'"),
    ("{{ thing.tell() }}", "a Secret has no 'tell'"),
    ("{{ thing }}", "a Secret has no text of its own"),
    ("{{ thing() }}", "only range can be called"),
    ("{{ name.upper() }}", "a str has no 'upper'"),
    ("{{ ''.__class__ }}", "a str has no '__class__'"),
    ("{{ xs.append(1) }}", "a list has no 'append'"),
    ("{{ range.__globals__ }}", "a function has no '__globals__'"),
    ("{{ self }}", "has no text of its own"),
    ("{{ xs }}", "a list is no text"),
    ("{{ map }}", "a dict is no text"),
    ("{{ xs ~ 1 }}", "a list is no text"),
    ("{{ 'a' * 9 }}", "* is not known for a str and a int"),
    ("{{ '%9d' % 1 }}", "% is not known for a str and a int"),
    ("{{ xs + xs }}", "+ is not known for a list and a list"),
    ("{{ 1 / 0 }}", "ZeroDivisionError"),
    ("{{ name < 1 }}", "TypeError"),
    ("{{ 'x'|int }}", "ValueError"),
    ("{% for x in name %}{% endfor %}", "a str cannot be gone through"),
    ("{% for x in n %}{% endfor %}", "a int cannot be gone through"),
    ("{{ xs|items }}", "items is for mappings"),
    ("{{ thing|tojson }}", "a Secret has no JSON form"),
    ("{{ 'a'|indent(1000) }}", "a width from 0 to 100"),
    ("{{ range(1, 2, 3, 4) }}", "one to three whole numbers"),
    ("{{ range('a') }}", "one to three whole numbers"),
    ("{{ range(n=3) }}", "only range can be called"),
]


@pytest.mark.parametrize(("text", "told"), FAILS, ids=[row[0] for row in FAILS])
def test_nothing_is_reached_that_was_not_given(text: str, told: str) -> None:
    with pytest.raises(TemplateError) as failed:
        JinjaTemplate(text).format(VALUES, thing=Secret())
    assert told in failed.value.message
    assert "line 1" in failed.value.message
    assert failed.value.details["line"] == 1


HOSTILE = {
    "loops in loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "a long loop": "{% for a in range(999999999) %}{% endfor %}",
    "an endless loop": "{% for a in range(99999999999999999999) %}{% endfor %}",
    "a text that doubles": "{% set a = 'aaaaaaaaaa' %}" + "{% set a = a ~ a %}" * 40 + "{{ a }}",
    "a sum that doubles": "{% set a = 'aaaaaaaaaa' %}" + "{% set a = a + a %}" * 40 + "{{ a }}",
    "a number that squares": "{% set a = 9 %}" + "{% set a = a * a %}" * 40 + "{{ a }}",
    "a join of the long by the long": "{% set s = range(9999)|join('x') %}{{ range(9999)|join(s) }}",
    "a replacement of each by the long": "{% set s = range(9999)|join %}{{ s|replace('1', s) }}",
    "much text": "{% for a in range(9999) %}" + "y" * 999 + "{% endfor %}",
    "comparisons": "{% set s = range(9999)|join %}{% for a in range(9999) %}{{ s == s ~ 1 }}{% endfor %}",
    "filters": "{% set s = range(9999)|join %}{% for a in range(9999) %}{% set x = s|upper %}{% endfor %}",
    "sorting": "{% for a in range(9999) %}{% set x = range(9999)|sort %}{% endfor %}",
    "tests": "{% set s = range(9999)|join %}{% for a in range(9999) %}{{ s is in s }}{% endfor %}",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_what_would_not_end_is_ended(text: str) -> None:
    with pytest.raises(TemplateError, match=r"too much work|more than 1,000,000|too large|too long") as ended:
        JinjaTemplate(text).format()
    assert not isinstance(ended.value, TemplateMalformed)


def test_the_limits_are_those_that_were_given() -> None:
    loop = "{% for a in range(100) %}x{% endfor %}"
    assert JinjaTemplate(loop, max_output=100, max_steps=200).format() == "x" * 100
    with pytest.raises(TemplateError, match="more than 99 characters"):
        JinjaTemplate(loop, max_output=99).format()
    with pytest.raises(TemplateError, match="more than 50 steps") as ended:
        JinjaTemplate(loop, max_steps=50).partial(x=1).format()
    assert ended.value.details["allowed"] == 50
    for wrong in (0, -1, 1.5, True, None):
        with pytest.raises(UserError, match="numbers from 1"):
            JinjaTemplate("x", max_output=wrong)  # pyright: ignore[reportArgumentType]


@given(st.text(max_size=30) | st.sampled_from(["{{ n }}", "{% for %}", "{# x #}", "{{ '' }}{{ x }}"]))
def test_a_value_never_becomes_a_template(value: str) -> None:
    assert JinjaTemplate("<{{ value }}>").format(value=value) == f"<{value}>"
    assert JinjaTemplate("{{ a ~ b }}").format(a=value, b=value) == value * 2


@given(st.text("{}%#ab '|.()[]~+-*/=<>,\n", max_size=40), st.dictionaries(st.sampled_from("ab"), json_values))
def test_any_text_is_a_template_or_is_refused(text: str, values: dict[str, Any]) -> None:
    try:
        template = JinjaTemplate(text)
        assert isinstance(template.format({"a": 1, "b": [2]} | values), str)
    except TemplateError:
        pass


def test_variables_partial_and_equality() -> None:
    template = JinjaTemplate(
        "{% for x in xs %}{{ x }}{{ name }}{% endfor %}{{ n|default(1) }}{{ range(1)|first }}", "t"
    )
    assert template.variables == ("xs", "name", "n")
    part = template.partial(xs=[1], more=2)
    assert part.variables == ("name", "n")
    assert part.render(name="a", n=2) == "1a20"
    with pytest.raises(
        TemplateVariableMissing, match="template 't' needs name, n, and there is only xs, more"
    ):
        part.format()
    assert part == template.partial(xs=[1], more=2)
    assert part != template
    assert hash(part) == hash(template)
    assert JinjaTemplate("x") != Template("x")
    assert repr(template).startswith("JinjaTemplate('{% for x in xs %}")
    assert Template("{{.X}}").render(X="a") == "a"


def test_a_missing_field_says_where() -> None:
    with pytest.raises(TemplateVariableMissing) as missing:
        JinjaTemplate("one\n{{ map.x.y }}", "t").format(map={"x": {}})
    assert missing.value.message == "template 't', line 2: 'dict object' has no attribute 'y'"


async def test_it_is_filled_from_dependencies() -> None:
    model = Script("yes")
    agent = Agent(model, instructions=["Be brief.", JinjaTemplate("You serve {{ who }}.")])
    await agent.run("go", deps={"who": "{{ who }}"})
    assert model.last.messages[0].parts == (Text("Be brief."), Text("You serve {{ who }}."))


@pytest.mark.integration
def test_jinja_is_imported_by_who_uses_it() -> None:
    code = (
        "import sys, flyball; made = flyball.JinjaTemplate; assert 'jinja2' not in sys.modules; "
        "made('x'); assert 'jinja2' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
