"""One question, one answer, one recorded run."""

from __future__ import annotations

import asyncio
import getpass
import json
import os
import platform
from pathlib import Path

import pytest

from flyball.core.events import Event, SignalReceived, Started
from flyball.core.signals import SignalType
from flyball.runtime.sqlite import SQLiteJournal
from tests.adapters.cli.conftest import TOOLBOX, Flyball

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def recorded(home: Path, loop_id: str) -> list[Event]:
    async def read() -> list[Event]:
        async with SQLiteJournal(home / "runs.db") as journal:
            return await journal.read(loop_id)

    return asyncio.run(read())


# Where the prompt comes from


@pytest.mark.parametrize(
    ("argv", "stdin", "prompt"),
    [
        (["hello"], "", "hello"),
        (["hello", "world"], "", "hello world"),
        ([], "from a pipe\n", "from a pipe"),
        (["-"], "from a pipe\n", "from a pipe"),
        (["Summarise:"], "a file\nof lines\n", "Summarise:\n\na file\nof lines"),
        (["Summarise:", "-"], "a file", "Summarise:\n\na file"),
        (["--", "-5 + 3?"], "", "-5 + 3?"),
        (["--", "-s", "-"], "a file", "-s\n\na file"),
        (["grüße"], b"\xef\xbb\xbfmit BOM", "grüße\n\nmit BOM"),
    ],
    ids=[
        "word",
        "words",
        "pipe",
        "dash",
        "both",
        "both with a dash",
        "after two dashes",
        "a dash there",
        "with a BOM",
    ],
)
def test_the_prompt(flyball: Flyball, argv: list[str], stdin: str | bytes, prompt: str) -> None:
    said = flyball("ask", "-m", "scripted:echo", "-q", *argv, stdin=stdin)
    assert (said.code, said.out, said.err) == (0, f"{prompt}\n", "")


@pytest.mark.parametrize(
    ("stdin", "told"), [("", "no prompt"), (" \n", "no prompt"), (b"\x89PNG", "no text")]
)
def test_no_prompt(flyball: Flyball, stdin: str | bytes, told: str) -> None:
    said = flyball("ask", "-m", "test", stdin=stdin)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("flyball: CONFIG_USAGE: ")
    assert told in said.err


@pytest.mark.parametrize("option", ["-s", "--schema", "--grammar", "-m", "--tools", "--journal", "--output"])
def test_only_the_prompt_comes_from_stdin(flyball: Flyball, home: Path, option: str) -> None:
    said = flyball("ask", "hello", option, "-", stdin="x")
    assert (said.code, said.out) == (2, "")
    assert said.err == (
        f"flyball: CONFIG_USAGE: {option} -: only a prompt is read from stdin; a file may be /dev/stdin\n"
    )
    assert not (home / "runs.db").exists()


def test_a_dash_may_follow_a_flag(flyball: Flyball) -> None:
    assert flyball("ask", "-m", "scripted:echo", "-q", "-", stdin="piped").out == "piped\n"


@pytest.mark.parametrize("other", [["--schema", "s.json"], ["--output", f"{TOOLBOX}:City"]])
def test_a_grammar_and_a_schema_are_one_too_many(flyball: Flyball, other: list[str]) -> None:
    Path("s.json").write_text(json.dumps(SCHEMA))
    Path("g.gbnf").write_text('root ::= "yes"')
    said = flyball("ask", "hello", "-m", "test", "--grammar", "g.gbnf", *other)
    assert said.code == 2
    assert f"--grammar and {other[0]} both say how the answer is written" in said.err


def test_nobody_else_may_read_what_was_said(flyball: Flyball, home: Path) -> None:
    assert flyball("ask", "-m", "test", "secret").code == 0
    assert {file.name: file.stat().st_mode & 0o077 for file in home.iterdir() if file.is_file()} == {
        "runs.db": 0,
        "runs.db.driven": 0,
    }


# What comes out


def test_the_answer_is_on_stdout_and_its_costs_on_stderr(flyball: Flyball) -> None:
    said = flyball("ask", "hello", "-m", "scripted:echo")
    assert said.out == "hello\n"
    assert said.err.startswith("41 → 12 tokens · 44 tokens/s · ")
    assert "\x1b" not in said.out + said.err
    assert said.err.count("\n") == 1


def test_json_is_one_document(flyball: Flyball) -> None:
    said = flyball("ask", "hello", "-m", "test:hi", "--json")
    assert (said.code, said.err) == (0, "")
    assert (said.json["ok"], said.json["content"], said.json["error"]) == (True, "hi", None)


def test_a_run_is_recorded_with_what_it_was_begun_with(flyball: Flyball, home: Path) -> None:
    said = flyball(
        "ask", "hello", "-m", "scripted:forecast", "--tools", TOOLBOX + ":weather", "--json",
        "-s", "Be brief.", "--temperature", "0.5", "--max-tokens", "7",
    )  # fmt: skip
    started = recorded(home, said.json["loop_id"])[0]
    assert isinstance(started, Started)
    assert started.metadata == {
        "flyball": {
            "model": "scripted:forecast",
            "tools": [TOOLBOX + ":weather"],
            "process": f"{platform.node()}/{os.getpid()}",
        }
    }
    assert started.spec.limits.timeout == 120
    assert (started.spec.instructions, started.spec.settings.temperature) == ("Be brief.", 0.5)
    assert started.spec.settings.max_tokens == 7


def test_a_journal_of_ones_own(flyball: Flyball, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.db"
    assert flyball("ask", "hello", "-m", "test", "--journal", str(file)).code == 0
    assert file.exists()
    assert not (home / "runs.db").exists()
    assert flyball("runs", "--journal", str(file), "--json").json[0]["prompt"] == "hello"


def test_the_model_of_the_environment(flyball: Flyball, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYBALL_MODEL", "test:from the environment")
    assert flyball("ask", "hello", "-q").out == "from the environment\n"


def test_without_a_terminal_only_the_answer_is_written(flyball: Flyball) -> None:
    said = flyball("ask", "Rome?", "-m", "scripted:forecast", "--tools", TOOLBOX + ":weather")
    assert said.out == "It says: rain in Rome. Take an umbrella.\n"
    assert "1 tool call" in said.err


def test_an_engine_is_closed(flyball: Flyball, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOSED", str(tmp_path / "closed"))
    flyball("ask", "hello", "-m", "scripted:echo")
    assert (tmp_path / "closed").read_text() == "closed\n"


# What the answer must be


def test_an_answer_that_follows_a_schema(flyball: Flyball) -> None:
    Path("schema.json").write_text(json.dumps(SCHEMA))
    said = flyball("ask", "Where?", "-m", "test", "--schema", "schema.json")
    assert (said.code, said.json) == (0, {"city": ""})
    whole = flyball("ask", "Where?", "-m", "test", "--schema", "schema.json", "--json")
    assert whole.json["structured_output"] == {"city": ""}


def test_an_answer_of_a_type(flyball: Flyball) -> None:
    said = flyball("ask", "Where?", "-m", "test", "--output", f"{TOOLBOX}:City")
    assert (said.code, said.json) == (0, {"name": "", "people": 0})


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("no JSON", "holds no JSON"),
        ("[1]", "is an object, not a list"),
        ("false", "not false, which nothing follows"),
        ('{"type": "strnig"}', "strnig"),
    ],
    ids=["no JSON", "no object", "false", "no schema"],
)
def test_a_file_that_is_no_schema(flyball: Flyball, content: str, told: str) -> None:
    Path("schema.json").write_text(content)
    said = flyball("ask", "Where?", "-m", "test", "--schema", "schema.json")
    assert (said.code, said.out) == (3, "")
    assert said.err.startswith("flyball: CONFIG_SCHEMA_MALFORMED: --schema schema.json: ")
    assert told in said.err


@pytest.mark.parametrize(
    ("content", "answer"),
    [(b'{"type": "null"}', "null\n"), (b"true", "null\n"), (b'\xef\xbb\xbf{"const": 3}', "3\n")],
    ids=["null", "anything", "with a BOM"],
)
def test_an_answer_is_printed_without_what_it_was_wrapped_in(
    flyball: Flyball, content: bytes, answer: str
) -> None:
    Path("schema.json").write_bytes(content)
    said = flyball("ask", "What?", "-m", "test", "--schema", "schema.json", "-q")
    assert (said.code, said.out, said.err) == (0, answer, "")
    assert flyball("replay", "-q").out == answer


def test_a_text_that_was_cut_off_is_told(flyball: Flyball) -> None:
    said = flyball("ask", "Where?", "-m", "scripted:cut", "-q")
    told = "the answer was cut off at its limit of tokens: flyball ask --max-tokens sets a higher one\n"
    assert (said.code, said.out, said.err) == (0, '{"city": "Ro\n', told)


def test_an_object_that_was_cut_off_is_told_in_words_for_people(flyball: Flyball) -> None:
    Path("schema.json").write_text(json.dumps(SCHEMA))
    said = flyball("ask", "Where?", "-m", "scripted:cut", "--schema", "schema.json")
    assert (said.code, said.out) == (6, "")
    assert said.err.startswith(
        "flyball: CONSTRAINT_JSON_INVALID: the answer was cut off after 12 tokens, its limit: raise "
        "max_tokens (flyball ask --max-tokens sets a higher one; see: flyball why "
    )


def test_a_grammar_with_a_bom(flyball: Flyball) -> None:
    Path("yes.gbnf").write_bytes(b'\xef\xbb\xbfroot ::= "yes"')
    assert flyball("ask", "yes", "-m", "scripted:echo", "--grammar", "yes.gbnf").code == 0


def test_an_answer_that_follows_a_grammar(flyball: Flyball) -> None:
    Path("yes.gbnf").write_text('root ::= "yes" | "no"')
    assert flyball("ask", "no", "-m", "scripted:echo", "--grammar", "yes.gbnf").code == 0
    (turn,) = flyball("why", "--json").json["turns"]
    assert turn["sent"]["grammar"] == 'root ::= "yes" | "no"'


def test_an_answer_that_does_not_follow_its_grammar(flyball: Flyball) -> None:
    Path("yes.gbnf").write_text('root ::= "yes" | "no"')
    said = flyball("ask", "perhaps", "-m", "scripted:echo", "--grammar", "yes.gbnf")
    assert said.code == 6
    assert said.err.startswith("flyball: CONSTRAINT_GRAMMAR_REJECTED: the answer does not follow the grammar")


def test_a_model_that_cannot_be_held_to_a_grammar_is_not_asked(flyball: Flyball) -> None:
    Path("yes.gbnf").write_text('root ::= "yes" | "no"')
    said = flyball("ask", "Is it?", "-m", "test", "--grammar", "yes.gbnf")
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("flyball: CONFIG_USAGE: the model 'test' cannot be held to a grammar")
    assert flyball("runs", "--json").json == []


@pytest.mark.parametrize(
    ("content", "code", "told"),
    [
        (b'answer ::= "yes"', "CONFIG_GRAMMAR_NO_ROOT", "there is no rule 'root'"),
        (b"root ::= (", "CONFIG_GRAMMAR_MALFORMED", "line 1, column 10: this '(' is not closed"),
        (b"\xff\xfe", "CONFIG_GRAMMAR_MALFORMED", "it holds no text"),
        (None, "CONFIG_GRAMMAR_NOT_FOUND", "there is no such file"),
    ],
    ids=["no root", "no grammar", "no text", "no file"],
)
def test_a_file_that_is_no_grammar(flyball: Flyball, content: bytes | None, code: str, told: str) -> None:
    if content is not None:
        Path("yes.gbnf").write_bytes(content)
    said = flyball("ask", "Is it?", "-m", "test", "--grammar", "yes.gbnf")
    assert (said.code, said.out) == (3, "")
    assert said.err.startswith(f"flyball: {code}: --grammar yes.gbnf: ")
    assert told in said.err
    assert len(said.err.splitlines()) == 1
    assert flyball("runs").out.strip() in ("", "no runs yet"), "nothing is recorded of it"


def test_a_grammar_that_cannot_be_read(flyball: Flyball) -> None:
    Path("folder").mkdir()
    said = flyball("ask", "Is it?", "-m", "test", "--grammar", "folder")
    assert (said.code, said.out) == (2, "")
    assert "--grammar folder: it cannot be read: Is a directory" in said.err


# What goes wrong


@pytest.mark.parametrize(
    ("argv", "code", "told"),
    [
        (["-m", "scripted:dark"], 4, "INFERENCE_ENGINE_ERROR: the lights went out"),
        (["-m", "scripted:full"], 4, "INFERENCE_CONTEXT_EXCEEDED"),
        (["-m", "nonsense"], 3, "CONFIG_UNKNOWN_MODEL"),
        (["-m", "scripted:broken"], 3, "CONFIG_UNKNOWN_MODEL"),
        (["-m", "scripted:bug"], 2, "CONFIG_USAGE: the engine for 'scripted' could not be made"),
        (
            ["-m", "anthropic:claude"],
            3,
            "set the environment variable ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN",
        ),
        (["-m", "test", "--schema", "none.json"], 2, "CONFIG_USAGE: --schema none.json: it cannot be read"),
        (["-m", "test", "--schema", "a", "--output", "b:C"], 2, "give one of them"),
        (["-m", "test", "--deadline", "-1"], 2, "--deadline -1"),
        (["-m", "test", "--deadline", "inf"], 2, "--deadline inf"),
        (["-m", "test", "--temperature", "-1"], 2, "--temperature -1: give a number from 0"),
        (["-m", "test", "--temperature", "nan"], 2, "--temperature nan"),
        (["-m", "test", "--max-tokens", "0"], 2, "--max-tokens 0: give a number from 1"),
        (["-m", "test", "--bogus"], 2, "--bogus. (see: flyball ask --help)"),
        (["-m"], 2, "-m needs a value (see: flyball ask --help)"),
        (["-m", ""], 2, "the model's name is empty"),
        (["-m", "qwen"], 3, "did you mean 'local:qwen2.5-coder-0.5b' or"),
        (["-m", "test", "--journal", "nowhere/runs.db"], 2, "there is no folder nowhere: make it first"),
        (["--deadline", "soon"], 2, "soon"),
        (["-m", "scripted:hangs", "--deadline", "0.1"], 124, "CANCELLED_TIMEOUT"),
    ],
    ids=str,
)
def test_an_error_is_one_line_with_its_code(
    flyball: Flyball, monkeypatch: pytest.MonkeyPatch, argv: list[str], code: int, told: str
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)
    said = flyball("ask", "hello", *argv)
    assert said.code == code
    line = said.err.splitlines()[-1]
    assert line.startswith("flyball: ")
    assert told in line
    assert "Traceback" not in said.err
    as_json = flyball("ask", "hello", *argv, "--json")
    assert (as_json.code, as_json.err) == (code, "")
    assert as_json.json["error"]["code"] in line


def test_a_failed_run_says_where_to_look(flyball: Flyball) -> None:
    said = flyball("ask", "hello", "-m", "scripted:dark")
    run = said.err.split("flyball why ")[1].rstrip(")\n")
    assert flyball("why", run).code == 0


def test_debug_shows_where(flyball: Flyball) -> None:
    said = flyball("ask", "hello", "-m", "nonsense", "--debug")
    assert "Traceback" in said.err
    assert said.err.splitlines()[-1].startswith("flyball: CONFIG_UNKNOWN_MODEL")


def test_no_deadline(flyball: Flyball, home: Path) -> None:
    said = flyball("ask", "hello", "-m", "test", "--deadline", "0", "--json")
    started = recorded(home, said.json["loop_id"])[0]
    assert isinstance(started, Started)
    assert started.spec.limits.timeout is None


def test_an_unknown_command_and_none_at_all(flyball: Flyball) -> None:
    assert flyball("aks").code == 2
    said = flyball()
    assert (said.code, "ask" in said.out) == (0, True)
    assert flyball("--version").out.strip()


def test_what_is_unexpected_is_a_line_too(flyball: Flyball, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("who would have thought")

    monkeypatch.setattr("flyball.adapters.cli.prompting.prompt_of", broken)
    said = flyball("ask", "hello", "-m", "test")
    assert said.code == 1
    assert said.err.startswith("flyball: ORCHESTRATION_FAILED: flyball failed unexpectedly: ZeroDivision")
    assert "Traceback" in flyball("ask", "hello", "-m", "test", "--debug").err


def test_a_home_that_cannot_be_written(flyball: Flyball, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("file").write_text("")
    monkeypatch.setenv("FLYBALL_HOME", "file/home")
    said = flyball("ask", "hello", "-m", "test")
    assert said.code == 8
    assert said.err.startswith("flyball: ORCHESTRATION_JOURNAL_FAILED: ")


# Approval


def test_a_tool_that_needs_approval_is_refused_where_nobody_is_there(flyball: Flyball) -> None:
    said = flyball("ask", "Rome?", "-m", "scripted:forecast", "--tools", TOOLBOX + ":burn", "-q")
    assert said.code == 0
    assert "nobody is here to approve it" in said.out
    said = flyball("ask", "Rome?", "-m", "scripted:forecast", "--tools", TOOLBOX + ":burn", "-q", "--yes")
    assert "Rome burns" in said.out


async def test_who_decided_stands_in_the_journal(process: Flyball, home: Path) -> None:
    burn = ("ask", "Rome?", "-m", "scripted:forecast", "--tools", TOOLBOX + ":burn")
    process(*burn)
    process(*burn, "--yes")
    said: list[tuple[str, str]] = []
    async with SQLiteJournal(home / "runs.db") as journal:
        for loop_id in await journal.loops():
            events = await journal.read(loop_id)
            said += [(one.signal.type, one.signal.by) for one in events if isinstance(one, SignalReceived)]
    assert said == [(SignalType.APPROVE, getpass.getuser()), (SignalType.REJECT, getpass.getuser())]
    shown, why = process("show").out, process("why").out
    assert f"by {getpass.getuser()}" in shown
    assert f"the signal approve by {getpass.getuser()}" in why
