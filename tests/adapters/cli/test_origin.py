"""What a run was begun with, told from its journal; and where things are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from flyball import Agent, MemoryJournal, user
from flyball.adapters.cli.driven import Driven
from flyball.adapters.cli.origin import Origin, agent_and_model, origin_of
from flyball.adapters.cli.places import data_folder, journal_file
from flyball.core.messages import assistant, tool_result
from flyball.inference.answers import tool_call
from flyball.inference.scripted import ScriptedEngine
from flyball.orchestrate.projections.summary import said_first
from flyball.orchestrate.provenance import KEY
from flyball.orchestrate.recorded import load


@pytest.mark.parametrize("metadata", [None, {"tenant": "x"}, {KEY: 3}, {KEY: {"tools": 3}}], ids=str)
async def test_a_run_of_another_program_has_its_specs_model(metadata: dict[str, object] | None) -> None:
    journal = MemoryJournal()
    given = {} if metadata is None else {"metadata": metadata}
    await Agent("test:hi", name="greeter").run("hi", journal=journal, loop_id="loop", **given)  # pyright: ignore[reportArgumentType]
    events, state = await load(journal, "loop")
    assert origin_of(events, state) == Origin("test:hi")
    assert agent_and_model(events, state) == "greeter · test:hi"


async def test_a_run_without_a_prompt_began_with_the_last_question() -> None:
    journal = MemoryJournal()
    call = tool_call("add", {}, "1")
    history = (user("one plus two?"), assistant("", call), tool_result("1", "add", 3))
    await Agent(ScriptedEngine("three")).run(messages=history, journal=journal, loop_id="loop")
    _, state = await load(journal, "loop")
    assert said_first(state) == "one plus two?"


def test_what_is_named_anew_goes_first() -> None:
    origin = Origin("a", ("b",), "c:C")
    assert origin.changed(Driven()) == origin
    assert origin.changed(Driven("x", ("y",), "z:Z")) == Origin("x", ("y",), "z:Z")
    assert Origin().changed(Driven(), "local") == Origin("local")


def test_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FLYBALL_HOME", str(tmp_path))
    assert journal_file(None) == tmp_path / "runs.db"
    assert journal_file(Path("~/mine.db")) == Path.home() / "mine.db"
    monkeypatch.delenv("FLYBALL_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert "flyball" in data_folder().parts
