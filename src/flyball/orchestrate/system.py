"""System: the one door. A SystemRequest comes in, a SystemResponse goes out; adapters know nothing else.

Rules:
- `handle` and `stream` do not raise for anything that goes wrong with a request: that is a response with an
  error, and with whatever had been reached. Only cancelling the task that waits goes through: the loop stays
  as it is recorded, and can be resumed.
- What a request gives goes on untouched: its ids into the journal, its hints to the engine. What is missing
  is filled in here.
- A request never gets more than the agent behind the door has: its tools are some of the agent's, its
  instructions come after the agent's, its time is at most the agent's.
- Each request is a loop of its own, also within one session; or a flow, with loops under it: a plan, a vote,
  an answer in two phases (`serving`).
- A recorded loop is gone on with by its recorded policy: the agent behind the door lends it only the code.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Any, TypeAlias

from msgspec.structs import replace

from flyball.core.clock import Clock
from flyball.core.errors import FlyballError, InvalidRequest, UserError
from flyball.core.events import Event, Outcome
from flyball.core.ids import new_id
from flyball.core.messages import Content, Text, assistant
from flyball.core.signals import Signal, SignalType
from flyball.core.spec import LoopSpec
from flyball.inference.cut import events_of
from flyball.inference.engine import Engine
from flyball.inference.registry import resolve_engine
from flyball.inference.retry_policy import RetryPolicy
from flyball.inference.stream import Finish, PartStart, Restart, StreamEvent, TextDelta, close_stream
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.answering import OutsideResult, length_with, send_results
from flyball.orchestrate.beginning import prompt_message
from flyball.orchestrate.bindings import Bindings
from flyball.orchestrate.calls import waits_for_results
from flyball.orchestrate.clock import SYSTEM_CLOCK
from flyball.orchestrate.config import bind, stages_in
from flyball.orchestrate.contracts import Mode, SystemRequest, SystemResponse
from flyball.orchestrate.correlation import loop_correlation
from flyball.orchestrate.course import OVER
from flyball.orchestrate.driven import DrivenLoop
from flyball.orchestrate.driver import Drive
from flyball.orchestrate.elsewhere import Driver
from flyball.orchestrate.flow.doing import Hear
from flyball.orchestrate.flow_state import FlowState
from flyball.orchestrate.followed import FollowedLoop
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.matching import begun_as
from flyball.orchestrate.outputs import reader_for
from flyball.orchestrate.patterns.redundant import Redundancy
from flyball.orchestrate.permissions import Person
from flyball.orchestrate.plan.handling import StepHandler
from flyball.orchestrate.plan.planner import Planner
from flyball.orchestrate.plan.policy import PlanPolicy
from flyball.orchestrate.recorded import fork, load, load_any, send_signal
from flyball.orchestrate.requesting import (
    Run,
    identified,
    recorded_output,
    recorded_policy,
    run_for,
    time_for,
)
from flyball.orchestrate.responding import Asked, refusal_of, response_to
from flyball.orchestrate.result import AnyResult
from flyball.orchestrate.runs import StreamedRun, result_from
from flyball.orchestrate.schema_output import SchemaOutput
from flyball.orchestrate.serving.absent import Absent
from flyball.orchestrate.serving.flows import FlowServing, Patterns, recorded_request
from flyball.orchestrate.serving.pieces import told_in_pieces
from flyball.orchestrate.serving.trying import Pieces, alone, last_of, sensible_retry, tried_again
from flyball.orchestrate.state import State


class System:
    """Serves requests with an agent. It holds no state of theirs: many may be served at once.

    Args:
        agent: the agent that serves, or the model of one: a model string or an engine.
        journal: where the loops are recorded; without it each is kept in memory until it is answered.
        deps: what the agent's tools, prompt functions and validators get as `ctx.deps`.
        runtime: who drives the loops; without it, this process does.
        clock: where time comes from.
        planner: who makes the plans of requests that bring none. In mode plan they are run; in the others the
            agent is told to go by them. Without it, the model is asked for one in mode plan.
        handlers: what does the steps of plans, besides `infer` (the agent) and `tool` (its tools).
        plan_policy: what a plan may be.
        redundancy: how often is asked in mode redundant, and how is voted.
        retry: after which failures a request is tried again as a whole, and how long is waited: its loop is
            opened again, and goes on from where it stood. It needs a journal.
        options: what `Agent` takes (`tools`, `instructions`, `limits`, ...): laid over a given agent.
    """

    def __init__(
        self,
        agent: Agent[Any, Any] | str | Engine | None = None,
        *,
        journal: Journal | None = None,
        deps: Any = None,
        runtime: Driver | None = None,
        clock: Clock | None = None,
        planner: Planner | None = None,
        handlers: Mapping[str, StepHandler] | None = None,
        plan_policy: PlanPolicy | None = None,
        redundancy: Redundancy | None = None,
        retry: RetryPolicy | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(agent, Agent):
            agent = Agent(agent, **options)
        elif options:
            agent = agent.clone(**options)
        self.agent: Agent[Any, Any] = agent
        given = {"journal": journal, "deps": deps, "runtime": runtime, "clock": clock}
        self._options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        self._patterns = Patterns(
            planner, handlers or {}, plan_policy or PlanPolicy(), redundancy or Redundancy()
        ).check()
        self._retry = sensible_retry(retry, self._options)
        self._engine: Engine | None = None

    @property
    def modes(self) -> tuple[Mode, ...]:
        """The modes that it serves."""
        return tuple(Mode)

    @property
    def journal(self) -> Journal | None:
        """Where its loops are recorded: what it was given, or the runtime's own; None if nothing is kept."""
        return self._options.get("journal") or getattr(self._options.get("runtime"), "journal", None)

    def policy(self, request: SystemRequest) -> LoopSpec | None:
        """The policy of the loop that a request would begin; None where it would be a flow.

        Raises:
            InvalidRequest: it cannot be served; `field` names what stands in the way.
            ConfigurationFailure: its schema, or the agent behind the door, cannot be used.
        """
        request = identified(request)
        return None if self._is_flow(request) else self._prepared(request, "")[1].spec

    def engine(self) -> Engine:
        """The engine of the agent's model, made once.

        Raises:
            ConfigurationFailure: it cannot be had.
        """
        return self._engine_for(self.agent.config.model)

    async def aclose(self) -> None:
        """Close the engine that was made here for the agent's model string; one that was given stays open."""
        engine, self._engine = self._engine, None
        close = getattr(engine, "aclose", None)
        if close is not None and engine is not self.agent.config.model:
            await close()

    async def handle(self, request: SystemRequest, *, loop_id: str = "") -> SystemResponse:
        """Serve a request. What goes wrong is in the response's `error`.

        The loop gets the id that is given, so that whoever asks can find it also if no response comes.
        """
        serving = self._served(request, loop_id)
        return await (serving if self._retry is None else last_of(self._tried(request, alone(serving))))

    async def _served(self, request: SystemRequest, loop_id: str) -> SystemResponse:
        loop_id = loop_id or new_id()
        try:
            request = identified(request)
            if self._is_flow(request):
                return await self._flow_served(request, loop_id)
            run, agent, asked = self._prepared(request, loop_id)
            stopped: FlyballError | None = None
            try:
                result = await agent.run(run.prompt, **run.options, **self._options)
            except FlyballError as error:
                result, stopped = _partial(error), error
            return response_to(asked, result, await result.events(), stopped)
        except Exception as error:
            return refusal_of(request, error, loop_id)

    async def _flow_served(
        self, request: SystemRequest, loop_id: str, hear: Hear | None = None
    ) -> SystemResponse:
        self._check_approvals(self.agent)
        return await self._flows().handle(request, loop_id, hear)

    def stream(self, request: SystemRequest, *, loop_id: str = "") -> Pieces:
        """Serve a request while the model's answers are streamed: their pieces, and last the response.

        It goes as far as it is read, unless another driver drives; closing it early leaves the loop as it is
        recorded. A `Restart` takes back the pieces of an answer that had to be begun again. Where a person
        approves answers, or interceptors or conditions look at them, nothing is told before: what passes then
        comes whole.
        """
        pieces = self._pieces(request, loop_id)
        return pieces if self._retry is None else self._tried(request, pieces)

    def _tried(self, request: SystemRequest, first: Pieces) -> Pieces:
        """A request that is tried again by the system's policy."""

        async def again(loop_id: str) -> Pieces:
            async for piece in self.resume_stream(loop_id, retry=True):
                if isinstance(piece, SystemResponse) and not piece.ok and _is_strict(request):
                    piece = replace(piece, content="", structured_output=None)  # noqa: PLW2901
                yield piece

        assert self._retry is not None, "there is a policy"
        timeout = time_for(request, self.agent.clone().config)
        return tried_again(first, again, self._retry, self._options.get("clock", SYSTEM_CLOCK), timeout)

    async def _pieces(self, request: SystemRequest, loop_id: str) -> Pieces:
        loop_id = loop_id or new_id()
        try:
            request = identified(request)
            is_flow = self._is_flow(request)
        except InvalidRequest as error:
            yield refusal_of(request, error, loop_id)
            return

        async def begin() -> _Begun:
            run, agent, asked = self._prepared(request, loop_id)
            self._check_approvals(agent)
            return agent.run_stream(run.prompt, **run.options, **self._options), asked

        async def serve(hear: Hear | None) -> SystemResponse:
            try:
                return await self._flow_served(request, loop_id, hear)
            except Exception as error:
                return refusal_of(request, error, loop_id)

        if is_flow:
            pieces = told_in_pieces(serve, whole=self._is_told_whole(request))
        else:
            pieces = _streamed(request, loop_id, begin)
        async with aclosing(pieces):
            async for piece in pieces:
                yield piece

    # Recorded loops

    async def replay(self, loop_id: str) -> SystemResponse:
        """The response of a recorded loop that is over, from its journal alone: no model, no tool runs.

        One that waits for results from outside is told as it was when it came to that. Any other loop that is
        not over is an error in the response.
        """
        try:
            events, state = await load_any(self.journal or self._journal(), loop_id)
            if state.at != "done" and not (isinstance(state, State) and waits_for_results(state)):
                raise UserError(f"loop {loop_id!r} is not over (it stands at {state.at!r}): resume it")
            if isinstance(state, FlowState):
                return await self._flows(only_read=True).resume(state, retry=False)
            return self._told_again(events, state)
        except Exception as error:
            return refusal_of(SystemRequest(messages=()), error, loop_id)

    async def resume(self, loop_id: str, *, retry: bool = False) -> SystemResponse:
        """Go on with a recorded loop, by its recorded policy; one that is over gives its response again.

        With `retry` one that ended badly, or whose time is up, is opened again: another attempt, with time of
        its own. The model, the tools and the type of the output are those of the agent behind the door; an
        agent that gives text is held to the schema that was recorded.
        """
        return await last_of(self.resume_stream(loop_id, retry=retry))

    async def resume_stream(self, loop_id: str, *, retry: bool = False) -> Pieces:
        """`resume`, while the model's answers are streamed: their pieces, and last the response."""

        async def begin() -> _Begun:
            drive = await self._taken_over(loop_id, retry)
            return _reading(drive), self._asked_for(drive.state)

        request = SystemRequest(messages=())
        pieces: AsyncGenerator[StreamEvent | SystemResponse]
        try:
            journal = self._journal()
            events, state = await load_any(journal, loop_id)
            if isinstance(state, FlowState):
                async for piece in self._resumed_flow(state, retry):
                    yield piece
                return
            request = self._asked_for(state).request
            if state.at == "done" and not (retry and state.outcome is not Outcome.SUCCESS):
                yield self._told_again(events, state)
                return
        except Exception as error:
            yield refusal_of(request, error, loop_id)
            return
        pieces = _streamed(request, loop_id, begin)
        async with aclosing(pieces):
            async for piece in pieces:
                yield piece

    async def answer(self, loop_id: str, results: Sequence[OutsideResult]) -> SystemResponse:
        """Give a recorded loop results of calls that wait for them, and go on with it.

        It is the way to go on from a response with `calls_wanted`. Results may come one by one: as long as
        some are missing, the response says which. What is given in one go is taken whole or not at all; a
        result that was taken before is not taken again. What is wrong with them is in the response's
        `error`.
        """
        return await last_of(self.answer_stream(loop_id, results))

    async def answer_stream(self, loop_id: str, results: Sequence[OutsideResult]) -> Pieces:
        """`answer`, while the model's answers are streamed: their pieces, and last the response."""
        request, runtime = SystemRequest(messages=()), self._options.get("runtime")

        async def begin() -> _Begun:
            if runtime is not None:
                return self._followed(events, results), asked
            clock = self._options.get("clock", SYSTEM_CLOCK)
            await send_results(journal, loop_id, results, clock)
            drive = await self._taken_over(loop_id, retry=False)
            return _reading(drive), asked

        try:
            journal = self.journal or self._journal()
            events, state = await load(journal, loop_id)
            asked = self._asked_for(state)
            request = asked.request
        except Exception as error:
            yield refusal_of(request, error, loop_id)
            return
        pieces = _streamed(request, loop_id, begin)
        async with aclosing(pieces):
            async for piece in pieces:
                yield piece

    @asynccontextmanager
    async def _followed(
        self, events: Sequence[Event], results: Sequence[OutsideResult]
    ) -> AsyncGenerator[StreamedRun[Any]]:
        """A recorded loop that is given results, for one who reads on while another driver drives."""
        runtime: Driver = self._options["runtime"]
        clock, started = self._options.get("clock", SYSTEM_CLOCK), begun_as(events)
        bindings, loop_id = self.bindings_for(started.spec), started.loop_id
        await runtime.answer(loop_id, results)
        async with runtime.join(bindings, self._options.get("journal"), started, clock) as following:
            there = await following.journal.read(loop_id)
            # What follows from them is shown, though it may have happened by now.
            following.length = min(following.length, length_with(there, results))
            streamed: StreamedRun[Any] = StreamedRun(await FollowedLoop.join(following, bindings, loop_id))
            try:
                yield streamed
            finally:
                await streamed.close()

    async def _resumed_flow(
        self, state: FlowState, retry: bool
    ) -> AsyncGenerator[StreamEvent | SystemResponse]:
        request = recorded_request(state)

        async def serve(hear: Hear | None) -> SystemResponse:
            try:
                return await self._flows().resume(state, retry=retry, hear=hear)
            except Exception as error:
                return refusal_of(request, error, state.loop_id)

        pieces = told_in_pieces(serve, whole=self._is_told_whole(request))
        async with aclosing(pieces):
            async for piece in pieces:
                yield piece

    async def fork(
        self,
        loop_id: str,
        turn: int,
        *,
        prompt: Content | None = None,
        new_loop_id: str = "",
        who: Person | None = None,
        **changes: Any,
    ) -> str:
        """Record a loop that shares another's first `turn` turns; its id. `resume` then goes on with it.

        It goes by the policy that was recorded, with the model and the tools of the agent behind the door;
        `changes` (what `Agent` takes) are laid over both. It is `who`'s, where a person wants it.

        Raises:
            LoopNotFound: the journal holds no such loop.
            UserError: the loop has no such turn, or a prompt is needed.
        """
        journal = self._journal()
        _, state = await load(journal, loop_id)
        config = self.agent.clone().config
        model = changes.get("model", config.model)
        config = config.changed(**recorded_policy(state.spec, config)).changed(**changes)
        bound = bind(config.changed(model=self._engine_for(model)))
        spec = bound.spec
        if isinstance(model, str):
            spec = replace(spec, model=model)
        given = {"clock": self._options["clock"]} if "clock" in self._options else {}
        return await fork(
            journal,
            loop_id,
            turn,
            spec,
            prompt=prompt_message(prompt),
            new_loop_id=new_loop_id or None,
            identity=bound.identity,
            who=who,
            **given,
        )

    def _journal(self) -> Journal:
        journal = self._options.get("journal")
        if journal is None:
            raise UserError("there are no recorded loops without a journal: give the system a journal=")
        return journal

    def _asked_for(self, state: State) -> Asked:
        """What a recorded loop was asked for."""
        ids, config = loop_correlation(state), self.agent.clone().config
        request = SystemRequest(
            request_id=ids.request_id, session_id=ids.session_id, trace_id=ids.trace_id, messages=()
        )
        output = recorded_output(state.spec.output, config.output)
        schema = output if isinstance(output, SchemaOutput) else None
        return Asked(request, schema, bool(config.validators), _is_reserved(state.spec))

    def _told_again(self, events: list[Event], state: State) -> SystemResponse:
        """The response of a loop that is over, from what is recorded."""
        output = recorded_output(state.spec.output, self.agent.clone().config.output)
        try:
            journal = self.journal or self._journal()
            result = result_from(state, reader_for(output, state.spec.output), journal)
        except FlyballError as error:
            result = _partial(error)  # it is over: the state says what it ended with
        return response_to(self._asked_for(state), result, events)

    async def _taken_over(self, loop_id: str, retry: bool) -> Drive:
        """A recorded loop, ready to be driven on."""
        journal, clock = self._journal(), self._options.get("clock", SYSTEM_CLOCK)
        _, state = await load(journal, loop_id)
        bindings = self.bindings_for(state.spec)
        drive = await Drive.take_over(bindings, journal, loop_id, clock)
        if not retry or drive.state.at not in OVER or drive.state.outcome is Outcome.SUCCESS:
            return drive
        await drive.run()  # what is owed at the end comes first
        await send_signal(journal, loop_id, Signal(SignalType.RETRY), clock)
        return await Drive.take_over(bindings, journal, loop_id, clock)

    def bindings_for(self, spec: LoopSpec, engine: Engine | None = None) -> Bindings:
        """The agent behind the door as code for a loop under a recorded policy; its model may be another."""
        config = self.agent.clone().config
        output = recorded_output(spec.output, config.output)
        config = config.changed(model=engine or self._engine_for(config.model), output=output)
        bindings = bind(config, self._options.get("deps"))
        # The recorded policy says in which form the answer comes, whatever this model's own would be.
        bindings.output = reader_for(output, spec.output)
        return bindings

    def _is_flow(self, request: SystemRequest) -> bool:
        """Whether a request is more than one loop: it has a plan, replicas, or tools before its answer.

        One with tools that the caller runs is one loop: whoever answers a call goes on with that.

        Raises:
            InvalidRequest: it has such tools, and there is a planner.
        """
        if self._patterns.planner is not None:
            if request.caller_tools:
                raise InvalidRequest(
                    "caller_tools: this system has a planner, and a plan waits for no caller's tools",
                    field="caller_tools",
                )
            return True
        if request.mode != Mode.STRUCTURED:
            return request.mode in (Mode.PLAN, Mode.REDUNDANT)
        return bool(self.agent.clone().config.tools) and not request.caller_tools

    def _is_told_whole(self, request: SystemRequest) -> bool:
        """Whether nobody is told the pieces of a flow: many were asked, or answers are looked at first."""
        config = self.agent.config
        return request.mode == Mode.REDUNDANT or config.output_approval or stages_in(config).reviews

    def _flows(self, *, only_read: bool = False) -> FlowServing:
        model = self.agent.clone().config.model
        engine = Absent() if only_read and model is None else self._engine_for(model)
        return FlowServing(self.agent, engine, self._patterns, self._options)

    def _prepared(self, request: SystemRequest, loop_id: str) -> tuple[Run, Agent[Any, Any], Asked]:
        config = self.agent.clone().config
        run = run_for(request, loop_id, config, self._engine_for(config.model))
        output = run.changes.get("output")
        schema = output if isinstance(output, SchemaOutput) else None
        agent = self.agent.clone(**run.changes)
        if request.caller_tools or request.tool_choice is not None:
            _check_fits(agent, request)
        reserved = agent.config.output_approval or stages_in(agent.config).reviews
        return run, agent, Asked(request, schema, bool(config.validators), reserved)

    def _engine_for(self, model: str | Engine | None) -> Engine:
        """The engine of the agent's model, made once: that may mean to load a model."""
        if model is not self.agent.config.model:
            return resolve_engine(model)
        if self._engine is None:
            self._engine = resolve_engine(model)
        return self._engine

    def _check_approvals(self, agent: Agent[Any, Any]) -> None:
        """A stream's reader has no way to send a signal: somebody else must be able to."""
        config = agent.config
        if "journal" in self._options:
            return
        if config.output_approval:
            raise UserError(
                "the answer needs approval, and nobody could give it: give the system a journal= and send "
                "the signal there"
            )
        if config.approval is not None:
            return
        for tool in config.tools:
            if tool.spec.approval:
                raise UserError(
                    f"the tool {tool.spec.definition.name!r} needs approval, and nobody could give it: pass "
                    "approval= to the agent, or give the system a journal= and send the signal there"
                )


def _check_fits(agent: Agent[Any, Any], request: SystemRequest) -> None:
    """Check that an agent can have the tools that the caller runs, and the choice.

    Raises:
        InvalidRequest: it cannot; `field` names which.
    """
    names = [tool.name for tool in request.caller_tools]
    try:
        agent.bindings()
    except UserError as error:
        name = error.details.get("tool")
        chosen = request.tool_choice is not None and request.tool_choice.forced == name
        if name is None or not (chosen or name in names):
            raise
        field = f"caller_tools[{names.index(name)}].name" if name in names else "tool_choice"
        raise InvalidRequest(f"{field}: {error.message}", field=field) from error


_Begun: TypeAlias = tuple[AbstractAsyncContextManager[StreamedRun[Any]], Asked]


async def _streamed(
    request: SystemRequest, loop_id: str, begin: Callable[[], Awaitable[_Begun]]
) -> AsyncGenerator[StreamEvent | SystemResponse]:
    """The pieces of a run, and last its response; where answers are looked at first, of what has passed."""
    heard: list[str] = []
    reserved = False
    stopped: FlyballError | None = None
    try:
        opened, asked = await begin()
        reserved = asked.reserved
        async with opened as streamed:
            pieces = streamed.events()
            try:
                async for piece in pieces:
                    if not reserved:
                        _hear(piece, heard)
                        yield piece
                result: AnyResult = streamed.result
            except FlyballError as error:
                result, stopped = _partial(error), error
            finally:
                await close_stream(pieces)
        response = response_to(asked, result, await result.events(), stopped)
    except Exception as error:
        response = refusal_of(request, error, loop_id)
    if heard and response.error is not None and not _is_strict(request):
        # Cut off in the middle of an answer, of which the journal has nothing.
        response = replace(response, content="".join(heard))
    if reserved and response.error is None and response.content:
        for piece in events_of(assistant(response.content)):
            yield piece
    yield response


@asynccontextmanager
async def _reading(drive: Drive) -> AsyncGenerator[StreamedRun[Any]]:
    """A loop that was taken over, for one who reads it as a stream."""
    streamed: StreamedRun[Any] = StreamedRun(DrivenLoop(drive))
    try:
        yield streamed
    finally:
        drive.close()
        await streamed.close()


def _partial(error: FlyballError) -> AnyResult:
    """What a failed run had reached; the error itself, if it was none of the run's."""
    if error.partial is None:
        raise error
    return error.partial


def _hear(piece: StreamEvent, heard: list[str]) -> None:
    """Remember the text of the answer that is being streamed."""
    if isinstance(piece, TextDelta):
        heard.append(piece.text)
    elif isinstance(piece, PartStart) and isinstance(piece.part, Text):
        heard.append(piece.part.text)
    elif isinstance(piece, Finish | Restart):
        heard.clear()


def _is_reserved(spec: LoopSpec) -> bool:
    """Whether answers are looked at before anybody is told of them."""
    return spec.output.approval or spec.reviews


def _is_strict(request: SystemRequest) -> bool:
    return request.output is not None and request.output.strict_validation
