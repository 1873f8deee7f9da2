"""The command line: what is asked, kept, shown and hidden."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from bench.control.command import ask, chosen, main
from bench.control.methods import METHODS, SETTINGS, Reply
from bench.control.report import (
    Outcome,
    as_json,
    interval,
    kinds,
    missed,
    mistakes,
    rows,
    seen,
    share,
)
from bench.control.results import Results, code_version
from bench.control.tasks import Call, Task, ToolTask, all_tasks, extraction_tasks, spellings, tool_tasks
from inline_snapshot import snapshot
from msgspec.structs import replace

from flyball.core.errors import EngineError
from flyball.inference.scripted import ScriptedEngine

TASKS = all_tasks()
OPEN_TASK = next(task for task in TASKS if not task.held)
HELD_TASK = next(task for task in TASKS if task.held)


def _asked(task: Task, reply: Reply, method: str = "grammar") -> Outcome:
    return Outcome("test", method, task, reply)


def _right(task: Task) -> Reply:
    if isinstance(task, ToolTask):
        return Reply("", tuple(Call(call.tool, spellings(call)[0]) for call in task.calls), valid=True)
    return Reply("", value=task.answer, valid=True)


def _run(tmp_path: Path, *arguments: str) -> tuple[int, str]:
    out = StringIO()
    code = main(["-m", "test", "--results", str(tmp_path / "replies.jsonl"), *arguments], out)
    return code, out.getvalue()


def test_a_set_a_task_or_a_pattern_can_be_chosen() -> None:
    assert chosen(TASKS, [], "both", None) == list(TASKS)
    assert chosen(TASKS, ["extraction"], "both", None) == list(extraction_tasks())
    assert [task.id for task in chosen(TASKS, ["hello"], "both", None)] == ["tool_choice/hello"]
    assert {task.group for task in chosen(TASKS, ["tool_choice/two-*"], "both", None)} == {"tool_choice"}
    assert chosen(TASKS, ["nothing"], "both", None) == []


def test_a_half_and_a_number_can_be_chosen() -> None:
    open_half, held = chosen(TASKS, [], "open", None), chosen(TASKS, [], "held", None)
    assert len(open_half) == len(held) == len(TASKS) / 2
    assert not any(task.held for task in open_half)
    assert all(task.held for task in held)
    few = chosen(TASKS, [], "held", 3)
    assert few == [one for group in ("tool_choice", "extraction") for one in _of(group, held)[:3]]


def _of(group: str, tasks: list[Task]) -> list[Task]:
    return [task for task in tasks if task.group == group]


def test_the_table_has_a_line_for_each_method_and_half(tmp_path: Path) -> None:
    code, told = _run(tmp_path, "--only", "extraction", "--limit", "4", "--version", "v1")
    assert code == 0
    lines = [line.split() for line in told.splitlines()]
    assert lines[0][:4] == ["control", "·", "code", "v1"]
    counted = [line[:7] for line in lines if line[:1] == ["test"]]
    assert counted == snapshot(
        [
            ["test", "plain", "open", "0/2", "0%", "0/2", "0%"],
            ["test", "plain", "held", "0/2", "0%", "0/2", "0%"],
            ["test", "repair", "open", "0/2", "0%", "0/2", "0%"],
            ["test", "repair", "held", "0/2", "0%", "0/2", "0%"],
            ["test", "grammar", "open", "2/2", "100%", "0/2", "0%"],
            ["test", "grammar", "held", "2/2", "100%", "0/2", "0%"],
            ["test", "vote", "open", "2/2", "100%", "0/2", "0%"],
            ["test", "vote", "held", "2/2", "100%", "0/2", "0%"],
        ]
    )


def test_details_show_the_open_half_and_only_reveal_shows_the_held_one(tmp_path: Path) -> None:
    _, details = _run(tmp_path, "--details")
    _, revealed = _run(tmp_path, "--reveal")
    _, neither = _run(tmp_path)
    # The stand-in answers in words, which `plain` cannot read: every task has a mistake to show.
    for task in TASKS:
        shown = f"{task.id}  ("
        assert shown not in neither
        assert (shown in details) is not task.held
        assert shown in revealed


def test_the_file_holds_no_held_reply_unless_revealed(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    _run(tmp_path, "--json", str(file), "--method", "grammar")
    figures = json.loads(file.read_text())
    assert {row["half"] for row in figures["rows"]} == {"open", "held"}
    assert {one["task"] for one in figures["replies"]} == {task.id for task in TASKS if not task.held}
    assert figures["settings"]["temperature"] == 0
    _run(tmp_path, "--json", str(file), "--method", "grammar", "--reveal")
    assert len(json.loads(file.read_text())["replies"]) == len(TASKS)


def test_check_fails_where_the_held_half_misses_its_targets(tmp_path: Path) -> None:
    code, told = _run(tmp_path, "--check")
    assert code == 1
    assert "Tool choice on the held half: 19%, to be above 85%" in told
    assert "Extraction on the held half: 0%, to be above 90%" in told


def test_targets_are_reached_from_above() -> None:
    held = [task for task in TASKS if task.held]
    assert missed(rows([_asked(task, _right(task)) for task in held])) == []
    assert len(missed(rows([_asked(task, _right(task)) for task in TASKS if not task.held]))) == 2
    tools = [task for task in tool_tasks() if task.held][:20]
    good = [_asked(task, _right(task)) for task in [*tools, *[t for t in held if t.group == "extraction"]]]
    three_wrong = [*[_asked(one.task, Reply("")) for one in good[:3]], *good[3:]]
    assert missed(rows(three_wrong)) == ["Tool choice on the held half: 85%, to be above 85%"]


def test_nothing_to_ask_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        _run(tmp_path, "--only", "helo")
    assert ended.value.code == 2
    assert "no task is called helo" in capsys.readouterr().err


def test_an_engine_that_cannot_be_had_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["-m", "nobody:knows", "--results", str(tmp_path / "r")])
    assert code == 2
    assert "nobody" in capsys.readouterr().err


async def _ask(engine: ScriptedEngine, results: Results, tasks: list[Task], told: list[str]) -> list[Outcome]:
    return await ask(
        "m", engine, methods=["plain"], tasks=tasks, settings=SETTINGS, results=results, advance=told.append
    )


async def test_a_run_that_was_broken_off_goes_on(tmp_path: Path) -> None:
    file, tasks = tmp_path / "deep" / "replies.jsonl", list(TASKS[:3])
    broken = ScriptedEngine("one", "two", EngineError("down"))
    with pytest.raises(EngineError):
        await _ask(broken, Results(file, "v", SETTINGS), tasks, [])
    rest, told = ScriptedEngine("three"), list[str]()
    outcomes = await _ask(rest, Results(file, "v", SETTINGS), tasks, told)
    assert [one.reply.text for one in outcomes] == ["one", "two", "three"]
    assert len(rest.calls) == 1
    assert told == ["m  plain  tool_choice"] * 3


def test_a_reply_is_known_again_only_for_what_it_was_given_to(tmp_path: Path) -> None:
    file, reply = tmp_path / "replies.jsonl", Reply("said", valid=True, seconds=1.5, tokens=7)
    Results(file, "v", SETTINGS).put("m", "plain", OPEN_TASK, reply)
    again = Results(file, "v", SETTINGS)
    assert again.get("m", "plain", OPEN_TASK) == reply
    assert again.get("n", "plain", OPEN_TASK) is None
    assert again.get("m", "repair", OPEN_TASK) is None
    assert again.get("m", "plain", HELD_TASK) is None
    assert again.get("m", "plain", replace(OPEN_TASK, prompt="Another prompt")) is None
    assert Results(file, "w", SETTINGS).get("m", "plain", OPEN_TASK) is None
    assert Results(file, "v", replace(SETTINGS, seed=1)).get("m", "plain", OPEN_TASK) is None


def test_a_line_that_was_cut_is_left_out_and_harms_no_other(tmp_path: Path) -> None:
    file = tmp_path / "replies.jsonl"
    first = Results(file, "v", SETTINGS)
    first.put("m", "plain", OPEN_TASK, Reply("one"))
    first.put("m", "plain", HELD_TASK, Reply("two"))
    file.write_bytes(file.read_bytes()[:-20])
    second = Results(file, "v", SETTINGS)
    assert second.get("m", "plain", HELD_TASK) is None
    second.put("m", "plain", HELD_TASK, Reply("two again"))
    third = Results(file, "v", SETTINGS)
    assert [third.get("m", "plain", task) for task in (OPEN_TASK, HELD_TASK)] == [
        Reply("one"),
        Reply("two again"),
    ]


def test_the_code_version_follows_the_code(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    one = code_version([tmp_path])
    assert one == code_version([tmp_path])
    (tmp_path / "a.py").write_text("2")
    assert code_version([tmp_path]) != one
    assert len(code_version()) == len(one) == 12


def test_mistakes_say_what_was_asked_wanted_and_said() -> None:
    (task,) = [task for task in extraction_tasks() if task.name == "printer-paper"]
    wrong = _asked(task, Reply("{...}", value={**task.answer, "total": 45, "item": "pens"}, valid=True))
    assert mistakes([_asked(task, _right(task))]) == []
    (told,) = mistakes([wrong])
    assert told == snapshot("""\
extraction/printer-paper  (test, grammar, level 1, open): item, total
  asked   'Invoice 1042: 12 boxes of printer paper, total 54.00 EUR.'
  wanted  {"invoice": 1042, "item": "printer paper", "quantity": 12, "total": 54.0}
  read    {"invoice": 1042, "item": "pens", "quantity": 12, "total": 45}
  said    '{...}'\
""")


def test_mistakes_say_what_kind_they_are() -> None:
    (task,) = [task for task in tool_tasks() if task.name == "timer-ten"]
    replies = [
        Reply("", (Call("set_timer", {"minutes": 5}),), valid=True),
        Reply("", (), valid=True),
        Reply(""),
        Reply("", cut=True),
    ]
    told = [
        told.splitlines()[0].rpartition(": ")[2] for told in mistakes(_asked(task, one) for one in replies)
    ]
    assert told == ["wrong arguments", "wrong tools", "not valid", "cut"]


def test_kinds_are_counted_apart() -> None:
    outcomes = [_asked(task, Reply("", (), valid=True)) for task in tool_tasks()]
    assert kinds(seen(outcomes, reveal=False)) == [
        "tool_choice, test, grammar: one 0/32, several 0/7, none 9/9"
    ]


def test_shares_and_intervals_can_be_read() -> None:
    assert (share(34, 40), interval(34, 40), share(0, 0)) == ("34/40 85%", "71-93", "0/0")


def test_the_json_has_an_interval_in_each_row() -> None:
    figures = as_json([_asked(OPEN_TASK, _right(OPEN_TASK))], {"version": "v"}, reveal=False)
    (row,) = figures["rows"]
    assert figures["version"] == "v"
    assert row["tally"]["right"] == 1
    assert row["interval"] == pytest.approx((0.2065, 1), abs=1e-3)


def test_all_methods_can_be_named(tmp_path: Path) -> None:
    for method in METHODS:
        _, told = _run(tmp_path, "--method", method, "--limit", "1")
        assert {line.split()[1] for line in told.splitlines() if line.split()[:1] == ["test"]} == {method}
