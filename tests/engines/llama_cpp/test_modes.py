"""All four modes of a system on a real model, with what was found in this project's own pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flyball import (
    Agent,
    InMemoryRetriever,
    KeywordScorer,
    MemoryJournal,
    Redundancy,
    Reranker,
    System,
    SystemRequest,
    chunk_markdown,
    rerank_handler,
    retrieve_handler,
    user,
)
from flyball.engines.llama_cpp import LlamaCppEngine
from flyball.orchestrate.contracts import ExecutionHints, Mode, OutputContract
from flyball.orchestrate.lifecycle import PATHS, transitions

PAGE = Path(__file__).resolve().parents[3] / "docs" / "flows.md"
COLOUR: dict[str, Any] = {
    "type": "object",
    "properties": {"colour": {"enum": ["red", "green", "blue"]}},
    "required": ["colour"],
    "additionalProperties": False,
}
QUESTION = "How does a flow go on after kill -9?"
PLAN = {
    "steps": [
        {"name": "find", "type": "retrieve", "input": QUESTION},
        {"name": "order", "type": "rerank"},
        {"name": "answer", "type": "infer"},
    ]
}


def library() -> InMemoryRetriever:
    return InMemoryRetriever(chunk_markdown(PAGE.read_text(encoding="utf-8"), "docs/flows.md"))


def asking(mode: Mode, text: str, **options: Any) -> SystemRequest:
    hints = ExecutionHints(max_tokens=40, temperature=0.7)
    return SystemRequest(messages=(user(text),), mode=mode, hints=hints, **options)


@pytest.mark.parametrize(
    "request_",
    [
        asking(Mode.CHAT, "Say hello."),
        asking(Mode.STRUCTURED, "Which colour is the sky?", output=OutputContract(COLOUR)),
        asking(Mode.PLAN, QUESTION, plan=PLAN),
        asking(Mode.REDUNDANT, "Which colour is grass?", output=OutputContract(COLOUR)),
    ],
    ids=lambda request: str(request.mode),
)
async def test_each_mode_on_a_real_model(engine: LlamaCppEngine, request_: SystemRequest) -> None:
    journal = MemoryJournal()
    system = System(
        Agent(engine, instructions="Answer briefly."),
        journal=journal,
        handlers={
            "retrieve": retrieve_handler(library(), limit=4),
            "rerank": rerank_handler(Reranker(KeywordScorer(), top_k=1)),
        },
        redundancy=Redundancy(n=3),
    )
    response = await system.handle(request_)
    assert response.error is None
    assert response.content
    assert response.usage.output_tokens
    if request_.output is not None:
        answer: Any = response.structured_output
        assert answer["colour"] in COLOUR["properties"]["colour"]["enum"]
    if request_.mode is Mode.PLAN:
        steps: Any = response.structured_output
        assert [candidate["source"].partition("#")[0] for candidate in steps["order"]] == ["docs/flows.md"]
    if request_.mode is Mode.REDUNDANT:
        assert response.confidence in (pytest.approx(1 / 3), pytest.approx(2 / 3), 1.0)
        assert response.usage.requests >= 3
    moves = transitions(await journal.read(response.loop_id))
    assert ("init", *[str(move.to) for move in moves]) == PATHS[request_.mode].phases
