"""The terminal as a channel: what a person types goes to the dispatcher, and what they are told comes back.

It is one of the dispatcher's channels, as HTTP and NATS are: commands, permissions, approvals and what is
told are the dispatcher's. What is the terminal's own:

- Who sits at it owns the journal's file, and is an admin.
- What is said replies to the loop that waits for somebody, else to the last one that was answered. An answer
  that failed or was stopped is not part of what was said; its loop stays recorded.
- It goes on with any agent's loop, as `flyball resume` does: by its recorded policy, with the model and the
  tools that were recorded or are named. Where a part of the agent is missing here (a validator, an editor),
  what is said to its loop is refused.
- Nothing is driven while the prompt waits for a line: what is not over stays as it is recorded, and others
  may go on with it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Any

from flyball.adapters.cli.answering import Answer
from flyball.adapters.cli.approving import somebody_is_here
from flyball.adapters.cli.deciding import CHANNEL, ROLES, decided, still_waits
from flyball.adapters.cli.driven import Driven, default_model
from flyball.adapters.cli.exits import RUN
from flyball.adapters.cli.naming import find_run, short
from flyball.adapters.cli.origin import Origin, origin_of
from flyball.adapters.cli.person import person
from flyball.adapters.cli.screen import err, plain
from flyball.adapters.cli.serving import gives_json, outfitted
from flyball.adapters.cli.shared import Shared
from flyball.adapters.cli.slash import terminal_commands
from flyball.core.errors import CancelledSignal
from flyball.core.events import Outcome, Stage
from flyball.core.forms.semstreams import Attachment, BlockType, ResponseType, UserMessage, UserResponse
from flyball.core.ids import new_id
from flyball.orchestrate.calls import waits_for_results
from flyball.orchestrate.channels import Address, Dispatcher
from flyball.orchestrate.channels.commands import NEW, command_in
from flyball.orchestrate.channels.following import told_of
from flyball.orchestrate.channels.telling import at_rest
from flyball.orchestrate.claims import is_claimed
from flyball.orchestrate.contracts import ExecutionHints
from flyball.orchestrate.local import LocalRuntime
from flyball.orchestrate.machines import AnyState, stage
from flyball.orchestrate.recorded import load_any
from flyball.orchestrate.service import Service
from flyball.orchestrate.state import State

_GRACE = 5.0
"""Seconds that what is busy behind an answer has to come to its end."""


class TerminalChannel:
    """A person at a terminal, and the conversation that they have. See the module for its rules.

    Args:
        driven: which model, tools and type answer.
        shared: where it is recorded.
        instructions: what the model is told first.
        hints: how each answer is bounded.
    """

    def __init__(self, driven: Driven, shared: Shared, instructions: str, hints: ExecutionHints) -> None:
        self.at = ""
        """The loop that was talked with last."""
        self.answered = ""
        """The loop that what is said next goes on from."""
        self.attached: tuple[Attachment, ...] = ()
        """What goes along with what is said next."""
        self.is_left = False
        """Whether the person has said that they leave."""
        self._waits = False  # whether the loop that was talked with last waits for somebody
        self._followed = ""  # the loop that is followed, or was last, for what was said last
        self._user = person()
        self._name = new_id()
        self._told: set[str] = set()  # the ids of what they were told
        self._driven = driven
        self._instructions = instructions
        self._hints = hints
        self._origin = Origin().changed(driven, default_model())
        self.journal = shared.open()
        self._runtime = LocalRuntime(self.journal, aloud=True)
        self._dispatcher: Dispatcher | None = None
        self._open = AsyncExitStack()

    @property
    def model(self) -> str:
        """The model that answers."""
        return self._origin.model

    async def open(self, run: str | None) -> None:
        """Begin: with nothing, or with the conversation of a run, wherever that was begun.

        Raises:
            LoopNotFound: there is no such run.
            ConfigurationFailure: the model cannot be had.
        """
        if run is not None:
            events, state = await load_any(self.journal, await find_run(self.journal, run))
            self._origin = origin_of(events, state).changed(self._driven)
            if isinstance(state, State):
                self._instructions = self._instructions or state.spec.instructions
            had = Address.of_loop(state.metadata)
            if had is not None and had.conversation == self._address(had.channel_id).conversation:
                self._name = had.channel_id
            self.at = self.answered = state.loop_id
            self._waits = state.at != "done"
        await self.use(self._origin.model)

    async def use(self, model: str) -> None:
        """Let another model answer from here on; if it cannot be had, nothing changes.

        Raises:
            ConfigurationFailure: it cannot be had.
        """
        origin = Origin(model, self._origin.tools, self._origin.output, mcp=self._origin.mcp)
        options: dict[str, Any] = {**origin.options(), "instructions": self._instructions}
        opened = AsyncExitStack()
        agent = await opened.enter_async_context(outfitted(origin, options))
        service = Service([agent], self._runtime, lasting=False, stands_in=True)
        opened.push_async_callback(service.aclose)
        dispatcher = Dispatcher(
            service,
            roles=lambda _: ROLES,
            commands=terminal_commands(self),
            hints=self._hints,
            noted=origin.metadata(),
        )
        await self._open.aclose()
        self._open, self._dispatcher, self._origin = opened, dispatcher, origin

    def forget(self) -> None:
        """Begin anew: nothing was said."""
        self._name, self.at, self.answered, self._waits = new_id(), "", "", False

    async def close(self) -> None:
        """Let go of the model and the journal."""
        await self._open.aclose()
        await self._runtime.aclose()
        await self.journal.close()

    @property
    def next_words(self) -> str:
        """What may be said to the loop that was stopped."""
        return "/approve or /reject REASON" if self._waits else "/resume"

    # Saying

    async def say(self, text: str) -> int:
        """Say something, and show what comes of it; gives the exit code that it would have had.

        Raises:
            CancelledSignal: it was stopped; what was begun is recorded as far as it came.
            FlyballError: it may not be, cannot be done, or could not be recorded.
        """
        async with self._driving():
            return await self._exchanged(self._message(text))

    async def pick_up(self) -> int:
        """Before anything is said: where the conversation's last loop is not over, tell how it stands.

        Who is here is asked about calls that wait. Gives an exit code.

        Raises:
            CancelledSignal: it was stopped.
        """
        if not self._waits:
            return 0
        _, state = await load_any(self.journal, self.at)
        if not (stage(state) is Stage.AWAITING_APPROVAL and somebody_is_here()):
            err().print(self._standing(state), style="yellow", soft_wrap=True)
            return 0
        async with self._driving():
            await self._service.resume(self.at)
            return await self._follow(self.at)

    @asynccontextmanager
    async def _driving(self) -> AsyncGenerator[None]:
        """A block in which loops are driven here; after it none is."""
        self._followed = ""
        try:
            yield
        except asyncio.CancelledError:
            if not self._followed:
                raise
            raise await self._stopped() from None
        finally:
            await self._park(0 if self._waits else _GRACE)

    def _message(self, text: str) -> UserMessage:
        """What was typed, as a message; a command is told from what is said as the dispatcher does it."""
        command, reply_to = command_in(text), ""
        is_said = command is None or (command[0] == NEW and bool(command[1]))
        if command is None:
            reply_to = self.at if self._waits else self.answered
            if self.at and not reply_to:
                self._name = new_id()  # nothing was answered here: nothing was said
        elif not is_said:
            reply_to = self.at  # which is meant where no loop is named, wherever it was begun
        return UserMessage(
            message_id=new_id(),
            channel_type=CHANNEL,
            channel_id=self._name,
            user_id=self._user,
            content=text,
            attachments=self.attached if is_said else (),
            reply_to=reply_to,
            timestamp=time.time(),
        )

    async def _exchanged(self, said: UserMessage) -> int:
        assert self._dispatcher is not None
        is_told = self._waits and said.reply_to == self.at and command_in(said.content) is None
        if is_told and not is_claimed(self.journal, self.at):
            await self._service.check_at_hand(self.at)  # else nobody would hear what is said
        taken = await self._dispatcher.heed(said)
        if taken.type == ResponseType.TEXT:
            if taken.content:
                err().print(plain(taken.content), soft_wrap=True)
            loops = self._runtime.under_way
        else:
            self.attached = ()
            loops = (taken.in_reply_to,)
        code = 0
        for loop_id in loops:
            code = await self._follow(loop_id)
        return code

    # Being told

    async def _follow(self, loop_id: str) -> int:
        """Show a loop until it is over, or waits for somebody who does not decide now; the exit code."""
        service = self._service
        is_driven = self._runtime.driving(loop_id) is not None or is_claimed(self.journal, loop_id)
        _, state = await service.load(loop_id)
        self.at = self._followed = loop_id
        self._waits = not (is_driven or at_rest(state))
        if self._waits:  # nobody drives it
            err().print(self._standing(state), style="yellow", soft_wrap=True)
            return 0
        answer = Answer(
            typed=gives_json(state),
            tools=bool(state.spec.tools) if isinstance(state, State) else self._origin.has_tools,
            quiet=self._driven.quiet,
        )
        try:
            answer.begin()
            while await self._told_till_it_rests(loop_id, answer):
                _, state = await service.load(loop_id)
                if at_rest(state):
                    break
        finally:
            answer.pause()
        _, state = await service.load(loop_id)
        self._waits = state.at != "done"
        if self._waits and not (isinstance(state, State) and waits_for_results(state)):
            err().print(self._standing(state), style="yellow", soft_wrap=True)
            return 0
        response = await service.response(loop_id)
        if response.ok:
            self.answered = loop_id
        return answer.close(response)

    async def _told_till_it_rests(self, loop_id: str, answer: Answer) -> bool:
        """Show what is told of a loop up to where it rests; False where the person left a prompt open."""
        held: UserResponse | None = None
        here = self._address(self._name)
        told = told_of(self._service, here, loop_id, till_it_rests=True, calls=True, roles_of=lambda _: ROLES)
        async with aclosing(told) as responses:
            async for response in responses:
                if held is not None:
                    answer.tell(held)
                    held = None
                if response.type == ResponseType.PROMPT:
                    if not await self._decided(response, loop_id, answer):
                        return False
                elif response.response_id not in self._told:
                    self._told.add(response.response_id)
                    if _is_passing(response):
                        answer.tell(response)
                    else:
                        held = response  # what is told last is the end, which is shown with what it cost
        if held is not None and (await self._service.load(loop_id))[1].at != "done":
            answer.tell(held)
        return True

    async def _decided(self, prompt: UserResponse, loop_id: str, answer: Answer) -> bool:
        """Have the person decide about a call, if it still waits; False where they leave it open."""
        assert self._dispatcher is not None
        if not await still_waits(self.journal, prompt, loop_id):
            return True
        return await decided(prompt, self._dispatcher.heed, answer, yes=self._driven.yes, may_wait=True)

    # Standing

    def _standing(self, state: AnyState) -> str:
        """How a loop that is not over stands, and what can be said to it here."""
        name, now = short(state.loop_id), stage(state)
        if now is Stage.AWAITING_APPROVAL:
            return f"run {name} waits: /approve or /reject REASON decides, /cancel ends it"
        paused = " is paused" if now is Stage.PAUSED else " is not over"
        return f"run {name}{paused}: /resume goes on with it, /cancel ends it; what you say reaches it"

    async def _stopped(self) -> CancelledSignal:
        """An answer was stopped: its loop is left as recorded, and one that waits for somebody still does."""
        await self._park(0)
        _, state = await load_any(self.journal, self.at)
        self._waits = state.at != "done" and at_rest(state)
        if state.outcome is Outcome.SUCCESS:
            self.answered = self.at
        name = short(self.at)
        error = CancelledSignal(f"run {name} is recorded as far as it came; to go on: flyball resume {name}")
        error.details[RUN] = self.at
        return error

    async def _park(self, seconds: float) -> None:
        """Drive nothing any more; what is busy has so many seconds to come to its end."""
        if self._dispatcher is not None:
            await self._service.drain(seconds)
        await self._runtime.park()

    @property
    def _service(self) -> Service:
        assert self._dispatcher is not None, "the channel is open"
        return self._dispatcher.service

    def _address(self, name: str) -> Address:
        return Address(CHANNEL, name, self._user)


def _is_passing(response: UserResponse) -> bool:
    """Whether something is told in passing, and is not the end of a loop."""
    progress = any(block.type == BlockType.PROGRESS for block in response.blocks)
    return response.type == ResponseType.STREAM or progress
