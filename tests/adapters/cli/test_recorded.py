"""Runs that are recorded: listed, drawn, replayed, gone on with, forked; and how they are named."""

from __future__ import annotations

import asyncio
import getpass
from pathlib import Path
from typing import Any

import pytest

from flyball import Agent, Message, Role, Text, Usage, calls_waiting, tool
from flyball.core.events import SignalReceived
from flyball.core.ids import new_id
from flyball.core.signals import Signal, SignalType
from flyball.inference.answers import tool_call
from flyball.inference.scripted import ScriptedEngine
from flyball.orchestrate.projections import cost
from flyball.orchestrate.recorded import send_signal
from flyball.runtime.sqlite import SQLiteJournal
from tests.adapters.cli.conftest import TOOLBOX, Flyball
from tests.patience import PATIENCE

FORECAST = ("ask", "Rome?", "-m", "scripted:forecast", "--tools", TOOLBOX + ":weather", "-q")
ANSWER = "It says: rain in Rome. Take an umbrella.\n"


@tool(approval=True)
async def burn(city: str) -> str:
    """Burn a city."""
    return f"{city} burns"


def waiting(home: Path) -> None:
    """A run of another program, which waits for approval in the same journal."""

    async def begin() -> None:
        engine = ScriptedEngine(tool_call("burn", {"city": "Rome"}), name="test")
        async with SQLiteJournal(home / "runs.db") as journal:
            running = asyncio.ensure_future(
                Agent(engine, tools=[burn], name="nero").run("Go.", journal=journal, loop_id="nero-1")
            )
            await journal.wait("nero-1", 1)
            running.cancel()
            await asyncio.wait([running])

    asyncio.run(begin())


def signalled(home: Path, kind: SignalType) -> None:
    async def send() -> None:
        async with SQLiteJournal(home / "runs.db") as journal:
            assert await send_signal(journal, "nero-1", Signal(kind))

    asyncio.run(send())


# Names


def test_a_run_is_named_by_its_id_its_beginning_or_last(flyball: Flyball) -> None:
    first = flyball("ask", "one", "-m", "scripted:echo", "--json").json["loop_id"]
    second = flyball("ask", "two", "-m", "scripted:echo", "--json").json["loop_id"]
    assert flyball("replay", first, "-q").out == "one\n"
    assert flyball("replay", first[:13], "-q").out == "one\n" or first[:13] == second[:13]
    assert flyball("replay", "last", "-q").out == flyball("replay", "-q").out == "two\n"
    several = flyball("replay", first[:2])
    assert (several.code, "2 runs begin with" in several.err) == (2, True)
    nothing = flyball("replay", "zzz")
    assert nothing.code == 8
    assert f"the newest is {second[:12]}" in nothing.err


@pytest.mark.parametrize("command", ["replay", "resume", "show", "why"])
def test_where_nothing_is_recorded(flyball: Flyball, home: Path, command: str) -> None:
    said = flyball(command)
    assert said.code == 8
    assert said.err.startswith("flyball: ORCHESTRATION_LOOP_NOT_FOUND: there are no runs")
    assert not home.exists(), "reading makes no file"


# runs


def test_the_runs(flyball: Flyball) -> None:
    assert flyball("runs", "--json").json == []
    assert "no runs are recorded" in flyball("runs").err
    flyball("ask", "a good\nquestion", "-m", "scripted:echo")
    flyball("ask", "a bad one", "-m", "scripted:dark")
    lines = flyball("runs").out.splitlines()
    assert lines[0].split()[:2] == ["run", "when"]
    assert [line.split()[2:4] for line in lines if "scripted" in line] == [
        ["scripted:dark", "failed"],
        ["scripted:echo", "complete"],
    ]
    assert any("a good question" in line and "41 → 12" in line for line in lines)
    found = flyball("runs", "--json").json
    assert [(line["stage"], line["error"]) for line in found] == [
        ("failed", "INFERENCE_ENGINE_ERROR"),
        ("complete", ""),
    ]
    assert [line["prompt"] for line in flyball("runs", "--failed", "--json").json] == ["a bad one"]
    assert len(flyball("runs", "--limit", "1", "--json").json) == 1
    assert len(flyball("runs", "-n", "0", "--json").json) == 2
    assert flyball("runs", "-n", "-1").code == 2


def test_no_run_has_failed(flyball: Flyball) -> None:
    flyball("ask", "hi", "-m", "test")
    assert flyball("runs", "--failed").err == "no run has failed\n"


def test_a_run_that_cannot_be_read_is_listed(flyball: Flyball, home: Path) -> None:
    flyball("ask", "hi", "-m", "test")

    async def damage() -> None:
        async with SQLiteJournal(home / "runs.db") as journal:
            events = await journal.read((await journal.loops())[0])
            await journal.append("damaged", events[1:], 0)

    asyncio.run(damage())
    assert flyball("runs", "--json").json[0]["error"] == "ORCHESTRATION_JOURNAL_CORRUPT"
    assert "unreadable" in flyball("runs").out
    assert flyball("show", "damaged").code == 8


# show


def test_the_course_of_a_run(flyball: Flyball) -> None:
    flyball(*FORECAST)
    lines = [line.split() for line in flyball("show").out.splitlines() if line.lstrip().startswith("+")]
    assert [line[2] for line in lines] == ["◆", "▸", "◆", "✔"]
    assert "weather" in lines[1]
    document = flyball("show", "--json").json
    kinds = [event["event"] for event in document["timeline"] if event["event"] != "lifecycle_transition"]
    assert kinds == [
        "inference_start",
        "inference_end",
        "tool_start",
        "tool_end",
        "inference_start",
        "inference_end",
    ]
    assert document["answer"] == ANSWER.strip()


@pytest.mark.parametrize(
    ("model", "shown", "total"),
    [
        ("openai:gpt-5", ", 2.25 USD", "2.250"),
        ("openai:unheard-of", ", cost unknown", None),
        ("mine", ", cost unknown", None),
        ("local:gpt-5", "", None),
    ],
)
def test_a_run_is_shown_with_what_it_cost(
    flyball: Flyball, home: Path, model: str, shown: str, total: str | None
) -> None:
    name = model.rpartition(":")[2]
    answer = Message(Role.ASSISTANT, (Text("hello"),), usage=Usage(10**6, 10**5), model=name)

    async def build() -> None:
        agent = Agent(ScriptedEngine(answer, name=name))
        async with SQLiteJournal(home / "runs.db") as journal:
            metadata = {"flyball": {"model": model}}
            await agent.run("hi", journal=journal, loop_id="paid", metadata=metadata)

    asyncio.run(build())
    line = next(line for line in flyball("show", "paid").out.splitlines() if line.startswith("run "))
    assert ("USD" in line or "cost" in line) is bool(shown)
    assert shown in line
    cost = flyball("show", "paid", "--json").json["cost"]
    assert (None if cost is None else cost["total_cost"]) == total
    assert (cost is None) is (not shown)
    assert flyball("runs", "--json").json[0]["cost"] == cost
    head, *lines = flyball("runs").out.splitlines()
    assert ("cost" in head.split()) is bool(shown)
    assert any((" 2.25 USD " if total else " unknown ") in line for line in lines) is bool(shown)


def test_without_prices_a_run_is_shown_without_its_cost(
    flyball: Flyball, monkeypatch: pytest.MonkeyPatch
) -> None:
    flyball(*FORECAST)
    monkeypatch.setattr("flyball.observe.public_prices.find_spec", lambda _: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    monkeypatch.setattr(cost, "public_prices", cost.public_prices.__wrapped__)  # what was found is kept
    assert "cost" not in flyball("show").out
    assert flyball("show", "--json").json["cost"] is None


def test_the_course_of_a_failed_run_that_was_tried_again(flyball: Flyball) -> None:
    flyball("ask", "hi", "-m", "scripted:dark")
    assert "INFERENCE_ENGINE_ERROR: the lights went out" in flyball("show").out
    flyball("resume", "-m", "test:now")
    shown = flyball("show").out
    assert "↻ tried again" in shown
    assert "now" in shown


def test_the_course_of_a_run_with_an_editor(flyball: Flyball, home: Path) -> None:
    async def build() -> None:
        editor = Agent(ScriptedEngine("built"), name="builder")
        planner = Agent(ScriptedEngine("a plan"), name="planner", editor=editor)
        async with SQLiteJournal(home / "runs.db") as journal:
            await planner.run("A hut.", journal=journal, loop_id="hut")

    asyncio.run(build())
    assert "⇣ child builder as hut-editor" in " ".join(flyball("show", "hut").out.split())
    assert "a loop of builder was begun under it: hut-editor" in " ".join(flyball("why", "hut").out.split())
    assert "built" in flyball("show", "hut-editor").out


def test_the_course_of_a_run_with_signals(flyball: Flyball, home: Path) -> None:
    waiting(home)
    signalled(home, SignalType.PAUSE)
    shown = flyball("show", "nero").out
    assert "⚑ pause" in shown
    assert "nero · test" in shown


# replay


def test_a_replay_needs_no_model(flyball: Flyball) -> None:
    assert flyball(*FORECAST).out == ANSWER
    assert flyball("replay", "-q").out == ANSWER
    assert flyball("replay", "--json").json["content"] == ANSWER.strip()
    assert len(flyball("runs", "--json").json) == 1


def test_a_replay_of_a_failure_fails_alike(flyball: Flyball) -> None:
    first = flyball("ask", "hi", "-m", "scripted:dark")
    again = flyball("replay")
    assert (again.code, again.err) == (first.code, first.err)


def test_a_typed_answer_is_replayed_without_its_module(flyball: Flyball) -> None:
    flyball("ask", "Where?", "-m", "test", "--output", f"{TOOLBOX}:City")
    assert flyball("replay", "-q").json == {"name": "", "people": 0}


# resume


def test_a_finished_run_gives_its_answer_again(flyball: Flyball) -> None:
    flyball(*FORECAST)
    assert flyball("resume", "-q").out == ANSWER
    assert len(flyball("runs", "--json").json) == 1


def test_a_failed_run_is_tried_again(flyball: Flyball, home: Path) -> None:
    flyball("ask", "hi", "-m", "scripted:dark")
    assert flyball("resume").code == 4, "by the model that it had"
    assert flyball("resume", "-m", "scripted:echo", "-q").out == "hi\n"


def test_a_run_whose_time_was_up_is_tried_again(
    flyball: Flyball, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As long again is what the second attempt has, also on a machine that is busy.
    assert flyball("ask", "hi", "-m", "scripted:hangs", "--deadline", "3").code == 124
    monkeypatch.setenv("GO", "1")
    assert flyball("resume", "-q").out == "Once upon a time.\n"


@pytest.mark.parametrize(
    ("argv", "result"),
    [(["--approve"], "Rome burns"), (["--reject", "too cruel"], "too cruel")],
    ids=["approve", "reject"],
)
def test_a_call_that_waits_is_approved_or_rejected(
    flyball: Flyball, home: Path, argv: list[str], result: str
) -> None:
    waiting(home)
    said = flyball("resume", "nero-1", "-m", "test:Done.", "--tools", TOOLBOX + ":burn", "--json", *argv)
    assert said.json["content"] == "Done."
    assert result in flyball("why", "nero-1").out
    again = flyball("resume", "nero-1", *argv)
    assert (again.code, "waits for approval" in again.err) == (2, True)


def draft(home: Path) -> None:
    """A run of another program, whose answer waits in the same journal."""

    async def begin() -> None:
        async with SQLiteJournal(home / "runs.db") as journal:
            agent = Agent(ScriptedEngine("The draft.", name="test"), name="clerk", output_approval=True)
            running = asyncio.ensure_future(agent.run("Go.", journal=journal, loop_id="draft-1"))
            async with asyncio.timeout(PATIENCE):
                length = 0
                while not await waits(journal):
                    await journal.wait("draft-1", length)
                    length = len(await journal.read("draft-1"))
            running.cancel()
            await asyncio.wait([running])

    async def waits(journal: SQLiteJournal) -> bool:
        return bool(await journal.read("draft-1")) and bool(await calls_waiting(journal, "draft-1"))

    home.mkdir(exist_ok=True)
    asyncio.run(begin())


def test_an_answer_that_waits_is_left_open_where_nobody_is_there(flyball: Flyball, home: Path) -> None:
    draft(home)
    resume = ("resume", "draft-1", "-m", "test:Better.", "-q")
    for more in ((), ("--reject", "softer")):
        said = flyball(*resume, *more)
        assert (said.code, said.out) == (8, "")
        assert "waits for approval" in said.err
        assert "--approve" in said.err
    assert flyball("resume", "draft-1", "-m", "test:No.", "-q", "--approve").out == "Better.\n"

    async def signals() -> list[tuple[str, str]]:
        async with SQLiteJournal(home / "runs.db") as journal:
            events = await journal.read("draft-1")
        found = [event.signal for event in events if isinstance(event, SignalReceived)]
        return [(str(one.type), one.by) for one in found]

    assert asyncio.run(signals()) == [("reject", getpass.getuser()), ("approve", getpass.getuser())]


def test_an_answer_that_waits_is_not_shown_as_the_answer(flyball: Flyball, home: Path) -> None:
    draft(home)
    assert "The draft." not in flyball("show", "draft-1").out
    assert flyball("show", "draft-1", "--json").json["answer"] is None
    assert "The draft." in flyball("why", "draft-1").out


def test_an_answer_that_waits_is_approved_by_yes(flyball: Flyball, home: Path) -> None:
    draft(home)
    assert flyball("resume", "draft-1", "-m", "test:No.", "-q", "--yes").out == "The draft.\n"


def test_approving_and_rejecting_at_once(flyball: Flyball) -> None:
    assert flyball("resume", "--approve", "--reject", "x").code == 2


def test_a_paused_run_goes_on(flyball: Flyball, home: Path) -> None:
    waiting(home)
    signalled(home, SignalType.APPROVE)
    signalled(home, SignalType.PAUSE)
    said = flyball("resume", "nero-1", "-m", "test:Done.", "--tools", TOOLBOX + ":burn", "-q")
    assert said.out == "Done.\n"


# fork


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        ((), "RUN is missing: the run: its id, the beginning of it, or last (see: flyball fork --help)"),
        (("last",), "--at is missing: after which turn; 0 begins anew (see: flyball fork --help)"),
        (("last", "--at"), "--at needs a value (see: flyball fork --help)"),
    ],
    ids=["run", "turn", "value"],
)
def test_what_a_fork_needs(flyball: Flyball, argv: tuple[str, ...], told: str) -> None:
    said = flyball("fork", *argv)
    assert (said.code, said.out, said.err) == (2, "", f"flyball: CONFIG_USAGE: {told}\n")


def test_a_fork_is_a_run_of_its_own(flyball: Flyball) -> None:
    flyball(*FORECAST)
    said = flyball("fork", "last", "--at", "1", "-m", "test:Sun.", "--json")
    assert said.json["content"] == "Sun."
    assert [call["name"] for call in said.json["tool_calls_made"]] == ["weather"]
    lines = flyball("runs", "--json").json
    assert [line["model"] for line in lines] == ["test:Sun.", "scripted:forecast"]
    assert "⑂ forked" in flyball("show").out
    assert flyball("fork", "last", "--at", "1", "-q").out == "Sun.\n", "by the fork's own model"


def test_a_fork_says_something_else(flyball: Flyball) -> None:
    flyball("ask", "one", "-m", "scripted:echo")
    assert flyball("fork", "last", "two", "--at", "0", "-q").out == "two\n"
    assert flyball("fork", "last", "three", "four", "--at", "1", "-q").out == "two | three four\n"


def test_a_fork_has_a_deadline_of_its_own(flyball: Flyball) -> None:
    flyball("ask", "one", "-m", "scripted:echo")
    said = flyball("fork", "last", "two", "--at", "0", "-m", "scripted:hangs", "--deadline", "0.1")
    assert said.code == 124


@pytest.mark.parametrize(
    ("argv", "told"),
    [(["--at", "7"], "cannot be forked"), (["--at", "1"], "give a prompt"), ([], "--at")],
    ids=["no such turn", "no prompt", "no turn"],
)
def test_a_fork_that_cannot_be(flyball: Flyball, argv: list[str], told: str) -> None:
    flyball("ask", "one", "-m", "scripted:echo")
    said = flyball("fork", "last", *argv)
    assert said.code == 2
    assert told in said.err
    assert len(flyball("runs", "--json").json) == 1


def test_a_module_that_is_gone(flyball: Flyball) -> None:
    Path("mine.py").write_text(
        "from flyball import tool\n\n\n@tool\ndef look(city: str) -> str:\n    'Look.'\n    return 'fog'\n"
    )
    flyball("ask", "Rome?", "-m", "scripted:forecast", "--tools", "mine")
    Path("mine.py").unlink()
    import sys

    sys.modules.pop("mine")
    said = flyball("fork", "last", "--at", "1")
    assert said.code == 2
    assert "there is no module 'mine'" in said.err


def test_ids_that_others_chose_are_shown_whole(flyball: Flyball, home: Path) -> None:
    waiting(home)
    assert "nero-1" in flyball("runs").out
    assert new_id()[:12] not in flyball("runs").out


def documents(flyball: Flyball, *commands: str) -> list[Any]:
    return [flyball(command, "--json").json for command in commands]


def test_every_reading_command_prints_one_document(flyball: Flyball) -> None:
    flyball(*FORECAST)
    assert all(documents(flyball, "runs", "show", "why", "replay", "resume", "doctor"))


# Runs under others


def test_a_run_that_waits_for_one_under_it_says_so(flyball: Flyball, home: Path) -> None:
    """Its own calls do not wait for anybody: one of those under it does."""

    async def begin() -> str:
        nero = Agent(
            ScriptedEngine(tool_call("burn", {"city": "Rome"}, id="burn_1")), tools=[burn], name="nero"
        )
        engine = ScriptedEngine(tool_call("nero", {"prompt": "Go."}), name="test")
        async with SQLiteJournal(home / "runs.db") as journal:
            rome = Agent(engine, tools=[nero.as_tool()], name="rome")
            running = asyncio.ensure_future(rome.run("Go.", journal=journal, loop_id="rome-1"))
            async with asyncio.timeout(PATIENCE):
                while not (found := await calls_waiting(journal, "rome-1") if await journal.loops() else ()):  # noqa: ASYNC110 - it drives itself
                    await asyncio.sleep(0)
            running.cancel()
            await asyncio.wait([running])
            return found[0].loop_id

    child = asyncio.run(begin())
    line = f"burn (burn_1) of nero, loop {child}, waits to be approved"
    lines = {one["run"]: one for one in flyball("runs", "--json").json}
    assert (lines["rome-1"]["stage"], lines["rome-1"]["waits"]) == ("awaiting_approval", [line])
    assert (lines[child]["stage"], lines[child]["waits"]) == ("awaiting_approval", [])
    shown = flyball("show", "rome-1").out
    assert "⇣ child" in shown
    assert f"⧗ {line}" in shown
    assert f"It waits for a run under it: {line}." in flyball("why", "rome-1").out
    assert flyball("signal", "rome-1", "approve").out == "approve: run rome-1 is executing\n"
    assert f"⧗ {line}" not in flyball("show", "rome-1").out


# Runs that are flows


def test_an_answer_in_two_phases_is_one_run_for_its_user(flyball: Flyball, tmp_path: Path) -> None:
    """The runs under it are found by their ids; `last` and what they share mean the run itself."""
    schema = tmp_path / "schema.json"
    schema.write_text('{"type": "object", "properties": {"a": {"enum": ["x"]}}, "required": ["a"]}')
    said = flyball(
        "ask",
        "Which?",
        "-m",
        'test:{"a":"x"}',
        "--tools",
        TOOLBOX + ":weather",
        "--schema",
        str(schema),
        "--json",
    )
    assert (said.code, said.json["structured_output"]) == (0, {"a": "x"})
    loop_id = said.json["loop_id"]
    for name in ("last", loop_id[:12], loop_id):
        for command in ("replay", "resume"):
            again = flyball(command, name, "--json")
            assert (again.code, again.json["loop_id"], again.json["structured_output"]) == (
                0,
                loop_id,
                {"a": "x"},
            )
    assert flyball("replay", "last", "-q").out == '{\n  "a": "x"\n}\n'
    assert "Which?" in flyball("show", "last").out
    assert flyball("replay", f"{loop_id}-s1", "-q").code == 0


def test_a_vote_is_gone_on_with_as_it_was_begun(flyball: Flyball, tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text('{"type": "object", "properties": {"a": {"enum": ["x"]}}, "required": ["a"]}')
    said = flyball(
        "ask", "Which?", "-m", 'test:{"a":"x"}', "--schema", str(schema), "--votes", "2", "--json"
    ).json
    assert (said["confidence"], said["token_usage"]["requests"]) == (1.0, 2)
    assert flyball("resume", "last", "--json").json["confidence"] == 1.0
    for wrong in (("--votes", "2"), ("--votes", "0", "--schema", str(schema))):
        refused = flyball("ask", "Which?", "-m", "test:x", *wrong)
        assert refused.code != 0
        assert "--votes asks that often" in refused.err


def test_a_plan_from_a_file_or_by_the_model(flyball: Flyball, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(
        '{"steps": [{"name": "a", "type": "infer", "input": "One?"}, {"name": "b", "type": "infer"}]}'
    )
    said = flyball("ask", "Why?", "-m", "test:said", "--plan", str(plan), "--json")
    assert (said.code, said.json["structured_output"]) == (0, {"a": "said", "b": "said"})
    assert flyball("ask", "Why?", "-m", "test:said", "--plan", str(plan), "-q").out == "said\n"
    made = flyball("ask", "Why?", "-m", "scripted:echo", "--planned", "--json")
    assert made.code != 0, "what only repeats what it is told makes no plan"
    made = flyball("ask", "Why?", "-m", "test:done", "--planned", "-q")
    assert (made.code, made.out) == (0, "done\n")
    for text, told in (
        ("[]", "a plan is an object"),
        ("{", "it holds no JSON"),
        ('{"steps": [{}]}', "plan.steps[0].name"),
    ):
        plan.write_text(text)
        refused = flyball("ask", "Why?", "-m", "test:said", "--plan", str(plan))
        assert refused.code != 0
        assert told in refused.err
