"""The modes of a system on the same model: one answer by a schema, a vote on it, and a plan over the docs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from rich.console import Console

from flyball import (
    Agent,
    ChunkSize,
    ExecutionHints,
    InMemoryRetriever,
    MemoryJournal,
    Mode,
    OutputContract,
    Redundancy,
    System,
    SystemRequest,
    SystemResponse,
    load_folder,
    retrieve_handler,
    user,
)

DOCS = Path(__file__).resolve().parents[1] / "docs"
TICKET = "Water is running into the cellar, and it is rising."
URGENT: dict[str, Any] = {
    "type": "object",
    "properties": {"urgent": {"type": "boolean"}},
    "required": ["urgent"],
    "additionalProperties": False,
}
QUESTION = "Which signals may be sent to a flow?"
PLAN = {
    "steps": [{"name": "look up", "type": "retrieve", "input": QUESTION}, {"name": "answer", "type": "infer"}]
}


async def show_modes(model: Any, console: Console) -> None:
    """Ask in each of the modes, and show what came of it."""
    library = InMemoryRetriever(load_folder(DOCS, ["flows.md"], size=ChunkSize(90, 0)).chunks)
    system = System(
        Agent(model, instructions="Answer in one short sentence."),
        journal=MemoryJournal(),
        handlers={"retrieve": retrieve_handler(library, limit=1)},
        redundancy=Redundancy(n=3),
    )
    asked: tuple[tuple[Mode, str, float, dict[str, Any]], ...] = (
        (Mode.STRUCTURED, TICKET, 0.0, {"output": OutputContract(URGENT)}),
        (Mode.REDUNDANT, TICKET, 0.6, {"output": OutputContract(URGENT)}),
        (Mode.PLAN, QUESTION, 0.0, {"plan": PLAN}),
    )
    for mode, said, warmth, more in asked:
        hints = ExecutionHints(max_tokens=40, temperature=warmth)
        request = SystemRequest(messages=(user(said),), mode=mode, hints=hints, **more)
        began = time.perf_counter()
        _tell(mode, said, await system.handle(request), time.perf_counter() - began, console)


def _tell(mode: Mode, said: str, response: SystemResponse, seconds: float, console: Console) -> None:
    usage = response.usage
    calls = f"{usage.requests} model call{'' if usage.requests == 1 else 's'}"
    took = f"{usage.input_tokens} → {usage.output_tokens} tokens, {calls}, {seconds:.2f} s"
    console.print(f"[bold cyan]{mode}[/]  [dim]{took}[/]", highlight=False)
    console.print(f"[bold green]>[/] {said}", highlight=False)
    if response.error is not None:
        console.print(f"{response.error.code}: {response.error.message}", markup=False, style="red")
    sure = f"   ({response.confidence:.0%} agree)" if response.confidence is not None else ""
    console.print(f"{response.content.strip()}{sure}\n", markup=False, highlight=False)
