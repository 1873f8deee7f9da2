"""The measurement of retrieval: its questions fit the docs, its arithmetic is right, and it runs."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from bench.retrieval.command import main
from bench.retrieval.measure import Figures, measure, rank_of
from bench.retrieval.questions import DOCS, Question, all_questions, without_a_section

from flyball.context.chunk import Chunk
from flyball.context.chunking import load_folder
from flyball.context.in_memory import InMemoryRetriever
from flyball.inference.permission import VARIABLE
from tests.constraint.grammar.tiny_model import write_tiny_model


@pytest.mark.integration
def test_there_are_many_questions_and_their_sections_are_there() -> None:
    questions = all_questions()
    assert len(questions) >= 40
    assert len({question.ask for question in questions}) == len(questions)
    assert all(question.answered for question in questions)
    sources = [chunk.source for chunk in load_folder(DOCS, ["*.md"]).chunks]
    assert without_a_section(questions, sources) == [], "a heading was changed: change the question, too"
    assert without_a_section([Question("?", ("a.md#b",))], sources) == ["a.md#b"]


@pytest.mark.parametrize(
    ("sources", "rank"),
    [
        (["a.md#a"], 1),
        (["x", "x", "y", "a.md#b"], 3),
        (["x"], 0),
        ([], 0),
        ([*map(str, range(10)), "a.md#a"], 0),
    ],
)
def test_sections_count_once_and_the_first_right_one_counts(sources: list[str], rank: int) -> None:
    assert rank_of(Question("?", ("a.md#a", "a.md#b")), sources) == rank


def test_figures() -> None:
    figures = Figures("a way", (1, 2, 0, 4), 0.001)
    assert (figures.hit(1), figures.hit(3), figures.hit(10)) == (0.25, 0.5, 0.75)
    assert figures.mrr == pytest.approx((1 + 0.5 + 0.25) / 4)


async def test_a_retriever_is_measured() -> None:
    retriever = InMemoryRetriever([Chunk("tea at four", "tea.md"), Chunk("bread at four", "bread.md")])
    questions = [
        Question("bread", ("bread.md",)),
        Question("four", ("bread.md",)),
        Question("milk", ("tea.md",)),
    ]
    figures = await measure("keyword", retriever, questions)
    assert figures.ranks == (1, 2, 0)
    assert figures.seconds >= 0


def test_the_command_runs_without_a_model(tmp_path: Path) -> None:
    out, file = StringIO(), tmp_path / "figures.json"
    assert main(["--no-model", "--limit", "3", "--details", "--json", str(file)], out) == 0
    ways = [row["way"] for row in json.loads(file.read_text())]
    assert ways[:3] == ["keyword", "fts5", "embeddings, hashed"]
    assert "hybrid" in out.getvalue()
    assert "without the embedded engine's embeddings" in out.getvalue()


@pytest.mark.integration
def test_the_command_runs_with_a_real_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    model = f"local:{write_tiny_model(tmp_path / 'tiny.gguf')}"
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "control.md").write_text("# Control\n\n## The deadline\n\nA run is stopped after some seconds.\n")
    file = tmp_path / "figures.json"
    options = ["-m", model, "--limit", "1", "--docs", str(docs), "--vectors", str(tmp_path / "vectors.db")]
    assert main([*options, "--judge", "--json", str(file)], StringIO()) == 0
    rows = {row["way"]: row for row in json.loads(file.read_text())}
    assert rows["fts5"]["hit_1"] == 1.0
    assert f"embeddings, {model}" in rows
    assert f"hybrid, reranked by {model}'s embeddings" in rows
    assert f"hybrid, reranked by asking {model}" in rows


def test_docs_that_do_not_have_the_sections_are_told(tmp_path: Path) -> None:
    out = StringIO()
    (tmp_path / "other.md").write_text("# Other")
    assert main(["--no-model", "--docs", str(tmp_path)], out) == 1
    assert "sections that are not there" in out.getvalue()


def test_an_engine_that_fails_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-m", "local:/no/such/file.gguf", "--limit", "1"], StringIO()) == 2
    assert "CONFIG" in capsys.readouterr().err
