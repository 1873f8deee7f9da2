"""An explanation, printed for a person; what is long is folded, unless all is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from flyball.adapters.cli.naming import short
from flyball.adapters.cli.next_commands import commands
from flyball.adapters.cli.on_the_way import on_the_way
from flyball.adapters.cli.screen import out, plain
from flyball.core.encodable import as_text
from flyball.core.messages import Message, Retry, Role, Text, Thinking, ToolCall, ToolResult
from flyball.inference.rendered import Prompt
from flyball.inference.request import Request
from flyball.orchestrate.projections.explanation import Explanation, Turn
from flyball.orchestrate.projections.shortened import several

_ROLES: dict[str, str] = {
    Role.SYSTEM: "magenta",
    Role.USER: "green",
    Role.ASSISTANT: "cyan",
    Role.TOOL: "blue",
}
_SHOWN = 3
"""Lines of a grammar that are shown unless all is asked for; messages before and after those left out."""
_WIDE = 140
_LONG = 2_000
"""Characters of any other text that are shown unless all is asked for: of its beginning, and of its end."""


def print_explanation(told: Explanation, *, full: bool = False) -> None:
    """Print an explanation for a person; unless it is to be full, with long grammars and prompts folded."""
    page = _Page(full=full)
    page.line(f"run {short(told.run)}", "bold cyan", f"  {_who(told)} · {told.stage}")
    page.line(told.verdict, "red" if told.error is not None else "bold")
    for text in told.before:
        page.line(f"• {text}", "yellow")
    if told.note:
        page.line(f"• {told.note}", "yellow")
    for one in told.turns:
        page.turn(one, told)
    page.heading("next")
    steps = commands(told)
    width = max([len(step.command) for step in steps], default=0)
    for step in steps:
        page.line(f"  {step.command:{width}}", "cyan", f"  {step.what}")


def _who(told: Explanation) -> str:
    return told.model if told.agent == "agent" else f"{told.agent} · {told.model}"


class _Page:
    """Prints the parts of an explanation, one below the other."""

    def __init__(self, *, full: bool) -> None:
        self._full = full

    def turn(self, turn: Turn, told: Explanation) -> None:
        attempt = f" · attempt {turn.attempt}" if turn.attempt > 1 else ""
        self.heading(f"turn {turn.number}{attempt}")
        if self._full:
            for request in turn.earlier:
                self.line("sent before", "bold", f"  to {told.model}, as {request.id}")
                self.request(request)
        self.line("sent" if turn.called else "not sent", "bold", f"  to {told.model}, as {turn.sent.id}")
        if any(prompt.exact is False for prompt in turn.prompts):
            self.line("  • flyball's words have changed since: this is how it would be put today", "yellow")
        for prompt in turn.prompts:
            self.prompt(prompt)
        if turn.note:
            self.line(f"  • {turn.note}", "yellow")
        if turn.prompts and self._full:
            self.line("  made of the request", "bold")
        if self._full or not turn.prompts:
            self.request(turn.sent)
        self.came_back(turn)
        for text in turn.decided:
            self.line(f"  • {text}", "yellow")

    def request(self, sent: Request) -> None:
        """A request as the engine got it."""
        for message in sent.messages:
            self.message(message)
        for tool in sent.tools:
            self.line(f"  tool on offer: {tool.name}", "blue", f"  {tool.description}")
            self.body(as_text(tool.parameters), "dim")
        if sent.output is not None:
            self.line(f"  schema of the answer: {sent.output.name}", "blue")
            self.body(as_text(sent.output.schema), "dim")
        if sent.grammar is not None:
            self.grammar(sent.grammar)
        settings: dict[str, Any] = msgspec.to_builtins(sent.settings)
        if sent.tool_choice is not None:
            settings["tool_choice"] = msgspec.to_builtins(sent.tool_choice)
        if not sent.allows_text:
            settings["allows_text"] = False
        self.line("  settings: ", "blue", as_text(settings) if settings else "the model's own")

    def prompt(self, prompt: Prompt) -> None:
        """What the model itself was given."""
        self.line(f"  {prompt.about}", "bold")
        folded = 0 if self._full else max(len(prompt.messages) - 2 * _SHOWN, 0)
        for number, message in enumerate(prompt.messages):
            if _SHOWN <= number < _SHOWN + folded:
                if number == _SHOWN:
                    self.line(f"  … {several(folded, 'message')} more (--full shows them)", "dim")
                continue
            self.line(f"  {message['role']}", _ROLES.get(message["role"], "bold"))
            self.body(message["content"])
        if prompt.grammar is not None:
            self.grammar(prompt.grammar)
        self.line("  settings: ", "blue", as_text(prompt.settings or {}))
        if prompt.answer is not None:
            self.line("  it said: ", "blue", prompt.answer)
        elif prompt.decides:
            self.line("  • what it said is not recorded, and what it was given next hangs on that", "yellow")

    def grammar(self, grammar: str) -> None:
        lines = grammar.splitlines()
        self.line("  grammar of the answer", "blue")
        if self._full or (len(lines) <= _SHOWN and all(len(line) <= _WIDE for line in lines)):
            self.body(grammar, "dim")
            return
        shown = [line if len(line) <= _WIDE else line[: _WIDE - 1] + "…" for line in lines[:_SHOWN]]
        left = len(lines) - len(shown)
        more = f"{several(left, 'line')} more, " if left else ""
        self.body("\n".join([*shown, f"… {more}{len(grammar)} characters in all (--full shows them)"]), "dim")

    def came_back(self, turn: Turn) -> None:
        if turn.answer is not None:
            usage = turn.answer.usage
            tokens = f", {usage.input_tokens} → {usage.output_tokens} tokens" if usage is not None else ""
            self.line("came back", "bold", f"  after {turn.duration:.2f} s{tokens}")
            self.noted(turn.answer.extra)
            self.message(turn.answer)
        elif turn.error is not None:
            self.line("came back", "bold", f"  after {turn.duration:.2f} s, an error")
            self.noted(turn.error.details)
            if turn.partial is not None:
                self.message(turn.partial)
        else:
            self.line("came back", "bold", "  nothing: the call was not over when the run stopped")
        for record in turn.tools:
            came = record.error if record.error is not None else as_text(record.result)
            took = "" if record.duration is None else f"  {record.duration:.2f} s"
            self.line(f"  tool {record.name}", "blue", f"{took}  {record.status}")
            self.body(f"{as_text(record.arguments)} → {came}")
        self.line("decided by", "bold")

    def noted(self, notes: Mapping[str, Any] | None) -> None:
        for line in on_the_way(notes):
            self.line(f"  • {line}", "yellow")

    def message(self, message: Message) -> None:
        self.line(f"  {message.role}", _ROLES[message.role])
        for part in message.parts:
            if isinstance(part, Text):
                self.body(part.text)
            elif isinstance(part, Thinking | Retry):
                self.body(part.text, "italic")
            elif isinstance(part, ToolCall):
                self.body(f"→ {part.name} {part.args_json}  ({part.id})")
            elif isinstance(part, ToolResult):
                self.body(f"← {part.name}: {part.text}  ({part.call_id})")
            else:
                self.body(f"[{type(part).__name__.lower()} {part.url[:80]}]")

    def heading(self, text: str) -> None:
        out().print()
        out().rule(text, align="left", style="dim", characters="─")

    def line(self, text: str, style: str, more: str = "") -> None:
        """A line, and more about it."""
        from rich.text import Text as Styled

        line = Styled(self.folded(text, " "), style=style)
        line.append(self.folded(more, " "), style="not bold dim")
        out().print(line, soft_wrap=True)

    def body(self, text: str, style: str = "") -> None:
        """What a message holds, set in."""
        from rich.text import Text as Styled

        indented = "\n".join([f"    {line}" for line in self.folded(text, "\n").splitlines()] or ["    "])
        out().print(Styled(indented, style=style), soft_wrap=True)

    def folded(self, text: str, between: str) -> str:
        """A text that does nothing to a terminal; of a long one its beginning and its end."""
        left = len(text) - _LONG
        if self._full or left <= 0:
            return plain(text)
        note = f"… {several(left, 'character')} more (--full shows them) …"
        return between.join([plain(text[: _LONG // 2]), note, plain(text[-_LONG // 2 :])])
