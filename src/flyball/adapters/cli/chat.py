"""`flyball chat`: a conversation. Each answer is a run, with what was said before as its history."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from flyball.adapters.cli.driven import DEADLINE, DRIVEN, Driven, settings
from flyball.adapters.cli.running import Session
from flyball.adapters.cli.shared import SHARED, Shared
from flyball.core.errors import UserError


def chat(
    *,
    resume: str | None = None,
    system: Annotated[str, Parameter(name=["--system", "-s"])] = "",
    temperature: float | None = None,
    max_tokens: int | None = None,
    deadline: float | None = None,
    driven: Driven = DRIVEN,
    shared: Shared = SHARED,
) -> int:
    """Talk with a model; each of its answers is a recorded run.

    Ctrl-C stops an answer, Ctrl-D leaves. /help lists what else can be said.

    Args:
        resume: Go on with the conversation of this run: its id, the beginning of it, or last.
        system: Instructions for the model.
        temperature: How freely the model chooses its words.
        max_tokens: How many tokens an answer may have.
        deadline: Seconds for each answer, also while it waits for you; 0 for no limit. Without it, no limit
            at a terminal, where Ctrl-C stops; 120 elsewhere.
        driven: Options of commands that drive a run.
        shared: Options of all commands.
    """
    from flyball.adapters.cli.approving import somebody_is_here
    from flyball.adapters.cli.channel import TerminalChannel
    from flyball.adapters.cli.talking import talk

    if shared.json:
        raise UserError("a conversation is for people: flyball ask --json answers programs")
    if deadline is None:
        deadline = 0 if somebody_is_here() else DEADLINE
    hints = settings(max_tokens, temperature, deadline)
    with Session() as session:
        channel = TerminalChannel(driven, shared, system, hints)
        try:
            session.run(channel.open(resume))
            return talk(session, channel)
        finally:
            session.rest()
            session.run(channel.close())
