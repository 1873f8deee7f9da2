"""A conversation: what was said so far, and the system that answers next."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from flyball.adapters.cli.answering import Answer
from flyball.adapters.cli.driven import Driven, default_model
from flyball.adapters.cli.naming import find_run
from flyball.adapters.cli.origin import Origin, origin_of
from flyball.adapters.cli.serving import is_typed, leaving, serving
from flyball.adapters.cli.shared import Shared
from flyball.core.errors import UserError
from flyball.core.ids import new_id
from flyball.core.messages import Message, Role, user
from flyball.orchestrate.contracts import ExecutionHints, SystemRequest
from flyball.orchestrate.projections.explanation import Explanation, explain
from flyball.orchestrate.recorded import load
from flyball.orchestrate.rendering import with_prompts
from flyball.orchestrate.system import System


class Conversation:
    """What was said so far, and who answers.

    An answer that failed or was stopped is not part of what was said; its run stays recorded.
    """

    def __init__(self, driven: Driven, shared: Shared, instructions: str, hints: ExecutionHints) -> None:
        self.history: tuple[Message, ...] = ()
        self.last_run = ""
        self._driven = driven
        self._shared = shared
        self._instructions = instructions
        self._hints = hints
        self._origin = Origin().changed(driven, default_model())
        self._session_id = new_id()
        self._journal = shared.open()
        self._system: System | None = None
        self._open = AsyncExitStack()

    @property
    def model(self) -> str:
        """The model that answers."""
        return self._origin.model

    async def open(self, run: str | None) -> None:
        """Begin: with nothing, or with the conversation of a run.

        Raises:
            LoopNotFound: there is no such run.
            ConfigurationFailure: the model cannot be had.
        """
        if run is not None:
            events, state = await load(self._journal, await find_run(self._journal, run))
            self._origin = origin_of(events, state).changed(self._driven)
            self._session_id = state.correlation.session_id or self._session_id
            self._instructions = self._instructions or state.spec.instructions
            self.last_run = state.loop_id
            self.history = _spoken(state.history)
        await self.use(self._origin.model)

    async def use(self, model: str) -> None:
        """Let another model answer from here on; if it cannot be had, nothing changes.

        Raises:
            ConfigurationFailure: it cannot be had.
        """
        origin = Origin(model, self._origin.tools, self._origin.output, mcp=self._origin.mcp)
        options = {**origin.options(), "instructions": self._instructions}
        opened = AsyncExitStack()
        system = await opened.enter_async_context(
            serving(self._shared.open(), origin, options, yes=self._driven.yes)
        )
        await self._open.aclose()
        self._open, self._system, self._origin = opened, system, origin

    async def say(self, text: str) -> int:
        """Say something and show the answer; gives the exit code that it would have had.

        Raises:
            CancelledSignal: it was stopped.
        """
        assert self._system is not None
        request = SystemRequest(
            session_id=self._session_id,
            messages=(*self.history, user(text)),
            hints=self._hints,
            metadata=self._origin.metadata(),
        )
        self.last_run = loop_id = new_id()
        answer = Answer(
            typed=is_typed(self._system.agent.spec), tools=self._origin.has_tools, quiet=self._driven.quiet
        )
        async with leaving(self._journal, loop_id):
            response = await answer.shown(self._system.stream(request, loop_id=loop_id))
        code = answer.close(response)
        if response.ok:
            _, state = await load(self._journal, loop_id)
            self.history = _spoken(state.history)
        return code

    async def explained(self) -> Explanation:
        """The last answer, explained.

        Raises:
            UserError: there is none yet.
        """
        if not self.last_run:
            raise UserError("nothing was answered yet")
        events, _ = await load(self._journal, self.last_run)
        return await with_prompts(explain(events))

    def forget(self) -> None:
        """Begin anew: nothing was said."""
        self.history, self._session_id = (), new_id()

    def save(self, file: Path) -> None:
        """Write the conversation down, as Markdown.

        Raises:
            UserError: the file cannot be written.
        """
        said = [message for message in self.history if message.text and message.role is not Role.TOOL]
        text = "".join([f"**{message.role}**\n\n{message.text.strip()}\n\n" for message in said])
        try:
            file.expanduser().write_text(text, encoding="utf-8")
        except OSError as error:
            raise UserError(f"{file} cannot be written: {error.strerror or error}") from error

    async def close(self) -> None:
        """Let go of the model and the journal."""
        await self._open.aclose()
        await self._journal.close()


def _spoken(history: Sequence[Message]) -> tuple[Message, ...]:
    """What was said, without the instructions: each run has them anew."""
    return tuple([message for message in history if message.role is not Role.SYSTEM])
