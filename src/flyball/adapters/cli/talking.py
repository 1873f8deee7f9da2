"""The prompt of a conversation: lines that are typed, commands that begin with a slash."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from flyball.adapters.cli.conversation import Conversation
from flyball.adapters.cli.failing import report
from flyball.adapters.cli.naming import short
from flyball.adapters.cli.places import CHAT_HISTORY, data_folder
from flyball.adapters.cli.running import Session
from flyball.adapters.cli.screen import err
from flyball.core.errors import CancelledSignal, FlyballError, UserError

HELP = {
    "/help": "what can be said here",
    "/model [NAME]": "which model answers; with a name, that one from here on",
    "/new": "begin anew",
    "/why": "explain the last answer: what was sent, what came back",
    "/save FILE": "write the conversation down, as Markdown",
    "/quit": "leave (Ctrl-D does too; Ctrl-C stops an answer)",
}


def talk(session: Session, conversation: Conversation) -> int:
    """Talk until the end; gives the exit code. Where stdin is no terminal, each line is said in turn."""
    terminal = sys.stdin.isatty()
    if terminal:
        err().print(f"{conversation.model} · /help for help, Ctrl-D to leave", style="dim")
    code = 0
    with _line_editing(terminal):
        while (line := _read(session, terminal)) is not None:
            if not line.strip():
                continue
            if line.startswith("/"):
                if line.split()[0] in ("/quit", "/exit", "/q"):
                    break
                code = _command(line, session, conversation)
            else:
                code = _said(line, session, conversation)
    return 0 if terminal else code


def _read(session: Session, terminal: bool) -> str | None:
    """The next line; one that ends with a backslash goes on. None at the end."""
    session.rest()
    lines: list[str] = []
    while True:
        try:
            if terminal:
                line = input("… " if lines else "> ")
            else:
                line = sys.stdin.readline()
                if not line:
                    raise EOFError
        except KeyboardInterrupt:
            err().print()
            lines = []
            continue
        except EOFError:
            if terminal:
                err().print()
            return "\n".join(lines) or None
        line = line.rstrip("\r\n")
        if not line.endswith("\\"):
            return "\n".join([*lines, line])
        lines.append(line.removesuffix("\\"))


def _said(line: str, session: Session, conversation: Conversation) -> int:
    try:
        return session.run(conversation.say(line))
    except CancelledSignal as error:
        run = short(conversation.last_run)
        err().print(f"stopped; to go on: flyball resume {run}", style="yellow")
        return report(error, as_json=False) if error.details.get("signal") != 2 else 0
    except FlyballError as error:
        return report(error, as_json=False)


def _command(line: str, session: Session, conversation: Conversation) -> int:
    name, _, rest = line.partition(" ")
    rest = rest.strip()
    commands: dict[str, Callable[[], None]] = {
        "/help": _help,
        "/model": lambda: _model(session, conversation, rest),
        "/new": conversation.forget,
        "/why": lambda: _why(session, conversation),
        "/save": lambda: _save(conversation, rest),
    }
    try:
        if name not in commands:
            raise UserError(f"there is no {name}; there are {', '.join(commands)}, /quit")
        commands[name]()
    except FlyballError as error:
        return report(error, as_json=False)
    return 0


def _help() -> None:
    for name, about in HELP.items():
        err().print(f"  {name:14} {about}")


def _model(session: Session, conversation: Conversation, name: str) -> None:
    if name:
        session.run(conversation.use(name))
    err().print(conversation.model, style="dim")


def _why(session: Session, conversation: Conversation) -> None:
    from flyball.adapters.cli.page import print_explanation

    print_explanation(session.run(conversation.explained()))


def _save(conversation: Conversation, file: str) -> None:
    if not file:
        raise UserError("/save FILE: name the file")
    conversation.save(Path(file))
    err().print(f"written to {file}", style="dim")


class _line_editing:  # noqa: N801 - it is used as a function
    """Line editing and a history of lines, where the terminal and the platform have them."""

    def __init__(self, terminal: bool) -> None:
        self._terminal = terminal
        self._file = data_folder() / CHAT_HISTORY

    def __enter__(self) -> None:
        if not self._terminal:
            return
        with suppress(ImportError, OSError):
            import readline

            readline.set_history_length(1000)
            readline.read_history_file(self._file)

    def __exit__(self, *_: object) -> None:
        if not self._terminal:
            return
        with suppress(ImportError, OSError):
            import readline

            self._file.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(self._file)
            self._file.chmod(0o600)
