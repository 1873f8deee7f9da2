"""The tasks: they can be read, are as many and as mixed as they should be, and their halves are alike."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from shutil import copytree

import pytest
from bench.control.halves import held_by_rule
from bench.control.tasks import (
    FOLDER,
    AnyOf,
    BadTask,
    Call,
    ExtractionTask,
    Has,
    Task,
    ToolTask,
    all_tasks,
    extraction_tasks,
    object_schema,
    spellings,
    tool_tasks,
)
from hypothesis import given
from hypothesis import strategies as st

TOOLS, EXTRACTION = tool_tasks(), extraction_tasks()


def test_there_are_enough_of_them_and_all_are_named_apart() -> None:
    assert len(TOOLS) >= 70
    assert len(EXTRACTION) >= 70
    assert len({task.id for task in all_tasks()}) == len(all_tasks()) == len(TOOLS) + len(EXTRACTION)
    assert len({task.prompt for task in all_tasks()}) == len(all_tasks())


def test_tool_choice_is_mixed() -> None:
    kinds = Counter(task.kind for task in TOOLS)
    assert 0.15 <= kinds["none"] / len(TOOLS) <= 0.25
    assert 0.12 <= kinds["several"] / len(TOOLS) <= 0.2
    assert {len(task.tools) for task in TOOLS} <= {3, 4, 5, 6}


def test_every_tool_is_the_right_one_somewhere() -> None:
    called = {call.tool for task in TOOLS for call in task.calls}
    assert {tool.name for task in TOOLS for tool in task.tools} == called


def test_extraction_is_mixed() -> None:
    assert {len(task.answer) for task in EXTRACTION} <= {3, 4, 5, 6}
    fields = [field for task in EXTRACTION for field in task.schema["properties"].values()]
    types = Counter(str(field["type"]) for field in fields)
    assert {"string", "integer", "number", "boolean", "array", "['string', 'null']"} <= types.keys()
    assert sum("enum" in field for field in fields) > 20
    assert all(field["description"] for field in fields)


@pytest.mark.parametrize("tasks", [TOOLS, EXTRACTION], ids=["tool_choice", "extraction"])
def test_half_of_a_set_is_held_as_the_rule_has_it(tasks: tuple[Task, ...]) -> None:
    held = [task.held for task in tasks]
    assert held == held_by_rule(tasks)
    assert sum(held) * 2 == len(held)


@pytest.mark.parametrize("tasks", [TOOLS, EXTRACTION], ids=["tool_choice", "extraction"])
@pytest.mark.parametrize("of", ["kind", "level"])
def test_both_halves_are_alike(tasks: tuple[Task, ...], of: str) -> None:
    held, left = (Counter(getattr(task, of) for task in tasks if task.held is half) for half in (True, False))
    assert all(abs(held[key] - left[key]) <= 1 for key in held | left)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 3)), max_size=40))
def test_the_rule_halves_every_group_and_every_kind(drawn: list[tuple[str, int]]) -> None:
    tasks = [_extraction(kind, level) for kind, level in drawn]
    held = held_by_rule(tasks)
    sides: Counter[tuple[str, int | None]] = Counter()
    for task, is_held in zip(tasks, held, strict=True):
        for about in ((task.kind, task.level), (task.kind, None)):
            sides[about] += 1 if is_held else -1
    assert all(abs(balance) <= 1 for balance in sides.values())


def test_a_field_that_is_not_in_the_answer_is_null() -> None:
    (task,) = [task for task in EXTRACTION if task.name == "gardener-no-salary"]
    assert list(task.answer) == list(task.schema["properties"])
    assert task.answer["salary"] is None


def test_spellings_are_the_first_and_the_last_ways_of_writing() -> None:
    call = Call("t", {"a": 1, "b": AnyOf(("x", "y")), "c": Has(("some", "words"))})
    assert spellings(call) == [{"a": 1, "b": "x", "c": "some words"}, {"a": 1, "b": "y", "c": "some words"}]


FAULTS = {
    "no such box": ("tool_choice", 'toolbox = "home"', 'toolbox = "hom"', "there is no toolbox 'hom'"),
    "no such tool": (
        "tool_choice",
        'tool = "set_alarm"',
        'tool = "set_alrm"',
        "no tool 'set_alrm' in 'home'",
    ),
    "wrong argument": ("tool_choice", "minutes = 10", 'minutes = "ten"', '"ten" is not of type "integer"'),
    "wrong form": ("tool_choice", 'any = ["06', 'either = ["06', "{ any = [...] } or { has = [...] }"),
    "wrong answer": ("extraction", "quantity = 12", 'quantity = "12"', "does not follow its own schema"),
    "twice": ("extraction", 'name = "lunch"', 'name = "printer-paper"', "more than one task is called"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_task_that_contradicts_itself_is_refused(fault: str, tmp_path: Path) -> None:
    name, right, wrong, said = FAULTS[fault]
    folder = copytree(
        FOLDER, tmp_path / "control", ignore=lambda _, names: [n for n in names if n[-5:] != ".toml"]
    )
    file = folder / f"{name}.toml"
    text = file.read_text("utf-8")
    assert right in text
    file.write_text(text.replace(right, wrong, 1), "utf-8")
    with pytest.raises(BadTask) as raised:
        all_tasks(folder)
    assert said in str(raised.value)


def test_kinds_of_tool_tasks_are_told_from_their_calls() -> None:
    call = Call("t", {})
    kinds = [ToolTask("n", 1, False, "", "", (), (call,) * n).kind for n in range(4)]  # noqa: FBT003
    assert kinds == ["none", "one", "several", "several"]


def _extraction(kind: str, level: int) -> ExtractionTask:
    return ExtractionTask("n", level, False, kind, "", "", object_schema({}), {})  # noqa: FBT003
