"""`flyball ask`: one question, one answer, one recorded run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from flyball.adapters.cli.driven import DEADLINE, DRIVEN, Driven, default_model, settings
from flyball.adapters.cli.running import run
from flyball.adapters.cli.shared import SHARED, Shared
from flyball.core.errors import UserError

if TYPE_CHECKING:
    from flyball.adapters.cli.origin import Origin
    from flyball.orchestrate.contracts import SystemRequest


def ask(
    *words: str,
    system: Annotated[str, Parameter(name=["--system", "-s"])] = "",
    schema: Path | None = None,
    grammar: Path | None = None,
    votes: int | None = None,
    plan: Path | None = None,
    planned: bool = False,
    temperature: float | None = None,
    max_tokens: int | None = None,
    deadline: float | None = None,
    driven: Driven = DRIVEN,
    shared: Shared = SHARED,
) -> int:
    """Ask a model something; the run is recorded.

    The answer goes to stdout. What is piped in is added to the words; `-` stands for it.

    Args:
        words: The prompt.
        system: Instructions for the model.
        schema: A file with a JSON Schema that the answer must follow.
        grammar: A file with a grammar (GBNF) that the decoder is held to, of a model that can be (local).
        votes: Ask so many times, and give what most of the answers say; with --schema.
        plan: A file with a plan (JSON): steps of the types infer and tool, one after the other.
        planned: Have the model make a plan first.
        temperature: How freely the model chooses its words.
        max_tokens: How many tokens an answer may have.
        deadline: Seconds for the whole run; 0 for no limit. Without it 120, or no limit where you are asked
            about calls that need approval.
        driven: Options of commands that drive a run.
        shared: Options of all commands.
    """
    from msgspec.structs import replace

    from flyball.adapters.cli.loading import grammar_of, plan_of, schema_of
    from flyball.adapters.cli.origin import Origin
    from flyball.adapters.cli.prompting import prompt_of
    from flyball.core.messages import user
    from flyball.orchestrate.contracts import Mode, OutputContract, SystemRequest

    if schema is not None and driven.output is not None:
        raise UserError("--schema and --output both say what the answer is: give one of them")
    if grammar is not None and (schema is not None or driven.output is not None):
        given = "--schema" if schema is not None else "--output"
        raise UserError(f"--grammar and {given} both say how the answer is written: give one of them")
    if votes is not None and (schema is None or votes < 1):
        raise UserError(f"--votes asks that often, from 1, for an answer by a --schema: not {votes}")
    if (plan is not None or planned) and (schema is not None or grammar is not None):
        raise UserError("a plan's steps have answers of their own: leave --schema and --grammar out")
    origin = replace(Origin().changed(driven, default_model()), votes=votes or 0)
    fields: dict[str, Any] = {}
    if schema is not None:
        fields["mode"] = Mode.STRUCTURED if votes is None else Mode.REDUNDANT
    if plan is not None or planned:
        fields |= {"mode": Mode.PLAN, "plan": None if plan is None else plan_of(plan)}
    if schema is not None or grammar is not None:
        fields["output"] = OutputContract(
            schema=None if schema is None else schema_of(schema),
            grammar=None if grammar is None else grammar_of(grammar),
        )
    hints = settings(max_tokens, temperature, DEADLINE if deadline is None else deadline)
    options = {**origin.options(), "instructions": system}
    request = SystemRequest(
        messages=(user(prompt_of(words)),), hints=hints, metadata=origin.metadata(), **fields
    )
    return run(_ask(request, origin, options, driven, shared, is_bound=deadline is not None))


async def _ask(
    request: SystemRequest,
    origin: Origin,
    options: dict[str, Any],
    driven: Driven,
    shared: Shared,
    *,
    is_bound: bool,
) -> int:
    from msgspec.structs import replace

    from flyball.adapters.cli.answering import Answer
    from flyball.adapters.cli.approving import somebody_is_here
    from flyball.adapters.cli.serving import is_typed, only_response, serving, shown
    from flyball.core.ids import new_id

    journal, loop_id = shared.open(), new_id()
    async with serving(journal, origin, options) as system:
        asks = any(tool.spec.approval for tool in system.agent.config.tools)
        if asks and not is_bound and not driven.yes and somebody_is_here():
            request = replace(request, hints=replace(request.hints, timeout=None))
        answer = None
        if not shared.json:
            typed = request.output is not None and request.output.schema is not None
            typed = typed or is_typed(system.agent.spec)
            answer = Answer(typed=typed, tools=origin.has_tools, quiet=driven.quiet)
        pieces = system.stream(request, loop_id=loop_id)
        if request.mode == "plan":
            pieces = only_response(pieces)
        return await shown(pieces, answer, journal, loop_id, asks=asks, yes=driven.yes)
