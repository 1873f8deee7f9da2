"""FlowServing: serves the requests that are flows, with the agent behind the door."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from flyball.context.knowledge import Knowledge
from flyball.core.correlation import Correlation
from flyball.core.encodable import to_json
from flyball.core.errors import FlyballError, LoopMismatch, UserError
from flyball.core.events import FlowStarted
from flyball.core.settings import STRUCTURED
from flyball.core.signals import Signal, SignalType
from flyball.inference.engine import Engine
from flyball.inference.stream import StreamEvent
from flyball.observe.watcher import Watcher
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.clock import SYSTEM_CLOCK
from flyball.orchestrate.contracts import Mode, SystemRequest, SystemResponse
from flyball.orchestrate.flow.doing import Hear
from flyball.orchestrate.flow.recorded_part import RecordedPart
from flyball.orchestrate.flow.result import FlowResult, result_of
from flyball.orchestrate.flow.running import resume_flow, run_flow
from flyball.orchestrate.flow_loops import helper_loop, step_loop
from flyball.orchestrate.flow_state import FlowState
from flyball.orchestrate.lifecycle.flows import without_tools
from flyball.orchestrate.patterns.asking import QuestionStep
from flyball.orchestrate.patterns.phases import PatternFlow, Phases, tool_names
from flyball.orchestrate.patterns.redundant import Redundancy, vote_on
from flyball.orchestrate.plan.executor import PlanExecutor
from flyball.orchestrate.plan.handlers import agent_handler, tool_handler
from flyball.orchestrate.plan.handling import StepHandler
from flyball.orchestrate.plan.planner import ModelPlanner, Planner
from flyball.orchestrate.plan.policy import PlanPolicy
from flyball.orchestrate.plan.steps import INFER, TOOL
from flyball.orchestrate.recorded import send_signal
from flyball.orchestrate.requesting import Run, run_for
from flyball.orchestrate.responding import Asked
from flyball.orchestrate.schema_output import SchemaOutput
from flyball.orchestrate.serving.planning import advised, planned_flow, told_plan
from flyball.orchestrate.serving.responses import flow_response


class Patterns(Struct, frozen=True):
    """What the flows of a system are made of, beyond its agent.

    `planner` makes the plans of requests that bring none, in every mode: in mode plan their steps are run, in
    the others the agent is told to go by them. Without it, the agent's model is asked in mode plan.
    `handlers` do the steps of plans, besides `infer` (the agent) and `tool` (its tools), and may take their
    places.
    """

    planner: Planner | None = None
    handlers: Mapping[str, StepHandler] = {}
    policy: PlanPolicy = PlanPolicy()
    redundancy: Redundancy = Redundancy()

    def check(self) -> Patterns:
        """Return them if they are what they should be.

        Raises:
            UserError: one is not; the message names it.
        """
        given: tuple[tuple[str, object, Any, str], ...] = (
            ("planner", self.planner, Planner | None, "something with create_plan(context, request)"),
            ("handlers", self.handlers, Mapping, "functions by the type of step"),
            ("plan_policy", self.policy, PlanPolicy, "a PlanPolicy"),
            ("redundancy", self.redundancy, Redundancy, "a Redundancy"),
        )
        for name, value, kind, wanted in given:
            if not isinstance(value, kind):
                raise UserError(f"{name}= takes {wanted}, not {value!r:.100}")
        PlanExecutor(self.handlers)
        return self


class FlowServing:
    """Serves requests that are flows. Like the system it is part of, it holds nothing of theirs."""

    def __init__(
        self, agent: Agent[Any, Any], engine: Engine, patterns: Patterns, options: Mapping[str, Any]
    ) -> None:
        self._agent = agent
        self._config = agent.clone().config
        self._engine = engine
        self._patterns = patterns
        self._options = options

    async def handle(self, request: SystemRequest, loop_id: str, hear: Hear | None = None) -> SystemResponse:
        """Serve a request.

        Raises:
            FlyballError: it cannot be served at all.
        """
        flow, run, asked = self._flow_for(request)
        options: Any = {**self._told_to(), "loop_id": loop_id, "correlation": run.options["correlation"]}
        if "metadata" in run.options:
            options["metadata"] = run.options["metadata"]
        limits = run.changes.get("limits", self._config.limits)
        if limits.timeout is not None:
            options["timeout"] = limits.timeout
        if hear is not None:
            options["hear"] = _heard(hear, request, loop_id)
        return await self._told(asked, run_flow(flow, flow_input(request), options))

    async def resume(self, state: FlowState, *, retry: bool, hear: Hear | None = None) -> SystemResponse:
        """Go on with a recorded request; one that is over is told again, unless it is to be retried.

        Raises:
            LoopMismatch: the flow is no request's.
        """
        options: Any = self._told_to()
        if hear is not None:
            options["hear"] = _heard(hear, recorded_request(state), state.loop_id)
        request, started = recorded_request(state), await self._started(state.loop_id)
        over = state.at == "done" and not (retry and state.error is not None)
        try:
            flow, _, asked = self._flow_for(request)
            _ = flow.grown(state.flow)
        except (FlyballError, ValueError) as error:
            flow, asked = None, Asked(request)
            if not over:
                raise self._other(state, error) from error
        if flow is None or without_tools(flow.node()) != without_tools(started.flow):
            if not over:
                raise self._other(state)
            # What is over is told by what is recorded, also where the code behind it is not at hand.
            told = result_of(RecordedPart(started.flow), state, self._options["journal"])
            return await self._told(asked, told)
        if retry and state.at == "done" and state.error is not None:
            clock = self._options.get("clock", SYSTEM_CLOCK)
            await send_signal(self._options["journal"], state.loop_id, Signal(SignalType.RETRY), clock)

        def recorded(_: FlowStarted) -> PatternFlow:
            return flow

        return await self._told(asked, resume_flow(recorded, state.loop_id, options))

    def _told_to(self) -> dict[str, Any]:
        """The options of a flow: it is watched by who watches the agent, and acts as the agent does."""
        from flyball.identity.acting import ActsAs

        shared = [one for one in self._config.features if isinstance(one, Watcher | ActsAs)]
        return {**self._options, "features": shared} if shared else dict(self._options)

    def _other(self, state: FlowState, cause: Exception | None = None) -> LoopMismatch:
        why = f" ({cause})" if isinstance(cause, FlyballError) else ""
        return LoopMismatch(
            f"loop {state.loop_id!r} was begun with other steps than this system has for it{why}: go on with "
            "it where its tools, handlers and votes are the same",
            loop_id=state.loop_id,
            differs=["flow"],
        )

    async def _started(self, loop_id: str) -> FlowStarted:
        started = (await self._options["journal"].read(loop_id))[0]
        assert isinstance(started, FlowStarted), "a flow begins so"
        return started

    async def _told(self, asked: Asked, running: Any) -> SystemResponse:
        try:
            flow: FlowResult[Any] = await running
        except FlyballError as error:
            if not isinstance(error.partial, FlowResult):
                raise
            flow = error.partial  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        return await flow_response(asked, flow)

    def _flow_for(self, request: SystemRequest) -> tuple[PatternFlow, Run, Asked]:
        run = run_for(request, "", self._config, self._engine)
        request = request.check()
        output = run.changes.get("output")
        schema = output if isinstance(output, SchemaOutput) else None
        asked = Asked(request, schema, bool(self._config.validators))
        messages = run.options["messages"]
        if request.mode is Mode.PLAN:
            tools = tool_names(self._agent.clone(**run.changes))
            flow = planned_flow(request, *self._planning(run), schema, tools)
        else:
            flow = self._pattern(request.mode, run, messages)
            if (planner := self._patterns.planner) is not None:
                flow = advised(flow, request, planner)
        return flow, run, asked

    def _pattern(self, mode: Mode, run: Run, messages: Any) -> PatternFlow:
        """The flow of a request in another mode than plan; one with a planner is given a plan."""
        planned = None if self._patterns.planner is None else told_plan
        if mode is Mode.REDUNDANT:
            redundancy = self._patterns.redundancy
            return vote_on(self._phases(run), redundancy, run.prompt, messages, planned=planned)
        if mode is Mode.STRUCTURED:
            return self._phases(run).step(run.prompt, messages, planned=planned)
        agent = self._agent.clone(**run.changes)
        asking = QuestionStep(agent, run.prompt, messages, agent.config.name, planned)
        return PatternFlow(asking, name=agent.config.name, mode=Mode.CHAT, tools=tool_names(agent))

    def _phases(self, run: Run) -> Phases:
        """Who answers, and who gathers before, made from the agent as the request wants it."""
        agent = self._agent.clone(**run.changes)
        config = agent.config
        if not config.tools:
            return Phases(agent, None, config.name)
        gathering = agent.clone(
            output=str, grammar=None, validators=(), output_mode=None, settings=run.settings
        )
        # It goes on with what the first phase was told and found, which it must not be told or look up twice.
        features = [one for one in config.features if not isinstance(one, Knowledge)]
        answering = agent.clone(tools=(), instructions=(), features=features, tool_choice=None)
        return Phases(answering, gathering, config.name)

    def _planning(self, run: Run) -> tuple[Planner, PlanExecutor]:
        """Who makes the plan, and who runs it: the form of the answer is asked of the plan's own output."""
        agent, patterns = self._agent.clone(**run.changes), self._patterns
        config = agent.config
        held, free = agent, agent
        if config.output is not str:
            held = agent.clone(settings=run.settings.over(STRUCTURED))
        if config.output is not str or config.grammar:
            free = agent.clone(output=str, grammar=None, validators=(), output_mode=None)
        handlers: dict[str, StepHandler] = {INFER: agent_handler(free)}
        if config.tools:
            handlers[TOOL] = tool_handler(free)
        handlers |= patterns.handlers
        last = {} if INFER in patterns.handlers else {INFER: agent_handler(held)}
        # Where a contract has no fault put right, none is, in no way.
        final = isinstance(config.output, SchemaOutput) and not config.output.retry
        again = 1 if config.asks_again and not final else 0
        executor = PlanExecutor(handlers, policy=patterns.policy, retries=again, last=last)
        planner = patterns.planner
        if planner is None:
            told = {kind: _about(kind, handlers[kind]) for kind in executor.step_types if kind != TOOL}
            most = min(patterns.policy.max_steps or 6, 6)
            planner = ModelPlanner(self._engine, told, max_steps=most, settings=run.settings)
        return planner, executor


def _heard(hear: Hear, request: SystemRequest, loop_id: str) -> Hear:
    """Somebody who hears the answers of a flow, and not how its plan was made."""
    if request.plan is not None:
        return hear
    planner = "0.0" if request.mode == Mode.PLAN else "0"
    planners = helper_loop(step_loop(loop_id, planner, 1), 0).removesuffix("0")

    def heard(name: str, piece: StreamEvent) -> None:
        if not name.startswith(planners):
            hear(name, piece)

    return heard


def _about(kind: str, handler: Any) -> str:
    """What a step of a type does, for a model that plans."""
    if kind == INFER:
        return "a language model with tools answers its input, which is a question or a task in words"
    lines = (getattr(handler, "__doc__", None) or "").strip().splitlines()
    return lines[0] if lines else f"does {kind}"


def flow_input(request: SystemRequest) -> Any:
    """A request as the input of its flow. Its ids are those of the flow, and recorded there."""
    ids = ("request_id", "session_id", "trace_id", "span_id")
    return to_json({name: value for name, value in request.to_json().items() if name not in ids})


def recorded_request(state: FlowState) -> SystemRequest:
    """The request that a flow was begun for.

    Raises:
        LoopMismatch: it was begun for none.
    """
    given: Any = state.input
    if not isinstance(given, dict) or "messages" not in given or "mode" not in given:
        raise LoopMismatch(
            f"loop {state.loop_id!r} is a flow, and no agent's, and no request began it: go on with it by "
            "its own code",
            loop_id=state.loop_id,
            differs=["kind"],
        )
    ids: Correlation = state.correlation
    return replace(
        SystemRequest.from_json(cast("Any", given)),
        request_id=ids.request_id,
        session_id=ids.session_id,
        trace_id=ids.trace_id,
        span_id=ids.span_id,
    )
