"""`flyball why`: a run explained, to the last word that was sent."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from flyball.adapters.cli.explaining import Explanation, Turn, explain
from flyball.adapters.cli.running import run
from flyball.adapters.cli.shared import SHARED, Shared
from flyball.core.encodable import as_text
from flyball.core.messages import Message, Retry, Role, Text, Thinking, ToolCall, ToolResult

_ROLES = {Role.SYSTEM: "magenta", Role.USER: "green", Role.ASSISTANT: "cyan", Role.TOOL: "blue"}


def why(
    run_id: Annotated[str, Parameter(name="RUN")] = "last",
    /,
    *,
    turn: int | None = None,
    shared: Shared = SHARED,
) -> int:
    """Explain a run: what was sent at each turn, what came back, what decided, what may be done next.

    Args:
        run_id: The run: its id, the beginning of it, or last.
        turn: Only this turn.
        shared: Options of all commands.
    """
    return run(_why(run_id, turn, shared))


async def _why(name: str, turn: int | None, shared: Shared) -> int:
    from flyball.adapters.cli.naming import find_run
    from flyball.adapters.cli.screen import write_json
    from flyball.core.errors import UserError
    from flyball.orchestrate.recorded import load

    async with shared.recorded() as journal:
        events, state = await load(journal, await find_run(journal, name))
    told = explain(events)
    if turn is not None:
        told = msgspec.structs.replace(told, turns=tuple([one for one in told.turns if one.number == turn]))
        if not told.turns:
            raise UserError(f"run {name!r} has no turn {turn}: it has {state.turn}")
    if shared.json:
        write_json(msgspec.to_builtins(told))
    else:
        print_explanation(told)
    return 0


def print_explanation(told: Explanation) -> None:
    """Print an explanation for a person."""
    from flyball.adapters.cli.naming import short

    _line(f"run {short(told.run)}", "bold cyan", f"  {_who(told)} · {told.stage}")
    _line(told.verdict, "red" if told.error is not None else "bold")
    for text in told.before:
        _line(f"• {text}", "yellow")
    for one in told.turns:
        _turn(one, told)
    _heading("next")
    width = max([len(step.command) for step in told.next], default=0)
    for step in told.next:
        _line(f"  {step.command:{width}}", "cyan", f"  {step.what}")


def _who(told: Explanation) -> str:
    return told.model if told.agent == "agent" else f"{told.agent} · {told.model}"


def _turn(turn: Turn, told: Explanation) -> None:
    attempt = f" · attempt {turn.attempt}" if turn.attempt > 1 else ""
    _heading(f"turn {turn.number}{attempt}")
    sent = turn.sent
    _line("sent", "bold", f"  to {told.model}, as {sent.id}")
    for message in sent.messages:
        _message(message)
    for tool in sent.tools:
        _line(f"  tool on offer: {tool.name}", "blue", f"  {tool.description}")
        _body(as_text(tool.parameters), "dim")
    if sent.output is not None:
        _line(f"  schema of the answer: {sent.output.name}", "blue")
        _body(as_text(sent.output.schema), "dim")
    if sent.grammar is not None:
        _line("  grammar of the answer", "blue")
        _body(sent.grammar, "dim")
    settings: dict[str, Any] = msgspec.to_builtins(sent.settings)
    if sent.tool_choice is not None:
        settings["tool_choice"] = msgspec.to_builtins(sent.tool_choice)
    if not sent.allows_text:
        settings["allows_text"] = False
    _line("  settings: ", "blue", as_text(settings) if settings else "the model's own")
    _came_back(turn)
    for text in turn.decided:
        _line(f"  • {text}", "yellow")


def _came_back(turn: Turn) -> None:
    if turn.answer is not None:
        usage = turn.answer.usage
        tokens = f", {usage.input_tokens} → {usage.output_tokens} tokens" if usage is not None else ""
        _line("came back", "bold", f"  after {turn.duration:.2f} s{tokens}")
        _message(turn.answer)
    elif turn.error is not None:
        _line("came back", "bold", f"  after {turn.duration:.2f} s, an error")
        if turn.partial is not None:
            _message(turn.partial)
    else:
        _line("came back", "bold", "  nothing: the call was not over when the run stopped")
    for record in turn.tools:
        came = record.error if record.error is not None else as_text(record.result)
        took = "" if record.duration is None else f"  {record.duration:.2f} s"
        _line(f"  tool {record.name}", "blue", f"{took}  {record.status}")
        _body(f"{as_text(record.arguments)} → {came}")
    _line("decided by", "bold")


def _message(message: Message) -> None:
    _line(f"  {message.role}", _ROLES[message.role])
    for part in message.parts:
        if isinstance(part, Text):
            _body(part.text)
        elif isinstance(part, Thinking | Retry):
            _body(part.text, "italic")
        elif isinstance(part, ToolCall):
            _body(f"→ {part.name} {part.args_json}  ({part.id})")
        elif isinstance(part, ToolResult):
            _body(f"← {part.name}: {part.text}  ({part.call_id})")
        else:
            _body(f"[{type(part).__name__.lower()} {part.url[:80]}]")


def _heading(text: str) -> None:
    from flyball.adapters.cli.screen import out

    out().print()
    out().rule(text, align="left", style="dim", characters="─")


def _line(text: str, style: str, more: str = "") -> None:
    from rich.text import Text as Styled

    from flyball.adapters.cli.screen import out, plain

    line = Styled(plain(text), style=style)
    line.append(plain(more), style="not bold dim")
    out().print(line, soft_wrap=True)


def _body(text: str, style: str = "") -> None:
    from rich.text import Text as Styled

    from flyball.adapters.cli.screen import out, plain

    indented = "\n".join([f"    {line}" for line in plain(text).splitlines()] or ["    "])
    out().print(Styled(indented, style=style), soft_wrap=True)
