"""The prompt of a conversation: lines that are typed, each said on the terminal's channel."""

from __future__ import annotations

import signal
import sys
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from flyball.adapters.cli.channel import TerminalChannel
from flyball.adapters.cli.exits import RUN, SIGNAL
from flyball.adapters.cli.failing import report
from flyball.adapters.cli.naming import short
from flyball.adapters.cli.places import CHAT_HISTORY, data_folder
from flyball.adapters.cli.running import Session
from flyball.adapters.cli.screen import err
from flyball.core.errors import CancelledSignal, FlyballError


def talk(session: Session, channel: TerminalChannel) -> int:
    """Talk until the end; gives the exit code. Where stdin is no terminal, each line is said in turn."""
    terminal = sys.stdin.isatty()
    if terminal:
        err().print(f"{channel.model} · /help for help, Ctrl-D to leave", style="dim")
    code = _done(channel.pick_up(), session, channel)
    with _line_editing(terminal):
        while not channel.is_left and (line := _read(session, terminal)) is not None:
            if line.strip():
                code = _done(channel.say(line), session, channel)
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


def _done(work: Coroutine[Any, Any, int], session: Session, channel: TerminalChannel) -> int:
    """Do something on the channel, and tell what goes wrong with it; gives the exit code."""
    try:
        return session.run(work)
    except CancelledSignal as error:
        run, number = error.details.get(RUN), error.details.get(SIGNAL)
        more = ""
        if isinstance(run, str):
            more = f"; to go on: flyball resume {short(run)}, or here: {channel.next_words}"
        err().print(f"stopped{more}", style="yellow", soft_wrap=True)
        if number == signal.SIGINT:
            return 0
        channel.is_left = True  # whoever ends the process does not mean the answer alone
        return report(error, as_json=False)
    except FlyballError as error:
        return report(error, as_json=False)


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
