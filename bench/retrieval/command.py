"""The command: asks every way to retrieve all questions, and prints how often it found the right section."""

from __future__ import annotations

import asyncio
import json
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from bench.retrieval.measure import LOOKED_AT, Figures, measure
from bench.retrieval.questions import DOCS, Question, all_questions, without_a_section
from bench.retrieval.ways import ways_with, ways_without
from flyball.context.chunking import ChunkSize, Loaded, load_folder
from flyball.core.errors import FlyballError
from flyball.inference.registry import resolve_engine

if TYPE_CHECKING:
    from rich.table import Table

VECTORS = Path(__file__).with_name("vectors.db")
"""Where a model's vectors are kept, so that they are made once."""


def main(arguments: Sequence[str] | None = None, out: TextIO | None = None) -> int:
    """Run the command; gives 1 if a question names a section that is not there, 2 if an engine failed."""
    from rich.console import Console

    options = _parser().parse_args(arguments)
    console = Console(file=out, highlight=False, soft_wrap=True)
    loaded = load_folder(options.docs, ["*.md"], size=ChunkSize(options.tokens, options.tokens // 8))
    questions = all_questions()[: options.limit]
    if missing := without_a_section(questions, [chunk.source for chunk in loaded.chunks]):
        console.print(f"questions name sections that are not there: {', '.join(missing)}")
        return 1
    models: list[str] = [] if options.no_model else options.model or models_there()
    try:
        figures = asyncio.run(_measure_all(loaded, questions, models, options.judge, options.vectors))
    except FlyballError as error:
        print(f"{error.code}: {error}", file=sys.stderr)
        return 2
    console.print(table(figures, f"{len(questions)} questions over {len(loaded.chunks)} chunks of the docs"))
    if not models:
        console.print("without the embedded engine's embeddings: none was named, or none is on this machine")
    if options.details:
        for each in figures:
            _tell_missed(console, each, questions)
    if options.json is not None:
        options.json.write_text(json.dumps([as_json(each) for each in figures], indent=2) + "\n")
    return 0


async def _measure_all(
    loaded: Loaded, questions: Sequence[Question], models: Sequence[str], judge: bool, vectors: Path
) -> list[Figures]:
    figures = [await measure(way, retriever, questions) async for way, retriever in ways_without(loaded)]
    for model in models:
        engine: Any = resolve_engine(model)
        print(f"{model}: what is new in the docs is embedded, and kept in {vectors.name}", file=sys.stderr)
        try:
            ways = ways_with(loaded, model, engine, engine if judge else None, vectors)
            figures += [await measure(way, retriever, questions) async for way, retriever in ways]
        finally:
            await engine.aclose()
    return figures


def models_there() -> list[str]:
    """The smallest model whose file is on this machine, if there is one: nothing is fetched for this."""
    from flyball.models import DEFAULT, SMALL, installed

    there = {record.name for record in installed()}
    return [f"local:{model.name}" for model in (SMALL, DEFAULT) if model.name in there][:1]


def table(figures: Sequence[Figures], title: str) -> Table:
    """One line for each way."""
    from rich.table import Table

    shown = Table(title=title, title_justify="left")
    shown.add_column("way")
    for heading in ("hit@1", "hit@3", f"MRR@{LOOKED_AT}", "a question"):
        shown.add_column(heading, justify="right")
    for each in figures:
        shares = [f"{each.hit(1):.0%}", f"{each.hit(3):.0%}", f"{each.mrr:.3f}"]
        shown.add_row(each.way, *shares, f"{each.seconds * 1000:.1f} ms")
    return shown


def as_json(figures: Figures) -> dict[str, Any]:
    """Figures for a file."""
    return {
        "way": figures.way,
        "hit_1": figures.hit(1),
        "hit_3": figures.hit(3),
        "mrr": figures.mrr,
        "seconds": figures.seconds,
        "ranks": list(figures.ranks),
    }


def _tell_missed(console: Any, figures: Figures, questions: Sequence[Question]) -> None:
    for question, rank in zip(questions, figures.ranks, strict=True):
        if not 0 < rank <= 3:
            place = f"at {rank}" if rank else "not found"
            console.print(f"{figures.way}: {place}: {question.ask} ({', '.join(question.answered)})")


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="bench/retrieval/run.py", description=" ".join((__doc__ or "").split()))
    add = parser.add_argument
    add(
        "-m",
        "--model",
        action="append",
        help="a local model; may be said again (the smallest that is there)",
    )
    add("--no-model", action="store_true", help="only what needs no model")
    add("--judge", action="store_true", help="have the model rerank, too (takes its time)")
    add("--tokens", type=int, default=ChunkSize().max_tokens, metavar="N", help="how large chunks are")
    add("--limit", type=int, metavar="N", help="only the first N questions")
    add("--docs", type=Path, default=DOCS, metavar="FOLDER", help="another version of the docs")
    add("--vectors", type=Path, default=VECTORS, metavar="FILE", help="where the model's vectors are kept")
    add("--details", action="store_true", help="show which questions were missed")
    add("--json", type=Path, metavar="FILE", help="write the figures to a file")
    return parser
