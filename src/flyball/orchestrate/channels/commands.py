"""Commands: what somebody says with a slash, to those who look after loops and not to an agent.

    /help                        what can be said
    /loops                       the loops of who asks that are not over
    /status [LOOP]               how a loop stands
    /cancel [LOOP]               and /pause, /resume, /retry: what is said to a loop
    /approve [LOOP] [CALL], /reject [LOOP] [REASON]
    /new TEXT                    begin anew: nothing was said before

Without a loop's id, the one is meant that the conversation has come to. A text that begins with two slashes
is none of them: one is taken away, and the rest is said to the agent.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from msgspec import Struct

from flyball.core.errors import JournalFailure, SignalRefused, UserError
from flyball.core.events import Stage
from flyball.core.forms.semstreams import UserMessage
from flyball.core.signals import Signal, SignalType
from flyball.orchestrate.catalogue import LoopQuery
from flyball.orchestrate.channels.identity import known_as
from flyball.orchestrate.machines import is_paused
from flyball.orchestrate.permissions import Permission, Person
from flyball.orchestrate.projections.shortened import cut
from flyball.orchestrate.service import Service

_COMMAND = re.compile(r"/(?P<name>[A-Za-z][A-Za-z0-9_-]*)(?:\s+(?P<words>.*))?\s*", re.DOTALL)
_OPEN = tuple([str(stage) for stage in Stage if not stage.is_terminal] + ["deferred", "interrupted"])
_LISTED = 20
NEW = "new"
"""The command whose words are said to an agent, as the first of a conversation."""


class Asked(Struct, frozen=True):
    """A command that somebody gave, of those that there are.

    `words` stand after it, `current` is the loop that they are at, if any.
    """

    service: Service
    commands: Mapping[str, Command]
    message: UserMessage
    who: Person
    words: str
    current: str

    def loop(self, named: str = "") -> str:
        """The loop that is meant.

        Raises:
            UserError: none is named, and there is none in this conversation.
        """
        loop_id = named or self.message.reply_to or self.current
        if not loop_id:
            raise UserError("there is no loop in this conversation yet: name one, or say something")
        return loop_id


Run: TypeAlias = Callable[[Asked], Awaitable[str]]


class Command(Struct, frozen=True):
    """Something that can be said with a slash.

    `usage` is how, `about` what for. `permission` is what one needs for it, where that does not hang on the
    loop. `run` gives the words of the answer.
    """

    usage: str
    about: str
    run: Run
    permission: Permission | None = None


def command_in(text: str) -> tuple[str, str] | None:
    """The command in a text, by its name, with the words after it; None where it is none.

    A path such as /usr/bin is none.
    """
    found = _COMMAND.fullmatch(text.strip())
    return None if found is None else (found["name"].lower(), (found["words"] or "").strip())


async def _help(asked: Asked) -> str:
    known = dict.fromkeys(asked.commands.values())  # one may have several names
    width = max([len(command.usage) for command in known])
    return "\n".join([f"{command.usage:<{width}}  {command.about}" for command in known])


async def _loops(asked: Asked) -> str:
    query = LoopQuery(user_id=asked.who.user_id, stage=_OPEN, roots_only=True, limit=_LISTED)
    page = await asked.service.loops(query)
    if not page.loops:
        return "you have no loops that are not over"
    return "\n".join([f"{one.loop_id}  {one.stage}  {cut(one.prompt, 60)}" for one in page.loops])


async def _status(asked: Asked) -> str:
    summary = await asked.service.summary(asked.loop(asked.words))
    pauses = await _pauses(asked, summary.loop_id, summary.stage)
    calls = await asked.service.waiting(summary.loop_id)
    lines = [
        f"{summary.loop_id} is {summary.stage}{pauses}",
        f"agent {summary.agent}, turn {summary.turns}, {summary.usage.total_tokens} tokens",
        *[str(call) for call in calls],
        *([f"error {summary.error}"] if summary.error else []),
    ]
    return "\n".join(lines)


def _signalling(kind: SignalType) -> Run:
    async def say(asked: Asked) -> str:
        loop_id = asked.loop(asked.words)
        name = await known_as(asked.service, loop_id, asked.message, kind)
        signal = Signal(kind, id=name, by=asked.who.user_id)
        stage = await asked.service.signal(loop_id, signal, who=asked.who)
        return f"{kind}: {loop_id} is {stage}{await _pauses(asked, loop_id, stage)}"

    return say


async def _pauses(asked: Asked, loop_id: str, stage: str) -> str:
    """That a pause was asked for which has not begun, where that is so."""
    if stage == Stage.PAUSED:
        return ""
    try:
        _, state = await asked.service.load(loop_id)
    except JournalFailure:  # it is told of all the same: the summary says what is wrong
        return ""
    return ", and pauses when what it is at is done (/resume goes on)" if is_paused(state) else ""


async def _resume(asked: Asked) -> str:
    try:
        return await _signalling(SignalType.RESUME)(asked)
    except SignalRefused:
        loop_id = asked.loop(asked.words)
        if (await asked.service.stage(loop_id)).is_terminal:
            raise
        await asked.service.resume(loop_id, who=asked.who)  # nobody has paused it, but perhaps it was left
        return f"resume: {loop_id} is {await asked.service.stage(loop_id)}"


async def _new(asked: Asked) -> str:
    raise UserError("/new TEXT: say what to begin with")


async def _approve(asked: Asked) -> str:
    loop_id, words = await _loop_first(asked)
    return await _decided(asked, loop_id, SignalType.APPROVE, call_id=words or None)


async def _reject(asked: Asked) -> str:
    loop_id, words = await _loop_first(asked)
    return await _decided(asked, loop_id, SignalType.REJECT, text=words)


async def _loop_first(asked: Asked) -> tuple[str, str]:
    """The loop that is meant, and the words after it: the first one may be a loop's id."""
    first, _, rest = asked.words.partition(" ")
    if first and (await asked.service.journal.sizes((first,)))[0]:
        return first, rest.strip()
    return asked.loop(), asked.words


async def _decided(
    asked: Asked, loop_id: str, kind: SignalType, text: str = "", call_id: str | None = None
) -> str:
    name = await known_as(asked.service, loop_id, asked.message, kind)
    signal = Signal(kind, id=name, by=asked.who.user_id, text=text, call_id=call_id)
    stage = await asked.service.signal(loop_id, signal, who=asked.who)
    return f"{kind}: {loop_id} is {stage}"


BUILT_IN: Mapping[str, Command] = {
    "help": Command("/help", "what can be said with a slash", _help),
    "loops": Command("/loops", "your loops that are not over", _loops, Permission.VIEW),
    "status": Command("/status [LOOP]", "how a loop stands", _status, Permission.VIEW),
    "cancel": Command("/cancel [LOOP]", "stop a loop", _signalling(SignalType.CANCEL)),
    "pause": Command("/pause [LOOP]", "pause it", _signalling(SignalType.PAUSE)),
    "resume": Command("/resume [LOOP]", "go on with one that is paused, or was left", _resume),
    "retry": Command("/retry [LOOP]", "try one again that failed", _signalling(SignalType.RETRY)),
    "approve": Command("/approve [LOOP] [CALL]", "let the calls run that wait, or one of them", _approve),
    "reject": Command("/reject [LOOP] [REASON]", "refuse the calls that wait", _reject),
    NEW: Command("/new TEXT", "begin anew: nothing was said before", _new),
}
"""The commands that are always there. `/new` runs only without words: those would be said to an agent."""
