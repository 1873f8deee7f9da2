"""Dispatcher: what people say, on any channel, becomes loops, signals and answers to commands.

Rules:
- What was taken is recorded when `take` returns. The same message again changes nothing, and is answered the
  same: a channel may deliver as often as it likes. Known are the last 10,000 messages that were taken here,
  and, from the journal, those of the last loops of a conversation, whoever took them.
- What may not be, or cannot be done, is answered by an error; what failed and may be tried again is raised.
  A channel that tells of errors by itself has them all raised (`heed`).
- Who may do what, the service's `Permissions` say; the roles of who speaks, the channel knows.
- Words send an answer back that waits for approval only where who says them was asked about it before: what
  was said just before it came is about something else. They are told so, and may say it again.
- A conversation goes on from what has led to answers (`counts_after`): what failed, was refused or stopped
  is left out, and what it went on from itself is still there.
- Whom to tell of a loop stands in its journal. `follow` tells it, from there.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from copy import copy
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from flyball.core.errors import (
    FlyballError,
    JournalFailure,
    LoopMismatch,
    LoopNotFound,
    SignalRefused,
    UnknownAgent,
    UserError,
)
from flyball.core.events import Event, FlowStarted, Reopened, SignalReceived, Started
from flyball.core.forms.semstreams import ResponseType, UserMessage, UserResponse, UserSignal
from flyball.core.messages import Message
from flyball.core.signals import NO_ANSWER, Signal, SignalType
from flyball.orchestrate.calls import answer_id
from flyball.orchestrate.channels.address import Address
from flyball.orchestrate.channels.attachments import message_of
from flyball.orchestrate.channels.commands import BUILT_IN, NEW, Asked, Command, command_in
from flyball.orchestrate.channels.conversations import Conversation
from flyball.orchestrate.channels.following import told_of
from flyball.orchestrate.channels.identity import identity_of, known_as
from flyball.orchestrate.channels.taken import (
    Taken,
    answered,
    begun,
    check_answerable,
    check_ids,
    fed_back_to,
    refusal,
)
from flyball.orchestrate.channels.telling import waiting_since
from flyball.orchestrate.contracts import ExecutionHints, SystemRequest
from flyball.orchestrate.course import OVER
from flyball.orchestrate.flow_state import FlowState
from flyball.orchestrate.machines import AnyState
from flyball.orchestrate.permissions import Permission, Person, apart, owner_of
from flyball.orchestrate.projections.said import counts_after, lately
from flyball.orchestrate.provenance import KEY
from flyball.orchestrate.service import Service
from flyball.orchestrate.state import State

Roles: TypeAlias = Callable[[UserMessage | UserSignal], Iterable[str]]
"""The roles of who said something. Whoever carries a channel has made sure who they are."""
Told: TypeAlias = Callable[[str], Awaitable[int]]
"""The number of the last event of a loop that people were told of."""

_AGENT = "agent"
"""The key of a message's metadata under which it may name an agent."""
_LOOKED_BACK = 4
"""How many loops of a conversation are looked at for a message that comes again, if nobody knows when it was
said."""
_CLOCKS_DIFFER = 60.0
"""Seconds by which the clocks of those may differ who say when something was said, and when a loop began."""
_REMEMBERED = 10_000
"""How many messages are kept in mind, so that one that comes again is known also when it is long ago."""
_AT_MOST = 64
"""How often it is tried to go on with a conversation in which others say something at the same time."""


def nobody_special(_: object) -> tuple[str, ...]:
    """No roles, whoever speaks."""
    return ()


class Dispatcher:
    """Takes what people say. See the module for its rules.

    Args:
        service: who serves the agents.
        agent: the agent that is meant where nobody names one; the first of the service's unless it is given.
        roles: the roles of who says something, beside those that the service's policy gives them. For who is
            told something it is given a message without content: who they are, and where.
        auto_continue: whether what is said goes on from what was said before in the same conversation. Also
            without it, a message that replies to a loop does.
        carried: how many messages of what was said before a loop begins with; of more, the oldest are left
            out. A loop's journal has them: without a limit, what is kept would grow with the square of what
            is said.
        commands: what can be said with a slash, by name, beside what always can (`BUILT_IN`).
        hints: how each loop is run that begins here: its time, the model's settings.
        noted: what each of them says of itself in its metadata, such as its `Provenance`. What people say
            about their messages cannot take its place.
        told: up to which of its events people were told of a loop by others than this process.
    """

    def __init__(
        self,
        service: Service,
        *,
        agent: str = "",
        roles: Roles = nobody_special,
        auto_continue: bool = True,
        carried: int = 200,
        commands: Mapping[str, Command] | None = None,
        hints: ExecutionHints = ExecutionHints(),  # noqa: B008 - it is frozen
        noted: Mapping[str, Any] | None = None,
        told: Told | None = None,
    ) -> None:
        self.service = service
        self.permissions = service.policy.permissions
        self.commands: dict[str, Command] = {**BUILT_IN, **(commands or {})}
        self._agent = agent or next(iter(service.systems), "")
        self._roles = roles
        self._auto_continue = auto_continue
        self._carried = carried
        self._hints = hints
        self._noted = dict(noted or {})
        self._told = told
        self._taken: OrderedDict[tuple[str, str, str], Taken] = OrderedDict()
        """What was answered to the last messages, by conversation, person and message."""
        service.system(self._agent)  # an agent that is not there is noticed now

    def with_roles(self, roles: Roles) -> Dispatcher:
        """The same dispatcher, for who has other roles: what the one has taken, the other knows."""
        other = copy(self)
        other._roles = roles
        return other

    async def take(
        self, said: UserMessage | UserSignal, *, at: float | None = None, again: bool = False
    ) -> UserResponse:
        """Take what somebody said; gives what they are answered at once. The rest is told by `follow`.

        `at`: when they said it, where the channel knows. `again`: it may have been taken before, by somebody
        who did not live to say so: a command that names no loop is then about one that was there already.

        Raises:
            InvalidMessage: it does not say who says it, and where: nobody can be answered.
            JournalFailure: nothing could be recorded; it may be said again.
        """
        check_answerable(said)
        try:
            return await self.heed(said, at=at, again=again)
        except FlyballError as error:
            if _is_passing(error):
                raise
            return refusal(said, error)

    async def heed(
        self, said: UserMessage | UserSignal, *, at: float | None = None, again: bool = False
    ) -> UserResponse:
        """`take`, for a channel that tells of errors by itself: whatever goes wrong is raised.

        Raises:
            FlyballError: it says nothing, may not be, cannot be done, or could not be recorded.
        """
        said.validate()
        check_ids(said)
        who = self.service.policy.person(said.user_id, tuple(self._roles(said)))
        if isinstance(said, UserSignal):
            return answered(said, await self._signalled(said, who))
        return answered(said, await self._said(_Said(said, Address.of(said), at, again), who))

    # Signals and commands

    async def _signalled(self, said: UserSignal, who: Person) -> Taken:
        signal = said.signal
        name = await known_as(self.service, said.loop_id, said, signal.type)
        stage = await self.service.signal(said.loop_id, replace(signal, id=name), who=who)
        return Taken(ResponseType.STATUS, f"{said.type}: {said.loop_id} is {stage}", said.loop_id)

    async def _said(self, one: _Said, who: Person) -> Taken:
        said, command = one.message, command_in(one.message.content)
        if command is None or (command[0] == NEW and (command[1] or said.attachments)):
            if command is not None:
                said = replace(said, content=command[1])
            elif said.content.startswith("//"):
                said = replace(said, content=said.content[1:])
            self.permissions.check(who, Permission.SUBMIT_TASK)
            return await self._talk(replace(one, message=said), who, anew=command is not None)
        name, words = command
        known = self.commands.get(name)
        if known is None:
            there = ", ".join([f"/{one}" for one in self.commands])
            raise UserError(f"there is no /{name}; there are {there}")
        if known.permission is not None:
            self.permissions.check(who, known.permission)
        talk = Conversation(one.address.conversation)
        if (taken := self._in_mind(talk, said)) is not None:
            return taken
        current = await self._current(one, talk)
        asked = Asked(self.service, self.commands, said, who, words, current)
        return self._remembered(talk, said, Taken(ResponseType.TEXT, await known.run(asked), current))

    async def _current(self, one: _Said, talk: Conversation) -> str:
        """The loop that a command is about which names none; nothing where there is none.

        That is the one that it was said to before, where it comes again; else the last one, and of those that
        were there when it was said, where it may have been taken then.
        """
        length, name = await talk.length(self.service.journal), identity_of(one.message)
        current = talk.loop_id(length) if length else ""
        there = ""
        for number in range(length, 0, -1):
            loop_id = talk.loop_id(number)
            events = await self.service.journal.read(loop_id)
            if any(_signal_id(event) == name for event in events):
                return loop_id
            was_there = one.at is None or not events or events[0].at <= one.at
            there = there or (loop_id if was_there else "")
            if self._is_far_enough(one, events, length - number):
                break
        return there if one.again else current

    def _is_far_enough(self, one: _Said, events: Sequence[Event], looked_at: int) -> bool:
        """Whether nothing that was said can be in loops before the one of these events."""
        if one.at is None:
            return looked_at + 1 >= _LOOKED_BACK
        return bool(events) and events[0].at < one.at - _CLOCKS_DIFFER

    # Talking

    async def _talk(self, one: _Said, who: Person, *, anew: bool) -> Taken:
        """Go on with a conversation: say it to the loop that is under way, or begin the next one."""
        said, address = one.message, one.address
        talk = Conversation(address.conversation)
        for _ in range(_AT_MOST):
            length = await talk.length(self.service.journal)
            if (known := await self._taken_before(talk, length, one)) is not None:
                return known
            events, before = await self._before(said, talk, length, who, anew=anew)
            if before is not None and before.at not in OVER:
                about = await self._about(before, said, who)
                if (answer := await self._fed_back(before.loop_id, said, who, about)) is not None:
                    return self._remembered(talk, said, answer)
                continue  # it came to its end just now, or to an answer
            loop_id = talk.loop_id(length + 1)
            history = () if before is None else lately(counts_after(events, before), self._carried)
            request = self._request(said, address, history)
            try:
                await self.service.begin(self._agent_for(said, before), request, loop_id=loop_id, talk=True)
            except LoopMismatch:
                continue  # somebody else said something here just now: theirs is the loop of this number
            return self._remembered(talk, said, begun(loop_id))
        raise UserError("too much is said here at the same time: say it again")

    async def _taken_before(self, talk: Conversation, length: int, one: _Said) -> Taken | None:
        """What was answered to a message that comes again; None where it is new."""
        said = one.message
        if (known := self._in_mind(talk, said)) is not None:
            return known
        this = (said.user_id, said.message_id)
        names = (identity_of(said), said.message_id)  # the latter, where it was taken by a former version
        for number in range(length, 0, -1):
            loop_id = talk.loop_id(number)
            events = await self.service.journal.read(loop_id)
            for event in events:
                if isinstance(event, Started | FlowStarted):
                    told = Address.of_loop(event.metadata)
                    if told is not None and (told.user_id, told.message_id) == this:
                        return begun(loop_id)
                elif isinstance(event, SignalReceived) and _is_fed_back(event.signal, said.user_id, names):
                    return fed_back_to(loop_id)
            if self._is_far_enough(one, events, length - number):
                break
        return None

    def _in_mind(self, talk: Conversation, said: UserMessage) -> Taken | None:
        return self._taken.get((talk.name, said.user_id, said.message_id))

    def _remembered(self, talk: Conversation, said: UserMessage, taken: Taken) -> Taken:
        """What somebody was answered, kept in mind for when they say the same again."""
        self._taken[talk.name, said.user_id, said.message_id] = taken
        if len(self._taken) > _REMEMBERED:
            self._taken.popitem(last=False)
        return taken

    async def _before(
        self, said: UserMessage, talk: Conversation, length: int, who: Person, *, anew: bool
    ) -> tuple[list[Event], AnyState | None]:
        """The loop that a message goes on with, if with any: its events, and how it stands.

        Raises:
            LoopNotFound: it replies to one that is not there.
            NotPermitted: that is another's.
        """
        if said.reply_to:
            events, state = await self.service.load(said.reply_to)
            told = Address.of_loop(state.metadata)
            same = told is not None and told.conversation == talk.name
            if not (same or owner_of(state.metadata) == who.user_id):
                self.permissions.check(who, Permission.CANCEL_ANY)
            return events, state
        if anew or not self._auto_continue or not length:
            return [], None
        events, state = await self.service.load(talk.loop_id(length))
        told = Address.of_loop(state.metadata)
        return (events, state) if told is not None and told.conversation == talk.name else ([], None)

    async def _about(self, before: AnyState, said: UserMessage, who: Person) -> str | None:
        """The answer that words to a loop send back; `NO_ANSWER` where none waits, but one may come to.

        Raises:
            NotPermitted: one waits, and they are not those of somebody who may reject it.
            UserError: one waits that they were not asked about yet.
        """
        if not isinstance(before, State) or not before.spec.output.approval:
            return None
        if before.at != "approve":
            return NO_ANSWER
        self.permissions.check_sending_back(who)
        loop_id, name, this = before.loop_id, answer_id(before), identity_of(said)
        since = waiting_since(await self.service.journal.read(loop_id))
        told = self.service.told_up_to(loop_id, who.user_id)
        if told < since and self._told is not None:
            told = await self._told(loop_id)
        if told >= since and self.service.told_up_to(loop_id, this) < since:
            return name
        for whom in (who.user_id, this):  # the same message once more is not said again
            self.service.note_told(loop_id, whom, since)
        raise UserError(
            f"an answer has come meanwhile, and waits for approval ({name}): /approve lets it count; to send "
            "it back, say this again"
        )

    async def _fed_back(
        self, loop_id: str, said: UserMessage, who: Person, about: str | None
    ) -> Taken | None:
        """Say something to a loop that is under way; None where it no longer is, or has come to an answer.

        Raises:
            UserError: something is attached, for which a loop that is under way has no place.
        """
        if said.attachments:
            raise UserError("what is attached can be said once the loop that is under way is over")
        signal = Signal(SignalType.FEEDBACK, identity_of(said), who.user_id, said.content, about)
        try:
            stage = await self.service.signal(loop_id, signal)
        except SignalRefused:
            _, state = await self.service.load(loop_id)
            if state.at in OVER or (state.at == "approve" and about is not None):
                return None
            raise
        return fed_back_to(loop_id, f", which is {stage}")

    def _request(self, said: UserMessage, address: Address, before: Iterable[Message]) -> SystemRequest:
        given = apart(said.metadata) or {}
        about = {name: value for name, value in given.items() if name not in (KEY, _AGENT)}
        if said.context_request_id:
            about["context_request_id"] = said.context_request_id
        return SystemRequest(
            session_id=address.conversation,
            messages=(*before, message_of(said)),
            hints=self._hints,
            metadata={**about, **self._noted, **address.metadata()},
        )

    def _agent_for(self, said: UserMessage, before: AnyState | None) -> str:
        """The agent that is meant: the one that is named, the one that was talked with, or the usual one."""
        named = (said.metadata or {}).get(_AGENT, "")
        if named:
            return named
        spoken_with = before.spec.agent if before is not None and not isinstance(before, FlowState) else ""
        return spoken_with if spoken_with in self.service.systems else self._agent

    # Telling

    async def follow(self, loop_id: str, after: int = 0) -> AsyncGenerator[UserResponse]:
        """What somebody is told of a loop, and of those under it, as it happens, to its end.

        `after`: what events up to this number say was told before. Nothing comes for a loop that was begun
        for nobody at a channel.

        Raises:
            LoopNotFound: there is no such loop.
        """
        _, state = await self.service.load(loop_id)
        address = Address.of_loop(state.metadata)
        if address is None:
            return
        async with aclosing(self.tell(address, loop_id, after)) as told:
            async for response in told:
                yield response

    def tell(
        self, address: Address, loop_id: str, after: int = 0, *, till_it_rests: bool = False
    ) -> AsyncGenerator[UserResponse]:
        """`follow`, for who knows whom to tell; see `told_of`. What they may see, their roles here say."""

        def roles_of(user_id: str) -> tuple[str, ...]:
            here = UserMessage(
                channel_type=address.channel_type,
                channel_id=address.channel_id,
                user_id=user_id,
                thread_id=address.thread_id,
            )
            return tuple(self._roles(here))

        return told_of(self.service, address, loop_id, after, till_it_rests=till_it_rests, roles_of=roles_of)


def _is_passing(error: FlyballError) -> bool:
    """Whether an error says nothing of what was asked for: it may be asked for again."""
    if isinstance(error, LoopNotFound | UnknownAgent):
        return False
    return isinstance(error, JournalFailure) or error.retryable


class _Said(Struct, frozen=True):
    """A message, where it was said, when, and whether it may have been taken before."""

    message: UserMessage
    address: Address
    at: float | None = None
    again: bool = False


def _signal_id(event: Event) -> str | None:
    """The id of the signal that an event is of; None of any other."""
    if isinstance(event, SignalReceived):
        return event.signal.id
    return event.id if isinstance(event, Reopened) else None


def _is_fed_back(signal: Signal, by: str, names: tuple[str, ...]) -> bool:
    return signal.type is SignalType.FEEDBACK and signal.by == by and signal.id in names
