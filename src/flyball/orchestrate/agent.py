"""Agent: a model with tools, instructions and a typed output, ready to run.

An agent is configuration and code, no state: it may run many times at once. What it is made of stands in one
`AgentConfig`; the loop's policy (`LoopSpec`) and the code behind it (`Bindings`) are worked out from it once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast, overload

from msgspec.structs import replace
from typing_extensions import Unpack

from flyball.core.clock import Clock
from flyball.core.context import DepsT
from flyball.core.errors import FlyballError, OrchestrationFailure, UserError
from flyball.core.events import VERSION, Started
from flyball.core.feature import Feature
from flyball.core.ids import new_id
from flyball.core.limits import Limits
from flyball.core.messages import Content, Message, Role, Text
from flyball.core.settings import ModelSettings
from flyball.core.spec import LoopSpec, OutputMode
from flyball.core.tools import ToolChoice
from flyball.inference.engine import Engine
from flyball.orchestrate.answering import (
    OutsideResult,
    for_recorded,
    length_with,
    send_results,
)
from flyball.orchestrate.beginning import check_question, lent_by, prompt_message, started_by
from flyball.orchestrate.bindings import (
    Approval,
    Bindings,
    Delivery,
    Instruction,
    ToolFilter,
    Validator,
    nobody_can_approve,
)
from flyball.orchestrate.clock import SYSTEM_CLOCK
from flyball.orchestrate.config import AgentConfig, bind
from flyball.orchestrate.driven import DrivenLoop
from flyball.orchestrate.driver import Drive
from flyball.orchestrate.edited import edited, edited_elsewhere, replayed_editor
from flyball.orchestrate.elsewhere import Driver
from flyball.orchestrate.features import stages_of
from flyball.orchestrate.followed import FollowedLoop, until_over
from flyball.orchestrate.journal import Journal, MemoryJournal
from flyball.orchestrate.ledger import Ledger
from flyball.orchestrate.lineage import at_home
from flyball.orchestrate.machine import start
from flyball.orchestrate.options import RunOptions, check_options
from flyball.orchestrate.output_types import OutputType
from flyball.orchestrate.outputs import reader_for
from flyball.orchestrate.recorded import fork, load
from flyball.orchestrate.result import OutputT, RunResult
from flyball.orchestrate.runs import AgentRun, Loop, StreamedRun, result_from, result_of
from flyball.orchestrate.tracing import trace_from, trace_recorded
from flyball.tool.result import describe

if TYPE_CHECKING:
    from flyball.constraint.grammar import GrammarDefinition
    from flyball.orchestrate.agent_features import AgentFeatures
    from flyball.orchestrate.agent_tool import AgentTool, AgentToolOptions
    from flyball.tool.protocol import Tool

F = TypeVar("F", bound=Callable[..., Any])
ToolT = TypeVar("ToolT", bound="Tool")
OtherT = TypeVar("OtherT")
_USER = Role.USER
_SETTINGS, _LIMITS = ModelSettings(), Limits()

_overrides: ContextVar[dict[Any, dict[str, Any]]] = ContextVar("flyball_overrides")
"""What is overridden in this context, by agent."""


class Agent(Generic[DepsT, OutputT]):
    """An agent that gives an `OutputT`, with dependencies of type `DepsT`.

    Args:
        model: a model string (`"openai:gpt-5"`, `"local"`) or an engine.
        output: the type of the output: `str`, a pydantic model, a dataclass, a TypedDict, any type; several
            as a union or a list; wrapped in `ToolOutput` or the like, where it matters how it is asked for.
        tools: what the model may call: functions made by `@tool`, plain functions, or toolsets.
        instructions: what the model is told first: text, templates, prompt providers, or functions that give
            it when a run begins.
        name: what the agent is called in journals and traces.
        deps_type: the type of the runs' dependencies; only for type checkers.
        settings: temperature, tokens and the like.
        limits: what a run may use up.
        retries: how often in a row the model may be asked again for an answer or a tool call it got wrong.
        tool_choice: how free the model is to call tools.
        end_strategy: `early` takes the first valid output and leaves other calls of that turn unrun;
            `exhaustive` runs them first.
        output_mode: how the output is got out of the model; by default what suits the type and the model.
        grammar: a grammar (GBNF text, or a GrammarDefinition) that the decoder is held to, where it can be.
        validators: functions that look at an output, change it, or ask for another by raising ModelRetry.
        tool_filters: decide about all calls of a turn before any of them runs: they let through, change
            arguments, or reject with a reason that the model reads.
        approval: decides about calls to tools that need approval; without it they wait for a signal.
        output_approval: whether an answer waits for a person to approve it before it counts.
        deliveries: functions that must run when a loop ends, also if it is resumed after a crash.
        role: what the agent is there for, such as `architect`; it stands in journals, and decides the stage.
        editor: the agent that goes on from an architect's answer, in a loop of its own.
        features: what else has a say in a run: guardrails, interceptors, conditions, middleware and the like.
        asks_again: whether the model is asked again for an answer that breaks its grammar.
        description: what the agent is for, told to whoever may ask it: other agents, MCP clients. Its own
            model is not told.
    """

    @overload
    def __init__(
        self,
        model: str | Engine | None = None,
        *,
        tools: Iterable[Any] = (),
        instructions: Instruction | Sequence[Instruction] = (),
        name: str = "agent",
        deps_type: type[DepsT] = ...,
        settings: ModelSettings = ...,
        limits: Limits = ...,
        retries: int = 1,
        tool_choice: ToolChoice | None = None,
        end_strategy: Literal["early", "exhaustive"] = "early",
        output_mode: OutputMode | str | None = None,
        grammar: str | GrammarDefinition | None = None,
        validators: Sequence[Validator] = (),
        tool_filters: Sequence[ToolFilter] = (),
        approval: Approval | None = None,
        output_approval: bool = False,
        deliveries: Sequence[Delivery] = (),
        role: str = "",
        editor: Agent[Any, Any] | None = None,
        features: Iterable[Feature] = (),
        asks_again: bool = True,
        description: str = "",
    ) -> None: ...
    @overload
    def __init__(
        self,
        model: str | Engine | None = None,
        *,
        output: OutputType[OutputT],
        tools: Iterable[Any] = (),
        instructions: Instruction | Sequence[Instruction] = (),
        name: str = "agent",
        deps_type: type[DepsT] = ...,
        settings: ModelSettings = ...,
        limits: Limits = ...,
        retries: int = 1,
        tool_choice: ToolChoice | None = None,
        end_strategy: Literal["early", "exhaustive"] = "early",
        output_mode: OutputMode | str | None = None,
        grammar: str | GrammarDefinition | None = None,
        validators: Sequence[Validator] = (),
        tool_filters: Sequence[ToolFilter] = (),
        approval: Approval | None = None,
        output_approval: bool = False,
        deliveries: Sequence[Delivery] = (),
        role: str = "",
        editor: Agent[Any, Any] | None = None,
        features: Iterable[Feature] = (),
        asks_again: bool = True,
        description: str = "",
    ) -> None: ...
    @overload
    def __init__(
        self: Agent[Any, Any],
        model: str | Engine | None = None,
        *,
        output: Any,
        tools: Iterable[Any] = (),
        instructions: Instruction | Sequence[Instruction] = (),
        name: str = "agent",
        deps_type: type[DepsT] = ...,
        settings: ModelSettings = ...,
        limits: Limits = ...,
        retries: int = 1,
        tool_choice: ToolChoice | None = None,
        end_strategy: Literal["early", "exhaustive"] = "early",
        output_mode: OutputMode | str | None = None,
        grammar: str | GrammarDefinition | None = None,
        validators: Sequence[Validator] = (),
        tool_filters: Sequence[ToolFilter] = (),
        approval: Approval | None = None,
        output_approval: bool = False,
        deliveries: Sequence[Delivery] = (),
        role: str = "",
        editor: Agent[Any, Any] | None = None,
        features: Iterable[Feature] = (),
        asks_again: bool = True,
        description: str = "",
    ) -> None: ...
    def __init__(
        self,
        model: str | Engine | None = None,
        *,
        output: Any = str,
        tools: Iterable[Any] = (),
        instructions: Instruction | Sequence[Instruction] = (),
        name: str = "agent",
        deps_type: type[Any] | None = None,
        settings: ModelSettings = _SETTINGS,
        limits: Limits = _LIMITS,
        retries: int = 1,
        tool_choice: ToolChoice | None = None,
        end_strategy: Literal["early", "exhaustive"] = "early",
        output_mode: OutputMode | str | None = None,
        grammar: str | GrammarDefinition | None = None,
        validators: Sequence[Validator] = (),
        tool_filters: Sequence[ToolFilter] = (),
        approval: Approval | None = None,
        output_approval: bool = False,
        deliveries: Sequence[Delivery] = (),
        role: str = "",
        editor: Agent[Any, Any] | None = None,
        features: Iterable[Feature] = (),
        asks_again: bool = True,
        description: str = "",
        **unknown: Any,
    ) -> None:
        self.config = AgentConfig.of(
            model=model,
            output=output,
            tools=tools,
            instructions=instructions,
            name=name,
            settings=settings,
            limits=limits,
            retries=retries,
            tool_choice=tool_choice,
            end_strategy=end_strategy,
            output_mode=output_mode,
            grammar=grammar,
            validators=validators,
            tool_filters=tool_filters,
            approval=approval,
            output_approval=output_approval,
            deliveries=deliveries,
            role=role,
            editor=editor,
            features=features,
            asks_again=asks_again,
            description=description,
            **unknown,
        )
        self._bindings: Bindings | None = None

    # Running

    async def run(
        self, prompt: Content | None = None, **options: Unpack[RunOptions[DepsT]]
    ) -> RunResult[OutputT]:
        """Run to the end and give the result.

        Raises:
            Deferred: calls wait for results from outside; it says which, and the loop can be gone on with.
            FlyballError: the run failed or was cancelled; `partial` holds what it had reached.
        """
        given: Any = options
        if options and "parent" in options:
            given = at_home(options)
        if not given:
            drive = self._fresh(prompt)
        elif "runtime" in given:
            return await self._run_elsewhere(prompt, given)
        else:
            drive = await self._begin(prompt, given)
        if drive.bindings.waits_for_people and not drive.reachable:
            raise nobody_can_approve(drive.bindings)
        await drive.run()
        return await edited(drive) if drive.state.spec.editor else result_of(drive)

    def run_sync(
        self, prompt: Content | None = None, **options: Unpack[RunOptions[DepsT]]
    ) -> RunResult[OutputT]:
        """`run`, for code that is not async.

        Raises:
            UserError: called where an event loop runs already: use `await agent.run(...)` there.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.run(prompt, **options))
        raise UserError("run_sync was called inside a running event loop: use `await agent.run(...)` there")

    @asynccontextmanager
    async def run_stream(
        self, prompt: Content | None = None, **options: Unpack[RunOptions[DepsT]]
    ) -> AsyncGenerator[StreamedRun[OutputT]]:
        """Run while the model's answers are streamed: as text, or as stream events.

        A run that is not read to its end stays as it is recorded; its `loop_id` can be resumed.
        With a `runtime` the loop is not held up by its reader, and goes on elsewhere when the block is left.
        """
        async with self._opened(prompt, options, pieces=True) as loop:
            streamed: StreamedRun[OutputT] = StreamedRun(loop)
            try:
                yield streamed
            finally:
                await streamed.close()

    @asynccontextmanager
    async def iter(
        self, prompt: Content | None = None, **options: Unpack[RunOptions[DepsT]]
    ) -> AsyncGenerator[AgentRun[OutputT]]:
        """Run step by step: a step is one model call with the handling of its tool calls.

        A run that is left before its end stays as it is recorded; its `loop_id` can be resumed.
        With a `runtime` nothing is held up between the steps: they are given out as they were recorded.
        """
        async with self._opened(prompt, options, pieces=False) as loop:
            run: AgentRun[OutputT] = AgentRun(loop)
            try:
                yield run
            finally:
                run.leave()

    async def run_batch(
        self,
        prompts: Iterable[Content],
        *,
        concurrency: int = 16,
        **options: Unpack[RunOptions[DepsT]],
    ) -> list[RunResult[OutputT] | FlyballError]:
        """Run many prompts at once; results in their order, a failed one as its error.

        One that breaks off for a reason outside the taxonomy, such as a journal of one's own that raises
        OSError, is an OrchestrationFailure in its place, with that as its cause: the others go on.

        Raises:
            UserError: with a `loop_id`: each prompt is a loop of its own; or with one prompt alone.
        """
        if "loop_id" in options:
            raise UserError("run_batch makes a loop for each prompt: leave loop_id out")
        if type(concurrency) is not int or concurrency < 1:
            raise UserError(f"concurrency must be a whole number from 1, not {concurrency!r}")
        if isinstance(prompts, str | bytes) or not isinstance(prompts, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(f"run_batch takes several prompts, such as ['one', 'two'], not {prompts!r:.200}")
        given = list(prompts)
        room = asyncio.Semaphore(concurrency)

        async def one(prompt: Content) -> RunResult[OutputT] | FlyballError:
            async with room:
                try:
                    return await self.run(prompt, **options)
                except FlyballError as error:
                    return error
                except Exception as error:
                    failure = OrchestrationFailure(f"the run broke off: {describe(error)}")
                    failure.__cause__ = error
                    return failure

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(prompt)) for prompt in given]
        return [task.result() for task in tasks]

    async def resume(
        self,
        loop_id: str,
        journal: Journal,
        *,
        deps: DepsT | None = None,
        deferred_results: Sequence[OutsideResult] = (),
    ) -> RunResult[OutputT]:
        """Go on with a recorded loop, by its recorded spec; a finished one gives its result again.

        `deferred_results` are those of calls that wait for them.

        Raises:
            LoopNotFound: the journal holds no such loop.
            AnswerRefused: a result is of no call that waits for one.
            Deferred: it waits for results, still or again.
        """
        if deferred_results:
            await send_results(journal, loop_id, deferred_results)
        drive = await Drive.take_over(self._bound({"deps": deps}), journal, loop_id)
        await drive.run()
        return await edited(drive) if drive.state.spec.editor else result_of(drive)

    async def replay(self, loop_id: str, journal: Journal) -> RunResult[OutputT]:
        """The result of a recorded loop, from its journal alone: no model, no tool, no callback runs.

        Raises:
            LoopNotFound: the journal holds no such loop.
            UserError: the loop is not over yet.
            FlyballError: the loop's own failure, as it was when it ended.
        """
        events, state = await load(journal, loop_id)
        if state.at != "done":
            raise UserError(f"loop {loop_id!r} is not over (it stands at {state.at!r}): use resume()")
        # By the recorded spec: no engine is looked for, so a journal can be read where none is installed.
        reader, stages = reader_for(self.config.output, state.spec.output), stages_of(self.config.features)
        result = result_from(state, reader, journal, stages.tracker, trace_from(events, stages))
        if state.spec.editor and self.config.editor is not None:
            return replace(result, editor=await replayed_editor(self.config.editor, loop_id, journal))
        return result

    async def fork(
        self,
        loop_id: str,
        journal: Journal,
        *,
        turn: int,
        prompt: Content | None = None,
        new_loop_id: str | None = None,
        into: Journal | None = None,
        deps: DepsT | None = None,
    ) -> RunResult[OutputT]:
        """Go on from another loop's first `turn` turns, as this agent, in a loop of its own.

        To fork with another model: `agent.clone(model=...).fork(...)`.

        Raises:
            LoopNotFound: the journal holds no such loop.
            UserError: the loop has no such turn, or a prompt is needed.
        """
        bindings = self._bound({"deps": deps})
        forked = await fork(
            journal,
            loop_id,
            turn,
            bindings.spec,
            prompt=prompt_message(prompt),
            into=into,
            new_loop_id=new_loop_id,
            identity=bindings.identity,
        )
        drive = await Drive.take_over(bindings, into or journal, forked)
        await drive.run()
        return await edited(drive) if drive.state.spec.editor else result_of(drive)

    # As a tool

    @overload
    def as_tool(
        self, name: str | None = None, description: str | None = None, **options: Unpack[AgentToolOptions]
    ) -> AgentTool: ...
    @overload
    def as_tool(
        self,
        name: str | None = None,
        description: str | None = None,
        *,
        parameters: type[OtherT],
        prompt: Callable[[OtherT], Content | Awaitable[Content]],
        **options: Unpack[AgentToolOptions],
    ) -> AgentTool: ...
    def as_tool(self, name: str | None = None, description: str | None = None, **options: Any) -> AgentTool:
        """This agent as a tool of another: each call is a run of its own, under the run that calls.

        See `AgentTool` for the options.

        Raises:
            SchemaMalformed, UserError: see `AgentTool`.
        """
        from flyball.orchestrate.agent_tool import AgentTool

        return AgentTool(self, name, description, **options)

    # Variations

    @overload
    def clone(self, *, output: OutputType[OtherT], **changes: Any) -> Agent[DepsT, OtherT]: ...
    @overload
    def clone(self, *, output: Any, **changes: Any) -> Agent[DepsT, Any]: ...
    @overload
    def clone(self, **changes: Any) -> Agent[DepsT, OutputT]: ...  # pyright: ignore[reportOverlappingOverload] - it is used where no output is named
    def clone(self, **changes: Any) -> Agent[Any, Any]:
        """Another agent that differs in what is named here; this one stays as it is."""
        other: Agent[Any, Any] = object.__new__(type(self))
        other.config = self.config.changed(**changes)
        other._bindings = None
        return other

    @contextmanager
    def override(self, **changes: Any):
        """Within this block (and the tasks begun in it) the agent has another model, tools, deps, ...

        Blocks may be nested: the inner one's changes lie over the outer one's.
        Meant for tests: `with agent.override(model=ScriptedEngine("hi")): ...`

        Raises:
            UserError: an option that does not exist or cannot be.
        """
        outer = _overrides.get({})
        self.config.changed(**_without_deps(changes))
        token = _overrides.set({**outer, self: {**outer.get(self, {}), **changes}})
        try:
            yield
        finally:
            _overrides.reset(token)

    # Registering

    @overload
    def tool(self, function: F) -> F: ...
    @overload
    def tool(self, function: ToolT) -> ToolT: ...
    @overload
    def tool(self, **options: Any) -> Callable[[F], F]: ...
    def tool(self, function: Any = None, **options: Any) -> Any:
        """Give the agent a tool: `@agent.tool`, `@agent.tool(timeout=5)`, or `agent.tool(made)`."""
        from flyball.tool.decorator import as_tool, tool

        def register(function: Any) -> Any:
            made = tool(**options)(function) if options else as_tool(function)
            self._configure(tools=(*self.config.tools, made))
            return made

        return register if function is None else register(function)

    def instructions(self, function: F) -> F:
        """Give the agent a prompt function: called when a run begins, its text joins the instructions."""
        self._configure(instructions=(*self.config.instructions, function))
        return function

    def output_validator(self, function: F) -> F:
        """Give the agent an output validator: `(ctx, output)`, returns the output or raises ModelRetry."""
        self._configure(validators=(*self.config.validators, function))
        return function

    def _configure(self, **changes: Any) -> None:
        self.config = self.config.changed(**changes)
        self._bindings = None

    # Behind it

    @property
    def spec(self) -> LoopSpec:
        """The policy that its loops record."""
        return self._bound({}).spec

    def features(self) -> AgentFeatures:
        """What this agent makes use of, in numbers: for who must refuse what it cannot support."""
        from flyball.orchestrate.agent_features import features_of

        changes = _without_deps(_overrides.get({}).get(self, {}))
        return features_of(self.config.changed(**changes) if changes else self.config)

    def bindings(self) -> Bindings:
        """The code behind this agent's spec: what a worker needs to carry its loops on."""
        return self._bound({})

    def _fresh(self, prompt: Content | None) -> Drive:
        """Begin a run without options: a loop of its own, in a journal of its own, which nobody waits for."""
        bindings = self._bindings
        if bindings is None or _overrides.get(None) is not None:
            bindings = self._bound({})
        if type(prompt) is str and prompt.isascii() and prompt:
            message: Message | None = Message(_USER, (Text(prompt),))
        else:
            message = prompt_message(prompt)
        loop_id = new_id()
        started = Started(SYSTEM_CLOCK.now(), VERSION, loop_id, bindings.spec, message)
        if bindings.identity is not None:
            started = replace(started, identity=bindings.identity)
        if message is None:
            check_question(started)
        journal = MemoryJournal(started)
        if bindings.watched is not None:
            return bindings.watched(Drive).fresh(bindings, journal, started)
        return Drive(bindings, journal, start(started), 1, SYSTEM_CLOCK, shared=False)

    async def _begin(self, prompt: Content | None, options: Any) -> Drive:
        if not options:
            return self._fresh(prompt)
        bindings, started, clock = await self.beginning(prompt, options)
        journal = options.get("journal")
        if results := for_recorded(options):
            await send_results(journal, started.loop_id, results, clock, started)
        if journal is None:
            return await Drive.begin(bindings, MemoryJournal(), started, clock, shared=False)
        home = options["parent"].home if "parent" in options else None
        known = isinstance(home, Ledger) and home.journal is journal
        above = cast("Ledger[Any]", home) if known else None
        drive = await Drive.begin(bindings, journal, started, clock, parent=above)
        if isinstance(above, Drive):
            drive.stays = above.stays
        return drive

    @asynccontextmanager
    async def _opened(self, prompt: Content | None, options: Any, *, pieces: bool) -> AsyncGenerator[Loop]:
        """Begin a run that its caller takes part in, wherever it is driven; with the answers in pieces."""
        if "parent" in options:
            options = at_home(options)
        if "runtime" not in options:
            drive = await self._begin(prompt, options)
            try:
                yield DrivenLoop(drive)
            finally:
                drive.close()
            return
        bindings, started, clock = await self.beginning(prompt, options)
        runtime: Driver = options["runtime"]
        if results := for_recorded(options):
            await runtime.answer(started.loop_id, results, started)
        joined = runtime.join(bindings, options.get("journal"), started, clock, pieces=pieces)
        async with joined as following:
            if results:  # what follows from them is shown, though it may have happened by now
                events = await following.journal.read(started.loop_id)
                following.length = min(following.length, length_with(events, results))
            yield await FollowedLoop.join(following, bindings, started.loop_id)

    async def _run_elsewhere(self, prompt: Content | None, options: Any) -> RunResult[OutputT]:
        """Hand the loop to another driver."""
        bindings, started, clock = await self.beginning(prompt, options)
        runtime: Driver = options["runtime"]
        if results := for_recorded(options):
            await runtime.answer(started.loop_id, results, started)
        journal, state = await runtime.run(bindings, options.get("journal"), started, clock)
        if state.at != "done" and started.parent_loop_id:
            # A person is waited for, or a result from outside: then whoever began it waits with it.
            async with runtime.join(bindings, options.get("journal"), started, clock) as following:
                state = await until_over(following, started.loop_id)
        trace = await trace_recorded(journal, started.loop_id, bindings.stages)
        result = result_from(state, bindings.output, journal, bindings.tracker, trace)
        if not state.spec.editor:
            return result
        return replace(result, editor=await edited_elsewhere(runtime, bindings, journal, state, clock))

    def begun(self, prompt: Content | None, options: Mapping[str, Any]) -> tuple[Bindings, Started, Clock]:
        """What a runtime needs to begin a loop, from what `run` takes; nothing is recorded yet.

        Raises:
            UserError: an option that does not exist or cannot be, or nothing to run.
        """
        check_options(options)
        bindings = self._bound(options)
        clock = options.get("clock", SYSTEM_CLOCK)
        message = prompt_message(prompt)
        started = started_by(bindings.spec, message, options, clock.now(), bindings.identity)
        check_question(started)
        return bindings, started, clock

    async def beginning(
        self, prompt: Content | None, options: Mapping[str, Any]
    ) -> tuple[Bindings, Started, Clock]:
        """`begun`, with what the run that this one is begun from hands on; that may have to be issued.

        Raises:
            UserError: an option that does not exist or cannot be, or nothing to run.
            DelegationRefused: it was handed on too often.
        """
        bindings, started, clock = self.begun(prompt, options)
        if bindings.acting is not None and "parent" in options:
            from flyball.orchestrate.delegating import delegated

            started = await delegated(started, bindings, options)
        return bindings, started, clock

    def _bound(self, options: Any) -> Bindings:
        if options or _overrides.get(None) is not None:
            changes = _overrides.get({}).get(self, {})
            config = self.config.changed(**_without_deps(changes)) if changes else self.config
            config, deps = config.for_run(options), changes.get("deps", options.get("deps"))
            if config is not self.config:
                # What has something else in its place is not even looked at: its model need not be there.
                like = None if self._bindings is None else (self.config, self._bindings)
                bindings = bind(config, deps, like)
                bindings.lent = lent_by(options)
                return bindings
            if deps is not None:
                return self._own_bindings().with_deps(deps)
        return self._bindings or self._own_bindings()

    def _own_bindings(self) -> Bindings:
        bindings = self._bindings
        if bindings is None:
            bindings = self._bindings = bind(self.config)
        return bindings


def _without_deps(changes: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in changes.items() if name != "deps"}
