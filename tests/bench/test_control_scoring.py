"""What counts as right, as valid, and how sure the shares are."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from bench.control.methods import Reply
from bench.control.reading import calls_of, read_json, valid_calls, valid_value
from bench.control.scoring import normal_text, right_calls, right_fields, right_tools, right_value, same
from bench.control.tally import Score, score, tally, wilson
from bench.control.tasks import AnyOf, Call, Has, extraction_tasks, spellings, tool_tasks
from hypothesis import given
from hypothesis import strategies as st

TOOLS, EXTRACTION = tool_tasks(), extraction_tasks()
CALLING = [task for task in TOOLS if task.calls]
TASKS = st.sampled_from(TOOLS)
TEXTS = st.text(max_size=12)
VALUES = (
    TEXTS
    | st.integers()
    | st.floats(allow_nan=False)
    | st.booleans()
    | st.none()
    | st.lists(TEXTS, max_size=4)
)


@given(TASKS, st.sampled_from([0, 1]))
def test_the_known_calls_are_right_in_any_order_and_spelling(task: Any, which: int) -> None:
    known = [Call(call.tool, spellings(call)[which]) for call in task.calls]
    assert valid_calls(task.tools, known)
    for calls in permutations(known):
        assert right_tools(task, calls)
        assert right_calls(task, calls)


@given(st.sampled_from(CALLING), st.data())
def test_another_tool_is_wrong(task: Any, data: st.DataObject) -> None:
    known = [Call(call.tool, spellings(call)[0]) for call in task.calls]
    at = data.draw(st.integers(0, len(known) - 1))
    other = data.draw(st.sampled_from([tool.name for tool in task.tools if tool.name != known[at].tool]))
    calls = [*known[:at], Call(other, known[at].args), *known[at + 1 :]]
    assert not right_tools(task, calls)
    assert not right_calls(task, calls)


@given(TASKS, st.data())
def test_a_call_too_many_or_too_few_is_wrong(task: Any, data: st.DataObject) -> None:
    known = [Call(call.tool, spellings(call)[0]) for call in task.calls]
    more = Call(data.draw(st.sampled_from([tool.name for tool in task.tools])), {})
    assert not right_tools(task, [*known, more])
    assert not right_calls(task, [*known, more])
    assert not known or not right_tools(task, known[1:])


@given(st.sampled_from(CALLING), st.data())
def test_the_right_tool_with_a_wrong_argument_is_a_right_choice_only(task: Any, data: st.DataObject) -> None:
    known = [Call(call.tool, spellings(call)[0]) for call in task.calls]
    name = data.draw(st.sampled_from(list(known[0].args)))
    spoilt = Call(
        known[0].tool, {**known[0].args, name: "zzz" if isinstance(known[0].args[name], str) else -1}
    )
    assert right_tools(task, [spoilt, *known[1:]])
    assert not right_calls(task, [spoilt, *known[1:]])


def test_an_argument_that_nobody_asked_for_is_wrong_unless_it_is_null() -> None:
    (task,) = [task for task in TOOLS if task.name == "timer-ten"]
    assert right_calls(task, [Call("set_timer", {"minutes": 10, "label": None})])
    assert not right_calls(task, [Call("set_timer", {"minutes": 10, "label": "tea"})])


def test_each_wanted_call_needs_a_call_of_its_own() -> None:
    (task,) = [task for task in TOOLS if task.name == "weather-rome-athens"]
    rome = Call("get_weather", {"city": "Rome"})
    assert right_tools(task, [rome, rome])
    assert not right_calls(task, [rome, rome])


@given(st.sampled_from(EXTRACTION))
def test_the_known_answer_is_right_also_written_otherwise(task: Any) -> None:
    assert right_value(task, task.answer)
    assert right_value(task, {name: value for name, value in task.answer.items() if value is not None})
    loud = {n: f"  {v.upper()} " if isinstance(v, str) else v for n, v in task.answer.items()}
    assert right_value(task, loud)


@given(st.sampled_from(EXTRACTION), st.data())
def test_one_wrong_field_makes_a_wrong_answer_and_a_field_less(task: Any, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(list(task.answer)))
    wrong = data.draw(VALUES.filter(lambda value: not same(task.answer[name], value)))
    fields = right_fields(task, {**task.answer, name: wrong})
    assert [field for field, right in fields.items() if not right] == [name]
    assert not right_value(task, {**task.answer, name: wrong})


@given(VALUES)
def test_a_value_is_itself(value: Any) -> None:
    assert same(value, value)


@given(VALUES, VALUES)
def test_being_the_same_goes_both_ways(one: Any, other: Any) -> None:
    assert same(one, other) == same(other, one)


@given(st.text())
def test_normalising_twice_changes_nothing(text: str) -> None:
    assert normal_text(normal_text(text)) == normal_text(text)


@pytest.mark.parametrize(
    ("wanted", "given_", "right"),
    [
        ("Baker Street", " baker  STREET. ", True),
        ("Salt", '"Salt"', True),
        ("Salt", "Salty", False),
        (54.0, 54, True),
        (54, "54", False),
        (1, True, False),
        (True, 1, False),
        (True, True, True),
        (None, None, True),
        (None, "", False),
        (["slow", "heavy"], ["Heavy", "slow"], True),
        (["slow", "heavy"], ["slow"], False),
        (["slow"], ["slow", "slow"], False),
        (["slow"], "slow", False),
        (AnyOf(("6:30", "06:30")), "06:30", True),
        (AnyOf(("6:30", "06:30")), "07:30", False),
        (Has(("used", "cameras")), "Used film cameras", True),
        (Has(("used", "cameras")), "new cameras", False),
        (Has(("5",)), 5, False),
    ],
)
def test_what_is_the_same(wanted: Any, given_: Any, right: bool) -> None:
    assert same(wanted, given_) is right


def test_a_known_answer_of_a_form_that_cannot_be_compared_is_an_error() -> None:
    with pytest.raises(TypeError, match="holds no dict"):
        same({"a": 1}, {"a": 1})


@pytest.mark.parametrize(
    ("text", "strict", "repaired"),
    [
        ('{"a": 1}', {"a": 1}, {"a": 1}),
        (' {"a": 1}\n', {"a": 1}, {"a": 1}),
        ('Sure!\n```json\n{"a": 1}\n```', None, {"a": 1}),
        ("{a: 1,}", None, {"a": 1}),
        ("", None, None),
        ("no idea", None, None),
    ],
)
def test_json_is_read_strictly_or_repaired(text: str, strict: Any, repaired: Any) -> None:
    assert read_json(text, repair=False) == strict
    assert read_json(text, repair=True) == repaired


FORMS: list[tuple[Any, Any]] = [
    ({"calls": []}, ()),
    ({"calls": [{"tool": "t", "args": {"a": 1}}]}, (Call("t", {"a": 1}),)),
    ({"calls": [{"tool": "t", "args": {}, "why": "so"}]}, None),
    ({"calls": [{"tool": "t"}]}, None),
    ({"calls": [{"tool": 1, "args": {}}]}, None),
    ({"calls": ["t"]}, None),
    ({"calls": {}}, None),
    ({"calls": [], "more": 1}, None),
    ([], None),
    (None, None),
]


@pytest.mark.parametrize(("answer", "calls"), FORMS)
def test_calls_have_one_form(answer: Any, calls: Any) -> None:
    assert calls_of(answer) == calls


def test_calls_are_valid_if_their_tools_and_arguments_are() -> None:
    (task,) = [task for task in TOOLS if task.name == "timer-ten"]
    assert valid_calls(task.tools, [Call("set_timer", {"minutes": 3})])
    assert not valid_calls(task.tools, [Call("set_timer", {"minutes": "three"})])
    assert not valid_calls(task.tools, [Call("set_timer", {})])
    assert not valid_calls(task.tools, [Call("set_timers", {"minutes": 3})])


@given(st.sampled_from(EXTRACTION))
def test_the_known_answer_is_valid_and_nothing_that_lacks_a_field(task: Any) -> None:
    assert valid_value(task.schema, task.answer)
    assert not valid_value(task.schema, dict(list(task.answer.items())[1:]))


@given(TASKS)
def test_an_invalid_reply_is_never_right(task: Any) -> None:
    calls = tuple(Call(call.tool, spellings(call)[0]) for call in task.calls)
    parts = int(bool(calls))
    assert score(task, Reply("", calls, valid=True)) == Score(True, True, parts, parts)  # noqa: FBT003
    assert score(task, Reply("", calls, valid=False)) == Score(False, False, 0, parts)  # noqa: FBT003


@given(st.sampled_from(EXTRACTION))
def test_fields_of_an_invalid_reply_do_not_count(task: Any) -> None:
    fields = len(task.answer)
    assert score(task, Reply("", value=task.answer, valid=True)) == Score(True, True, fields, fields)  # noqa: FBT003
    assert score(task, Reply("", value=task.answer)) == Score(False, False, 0, fields)  # noqa: FBT003


def test_scores_are_added_up() -> None:
    good, bad = Score(True, True, 4, 4), Score(True, False, 3, 4)  # noqa: FBT003
    lost = Score(False, False, 0, 5)  # noqa: FBT003
    replies = [
        Reply("", seconds=1, tokens=10),
        Reply("", seconds=2, tokens=30),
        Reply("", cut=True, seconds=5),
    ]
    counts = tally(zip((good, bad, lost), replies, strict=True))
    assert (counts.tasks, counts.valid, counts.right, counts.cut) == (3, 2, 1, 1)
    assert (counts.parts_right, counts.parts) == (7, 13)
    assert (counts.seconds, counts.speed) == (2, 5)
    assert tally([]).tasks == 0


@given(st.integers(0, 300), st.integers(0, 300))
def test_wilsons_interval_holds_the_share_and_mirrors(right: int, wrong: int) -> None:
    of = right + wrong
    low, high = wilson(right, of)
    assert 0 <= low <= high <= 1
    if of:
        assert low <= right / of <= high
        assert wilson(wrong, of) == pytest.approx((1 - high, 1 - low))


def test_wilsons_interval_as_the_tables_have_it() -> None:
    assert wilson(34, 40) == pytest.approx((0.7093, 0.9294), abs=1e-4)
    assert wilson(0, 0) == (0, 1)
