"""AgentLoop: a conversation with a model that may call tools. It remembers what was said.

Three memories (`loop.memory`): what the user and the model have said stays; what a turn worked with, what its
tools gave and what was looked up for it, goes with the turn; what was decided stays until it is changed. Each
turn is a loop of its own, so a conversation that has a journal is found again there: `restore`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from flyball.core.context_provider import ContextProvider
from flyball.core.correlation import Correlation
from flyball.core.errors import NoEngine, SchemaRequired, UserError
from flyball.core.feature import Feature
from flyball.core.ids import new_id
from flyball.core.limits import Limits
from flyball.core.messages import Content, Message, Role, assistant, system
from flyball.core.settings import PAGANTIC, STRUCTURED, ModelSettings
from flyball.inference.engine import Engine
from flyball.inference.registry import resolve_engine
from flyball.inference.request import NO_SETTINGS
from flyball.inference.stream import StreamHandler
from flyball.memory.conversation import Conversation
from flyball.memory.policy import MemoryPolicy
from flyball.observe.event_log import EventLog
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.elsewhere import Driver
from flyball.orchestrate.flow.doing import run_heard
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.patterns.answered import Answered
from flyball.orchestrate.patterns.failing import by_category
from flyball.orchestrate.patterns.hearing import heard_by
from flyball.orchestrate.patterns.looking import Noting, looking_up
from flyball.orchestrate.patterns.observing import watching
from flyball.orchestrate.patterns.phases import answer_mode
from flyball.orchestrate.patterns.turns import Turn, turns_of
from flyball.orchestrate.schema_output import SchemaOutput


@dataclass(frozen=True, kw_only=True)
class LoopConfig:
    """What an AgentLoop is made of.

    `system_prompt` is a text, which opens the conversation, or whatever else an agent takes as instructions
    (a prompt provider, a template, a function), which is asked anew for each turn. `grammar` (GBNF) is for
    `chat_structured` alone; an empty one is none. `on_tool_result` is called with the name and the output of
    each tool that has run. `observer` is told all that happens. `context_provider` is asked before each turn
    about what the user said; what it knows is told, and not kept, and if it fails the model is asked without.
    `memory` says how much of the conversation is kept. With a `journal` (or a `runtime`, which has one) the
    conversation is found again by its `session_id`.
    """

    engine: Engine | str | None = None
    tools: Sequence[Any] = ()
    system_prompt: Any = ""
    grammar: str = ""
    max_tokens: int = 2048
    max_tool_iterations: int = 20
    stream: StreamHandler | None = None
    on_tool_result: Callable[[str, str], object] | None = None
    observer: EventLog | None = None
    context_provider: ContextProvider | None = None
    memory: MemoryPolicy = field(default_factory=MemoryPolicy)
    session_id: str = ""
    journal: Journal | None = None
    runtime: Driver | None = None
    features: Sequence[Feature] = ()
    settings: ModelSettings = NO_SETTINGS
    name: str = "agent"


class LoopResult(Answered, frozen=True, eq=False):
    """What came of a turn: `output` is what the answer was read as, the text or JSON."""


class AgentLoop:
    """A conversation. It is one user's: one turn at a time.

    Raises:
        NoEngine: the configuration names no model.
    """

    def __init__(self, config: LoopConfig) -> None:
        if config.engine is None:
            raise NoEngine("LoopConfig.engine is needed: an engine, or a model string such as 'local'")
        self.config = config
        self.session_id = config.session_id or new_id()
        self.memory = Conversation(config.memory)
        self._turn = 0
        self._busy = self._restored = False
        engine = resolve_engine(config.engine)
        self._forget()
        prompt = () if isinstance(config.system_prompt, str) else config.system_prompt
        provider = config.context_provider
        noting = None if provider is None else Noting(provider, self.memory.working)
        self._agent: Agent[Any, Any] = Agent(
            engine,
            tools=config.tools,
            instructions=prompt or (),
            settings=config.settings.over(ModelSettings(max_tokens=config.max_tokens).over(PAGANTIC)),
            limits=Limits(max_iterations=config.max_tool_iterations),
            features=[*config.features, *looking_up(noting, when="turn"), *self._watching()],
            name=config.name,
        )
        self._mode = answer_mode(engine, config.grammar)

    # Talking

    async def chat(self, message: Content, **options: Any) -> LoopResult:
        """Say something, and give the answer. Options are those of `Agent.run`.

        Raises:
            UserError: a turn is under way.
            FlyballError: the turn failed; the conversation is as it was, and `partial` has what there is.
        """
        return await self._take_turn(self._agent, message, options)

    async def chat_structured(self, message: Content, schema: Any, **options: Any) -> LoopResult:
        """Say something, and give an answer that follows a schema (or is of a type).

        The temperature is 0.3 and there is no thinking, unless set; the grammar holds the decoder, if there
        is one; broken JSON and misspelt members of enumerations are put right.

        Raises:
            SchemaRequired: there is none.
            UserError: a turn is under way.
            FlyballError: the turn failed; the conversation is as it was before it.
        """
        if schema is None:
            raise SchemaRequired("chat_structured needs a JSON Schema, or a type")
        return await self._take_turn(self._structured(schema), message, options)

    def messages(self) -> list[Message]:
        """What was said, the system prompt first: a copy, to be looked at, kept, or handed on."""
        return self.memory.messages()

    @property
    def session(self) -> Any:
        """What was decided, by name: kept across turns."""
        return self.memory.session

    async def _take_turn(
        self, agent: Agent[Any, Any], message: Content, options: dict[str, Any]
    ) -> LoopResult:
        if self._busy:
            raise UserError("a turn of this conversation is under way: wait for its answer first")
        self._busy = True
        try:
            self.memory.working.reset()
            before = self.messages()
            given = {**self._options(self._turn + 1), "messages": before, **options}
            stream = self.config.stream
            self._turn += 1  # also one that fails is recorded, and is no other's
            async with by_category(agent.config.output):
                run = await run_heard(agent, message, given, None if stream is None else heard_by(stream))
            said = _since(before, run.messages)
            self._keep(said[0], run.text)
            self._note(said)
            return LoopResult(run.text, run.output, run.usage, run)
        finally:
            self._busy = False

    def _note(self, messages: Sequence[Message]) -> None:
        """Put what the turn's tools gave into what it worked with."""
        for message in messages:
            for result in message.tool_results:
                self.memory.working.step_results[result.call_id] = result.content

    def _keep(self, said: Message, answer: str) -> None:
        """Remember what was said and answered; what led from the one to the other is in the journal."""
        self.memory.buffer.extend([said, assistant(answer or "(no words)")])

    def _structured(self, schema: Any) -> Agent[Any, Any]:
        output: Any = SchemaOutput(cast("dict[str, Any]", schema)) if isinstance(schema, dict) else schema
        return self._agent.clone(
            output=output,
            settings=self._agent.config.settings.over(STRUCTURED),
            grammar=self.config.grammar or None,
            output_mode=self._mode,
        )

    def _options(self, turn: int) -> dict[str, Any]:
        config = self.config
        options: dict[str, Any] = {"correlation": Correlation(session_id=self.session_id)}
        if config.journal is not None or config.runtime is not None:
            options["loop_id"] = f"{self.session_id}-t{turn}"
        if config.runtime is not None:
            options["runtime"] = config.runtime
        elif config.journal is not None:
            options["journal"] = config.journal
        if config.memory.persist_session and len(self.session):
            options["metadata"] = {"session": self.session.snapshot()}
        return options

    def _watching(self) -> list[Feature]:
        config = self.config
        watchers: list[Feature] = watching(config.observer)
        if config.on_tool_result is not None:
            from flyball.observe.hooks import Hook

            told = config.on_tool_result

            def tell(_: Any, _id: str, name: str, result: str, _error: str | None) -> None:
                told(name, result)

            watchers.append(Hook(on_tool_end=tell))
        return watchers

    # Going on

    async def restore(self) -> int:
        """Remember the turns of this session that its journal holds, and bring one to its end that broke off.

        Gives how many turns there are.

        Raises:
            UserError: there is no journal, or something was said already.
            FlyballError: a turn that broke off failed now; those before it are remembered.
        """
        journal = self.config.journal or getattr(self.config.runtime, "journal", None)
        if journal is None:
            raise UserError("there is nothing to be found again without a journal: LoopConfig(journal=...)")
        if self._turn and not self._restored:
            raise UserError("this conversation has begun: a new AgentLoop can be restored")
        self._restored, self._turn = True, 0
        self._forget()
        async for turn in turns_of(journal, self.session_id):
            self._turn += 1
            answer = turn.answer if turn.is_over else await self._finish(turn)
            if turn.session is not None:
                self.session.restore(turn.session)
            if answer is not None:  # what was said in a turn that failed was never part of the conversation
                self._keep(turn.said, answer)
        return self._turn

    def _forget(self) -> None:
        """Begin anew, with the system prompt alone."""
        self.memory.buffer.clear()
        prompt = self.config.system_prompt
        if isinstance(prompt, str) and prompt:
            self.memory.buffer.append(system(prompt))

    async def _finish(self, turn: Turn) -> str:
        agent = self._agent if turn.output is None else self._structured(turn.output)
        if self.config.runtime is None and self.config.journal is not None:
            return (await agent.resume(turn.loop_id, self.config.journal)).text
        given: Any = {**self._options(self._turn), "messages": turn.history}
        given.pop("metadata", None)
        if turn.metadata is not None:
            given["metadata"] = turn.metadata
        run = await agent.run(turn.said.parts if turn.said.role is Role.USER else None, **given)
        return run.text


def _since(before: Sequence[Message], messages: Sequence[Message]) -> Sequence[Message]:
    """What a turn has added to the conversation: a system message that was made for it stands before that."""
    made = messages[0].role is Role.SYSTEM and not (before and before[0].role is Role.SYSTEM)
    return messages[len(before) + made :]
