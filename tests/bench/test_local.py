"""What a grammar costs: the kinds, the arithmetic, and a run on a real engine."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from bench.local.command import main
from bench.local.kinds import KINDS, TOKENS, Kind
from bench.local.speed import Round, Speed

from flyball.constraint.grammar import check_grammar
from flyball.constraint.protocol import HermesProtocol
from flyball.inference.permission import VARIABLE
from tests.constraint.grammar.tiny_model import write_tiny_model


def speed(free: list[float], constrained: list[float]) -> Speed:
    sides = [tuple(Round(each, TOKENS) for each in side) for side in (free, constrained)]
    return Speed("local", "list", "a list", *sides)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_both_sides_read_the_same_and_differ_in_the_grammar(kind: Kind) -> None:
    rendered = HermesProtocol().render(kind.constrained)
    assert rendered.grammar is not None
    check_grammar(rendered.grammar)
    free = kind.free
    assert free.grammar is free.output is None
    assert not free.tools
    assert [message.text for message in free.messages] == [each["content"] for each in rendered.messages]
    assert free.settings.max_tokens == kind.constrained.settings.max_tokens == TOKENS


def test_the_fastest_rounds_are_compared() -> None:
    measured = speed([30.0, 40.0, 20.0], [38.0, 24.0, 19.0])
    assert (measured.best_free, measured.best_constrained) == (40.0, 38.0)
    assert measured.kept == pytest.approx(0.95)
    assert measured.kept_by_rounds == pytest.approx(0.95)
    assert measured.met
    assert not speed([40.0], [35.9]).met
    assert speed([40.0], [36.0]).met


@pytest.mark.integration
def test_a_real_engine_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    model = write_tiny_model(tmp_path / "tiny.gguf")
    out, file = StringIO(), tmp_path / "speeds.json"
    code = main(["-m", f"local:{model}", "--only", "lines", "--rounds", "2", "--json", str(file)], out)
    (row,) = json.loads(file.read_text())
    assert row["kind"] == "lines"
    assert [len(row[side]) for side in ("free", "constrained")] == [2, 2]
    assert all(each["speed"] > 0 and each["tokens"] == TOKENS for each in row["free"])
    assert all(each["tokens"] > TOKENS // 4 for each in row["constrained"])
    assert code == (0 if row["met"] else 1)
    assert "lines" in out.getvalue()
    assert ("missed" in out.getvalue()) is not row["met"]


def test_an_engine_that_fails_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-m", "local:no-such-model"]) == 2
    assert "CONFIG_UNKNOWN_MODEL" in capsys.readouterr().err
