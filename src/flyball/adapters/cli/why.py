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
from flyball.inference.rendered import Prompt
from flyball.inference.request import Request

_ROLES: dict[str, str] = {
    Role.SYSTEM: "magenta",
    Role.USER: "green",
    Role.ASSISTANT: "cyan",
    Role.TOOL: "blue",
}
_SHOWN = 3
"""Lines of a grammar that are shown unless all is asked for; messages before and after those left out."""
_WIDE = 140


def why(
    run_id: Annotated[str, Parameter(name="RUN")] = "last",
    /,
    *,
    turn: int | None = None,
    full: bool = False,
    shared: Shared = SHARED,
) -> int:
    """Explain a run: what was sent at each turn, what came back, what decided, what may be done next.

    Args:
        run_id: The run: its id, the beginning of it, or last.
        turn: Only this turn.
        full: Leave nothing out: whole grammars, all messages, and the request as the engine got it.
        shared: Options of all commands.
    """
    return run(_why(run_id, turn, shared, full=full))


async def _why(name: str, turn: int | None, shared: Shared, *, full: bool) -> int:
    from flyball.adapters.cli.naming import find_run
    from flyball.adapters.cli.rendering import with_prompts
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
    told = await with_prompts(told)
    if shared.json:
        write_json(msgspec.to_builtins(told))
    else:
        print_explanation(told, full=full)
    return 0


def print_explanation(told: Explanation, *, full: bool = False) -> None:
    """Print an explanation for a person; unless it is to be full, with long grammars and prompts folded."""
    from flyball.adapters.cli.naming import short

    _line(f"run {short(told.run)}", "bold cyan", f"  {_who(told)} · {told.stage}")
    _line(told.verdict, "red" if told.error is not None else "bold")
    for text in told.before:
        _line(f"• {text}", "yellow")
    if told.note:
        _line(f"• {told.note}", "yellow")
    for one in told.turns:
        _turn(one, told, full=full)
    _heading("next")
    width = max([len(step.command) for step in told.next], default=0)
    for step in told.next:
        _line(f"  {step.command:{width}}", "cyan", f"  {step.what}")


def _who(told: Explanation) -> str:
    return told.model if told.agent == "agent" else f"{told.agent} · {told.model}"


def _turn(turn: Turn, told: Explanation, *, full: bool) -> None:
    attempt = f" · attempt {turn.attempt}" if turn.attempt > 1 else ""
    _heading(f"turn {turn.number}{attempt}")
    _line("sent", "bold", f"  to {told.model}, as {turn.sent.id}")
    if any(prompt.exact is False for prompt in turn.prompts):
        _line("  • flyball's words have changed since: this is how it would be put today", "yellow")
    for prompt in turn.prompts:
        _prompt(prompt, full=full)
    if turn.note:
        _line(f"  • {turn.note}", "yellow")
    if turn.prompts and full:
        _line("  made of the request", "bold")
    if full or not turn.prompts:
        _request(turn.sent, full=full)
    _came_back(turn)
    for text in turn.decided:
        _line(f"  • {text}", "yellow")


def _request(sent: Request, *, full: bool) -> None:
    """A request as the engine got it."""
    for message in sent.messages:
        _message(message)
    for tool in sent.tools:
        _line(f"  tool on offer: {tool.name}", "blue", f"  {tool.description}")
        _body(as_text(tool.parameters), "dim")
    if sent.output is not None:
        _line(f"  schema of the answer: {sent.output.name}", "blue")
        _body(as_text(sent.output.schema), "dim")
    if sent.grammar is not None:
        _grammar(sent.grammar, full=full)
    settings: dict[str, Any] = msgspec.to_builtins(sent.settings)
    if sent.tool_choice is not None:
        settings["tool_choice"] = msgspec.to_builtins(sent.tool_choice)
    if not sent.allows_text:
        settings["allows_text"] = False
    _line("  settings: ", "blue", as_text(settings) if settings else "the model's own")


def _prompt(prompt: Prompt, *, full: bool) -> None:
    """What the model itself was given."""
    _line(f"  {prompt.about}", "bold")
    folded = 0 if full else max(len(prompt.messages) - 2 * _SHOWN, 0)
    for number, message in enumerate(prompt.messages):
        if _SHOWN <= number < _SHOWN + folded:
            if number == _SHOWN:
                _line(f"  … {folded} messages more (--full shows them)", "dim")
            continue
        _line(f"  {message['role']}", _ROLES.get(message["role"], "bold"))
        _body(message["content"])
    if prompt.grammar is not None:
        _grammar(prompt.grammar, full=full)
    _line("  settings: ", "blue", as_text(prompt.settings or {}))
    if prompt.answer is not None:
        _line("  it said: ", "blue", prompt.answer)
    elif prompt.decides:
        _line("  • what it said is not recorded, and what it was given next hangs on that", "yellow")


def _grammar(grammar: str, *, full: bool) -> None:
    lines = grammar.splitlines()
    _line("  grammar of the answer", "blue")
    if full or (len(lines) <= _SHOWN and all(len(line) <= _WIDE for line in lines)):
        _body(grammar, "dim")
        return
    shown = [line if len(line) <= _WIDE else line[: _WIDE - 1] + "…" for line in lines[:_SHOWN]]
    left = len(lines) - len(shown)
    more = f"{left} line{'s' if left != 1 else ''} more, " if left else ""
    _body("\n".join([*shown, f"… {more}{len(grammar)} characters in all (--full shows them)"]), "dim")


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
