"""What can be said with a slash at a terminal, beside what the dispatcher's commands are.

They are the dispatcher's `Command`s: it tells them from what is said to an agent, lists them and runs them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from flyball.core.errors import UserError
from flyball.core.forms.semstreams import Attachment
from flyball.core.messages import Role
from flyball.orchestrate.channels import Asked, Command
from flyball.orchestrate.channels.commands import NEW
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.projections.said import said_in
from flyball.orchestrate.projections.words import words_of
from flyball.orchestrate.recorded import load, load_any


class Talk(Protocol):
    """A conversation, as far as its commands have to do with it."""

    at: str
    """The loop that was talked with last."""
    answered: str
    """The loop that what is said next goes on from."""
    attached: tuple[Attachment, ...]
    """What goes along with what is said next."""
    is_left: bool
    """Whether the person has said that they leave."""

    @property
    def journal(self) -> Journal:
        """Where it is recorded."""
        ...

    @property
    def model(self) -> str:
        """The model that answers."""
        ...

    async def use(self, model: str) -> None:
        """Let another model answer from here on."""

    def forget(self) -> None:
        """Begin anew."""


def terminal_commands(talk: Talk) -> dict[str, Command]:
    """The commands of a terminal's conversation, by name."""

    async def model(asked: Asked) -> str:
        if asked.words:
            await talk.use(asked.words)
        return talk.model

    async def new(asked: Asked) -> str:
        talk.forget()
        return ""

    async def attach(asked: Asked) -> str:
        from flyball.adapters.cli.attaching import attachment_in

        if not asked.words:
            raise UserError("/attach FILE: name the file")
        attachment = attachment_in(Path(asked.words))
        talk.attached = (*talk.attached, attachment)
        return f"{attachment.name} ({attachment.size} bytes) goes along with what you say next"

    async def why(asked: Asked) -> str:
        from flyball.adapters.cli.page import print_explanation
        from flyball.orchestrate.projections.explanation import explain
        from flyball.orchestrate.rendering import with_prompts

        if not talk.at:
            raise UserError("nothing was answered yet")
        events, _ = await load(talk.journal, talk.at)
        print_explanation(await with_prompts(explain(events)))
        return ""

    async def save(asked: Asked) -> str:
        if not asked.words:
            raise UserError("/save FILE: name the file")
        _write(Path(asked.words), await _written(talk))
        return f"written to {asked.words}"

    async def leave(asked: Asked) -> str:
        talk.is_left = True
        return ""

    quit_ = Command("/quit", "leave (Ctrl-D does too; Ctrl-C stops an answer)", leave)
    return {
        NEW: Command("/new [TEXT]", "begin anew", new),
        "model": Command("/model [NAME]", "which model answers; with a name, that one from here on", model),
        "attach": Command("/attach FILE", "have a file go along with what you say next", attach),
        "why": Command("/why", "explain the last answer: what was sent, what came back", why),
        "save": Command("/save FILE", "write the conversation down, as Markdown", save),
        "quit": quit_,
        "exit": quit_,
        "q": quit_,
    }


def _write(file: Path, text: str) -> None:
    try:
        file.expanduser().write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{file} cannot be written: {error.strerror or error}") from error


async def _written(talk: Talk) -> str:
    """The conversation as Markdown."""
    if not talk.answered:
        return ""
    _, state = await load_any(talk.journal, talk.answered)
    said = [(one.role, words_of(one).strip()) for one in said_in(state) if one.role is not Role.TOOL]
    return "".join([f"**{role}**\n\n{words}\n\n" for role, words in said if words])
