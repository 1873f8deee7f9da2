"""System: the one door. A SystemRequest comes in, a SystemResponse goes out; adapters know nothing else.

Rules:
- `handle` and `stream` do not raise for anything that goes wrong with a request: that is a response with an
  error, and with whatever had been reached. Only cancelling the task that waits goes through: the loop stays
  as it is recorded, and can be resumed.
- What a request gives goes on untouched: its ids into the journal, its hints to the engine. What is missing
  is filled in here.
- A request never gets more than the agent behind the door has: its tools are some of the agent's, its
  instructions come after the agent's, its time is at most the agent's.
- Each request is a loop of its own, also within one session.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from msgspec.structs import replace

from flyball.core.clock import Clock
from flyball.core.errors import FlyballError, UserError
from flyball.core.ids import new_id
from flyball.core.messages import Text
from flyball.inference.engine import Engine
from flyball.inference.registry import resolve_engine
from flyball.inference.stream import Finish, PartStart, StreamEvent, TextDelta, close_stream
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.contracts import Mode, SystemRequest, SystemResponse
from flyball.orchestrate.driver import Driver
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.requesting import SERVED, Run, identified, run_for
from flyball.orchestrate.responding import Asked, refusal_of, response_to
from flyball.orchestrate.result import AnyResult
from flyball.orchestrate.schema_output import SchemaOutput


class System:
    """Serves requests with an agent. It holds no state of theirs: many may be served at once.

    Args:
        agent: the agent that serves, or the model of one: a model string or an engine.
        journal: where the loops are recorded; without it each is kept in memory until it is answered.
        deps: what the agent's tools, prompt functions and validators get as `ctx.deps`.
        driver: who drives the loops; without it, this process does.
        clock: where time comes from.
        options: what `Agent` takes (`tools`, `instructions`, `limits`, ...): laid over a given agent.
    """

    def __init__(
        self,
        agent: Agent[Any, Any] | str | Engine | None = None,
        *,
        journal: Journal | None = None,
        deps: Any = None,
        driver: Driver | None = None,
        clock: Clock | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(agent, Agent):
            agent = Agent(agent, **options)
        elif options:
            agent = agent.clone(**options)
        self.agent: Agent[Any, Any] = agent
        given = {"journal": journal, "deps": deps, "driver": driver, "clock": clock}
        self._options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        self._engine: Engine | None = None

    @property
    def modes(self) -> tuple[Mode, ...]:
        """The modes that it serves."""
        return SERVED

    async def handle(self, request: SystemRequest) -> SystemResponse:
        """Serve a request. What goes wrong is in the response's `error`."""
        request, loop_id = identified(request), new_id()
        try:
            run, agent, asked = self._prepared(request, loop_id)
            try:
                result = await agent.run(run.prompt, **run.options, **self._options)
            except FlyballError as error:
                result = _partial(error)
            return response_to(asked, result, await result.events())
        except Exception as error:
            return refusal_of(request, error, loop_id)

    async def stream(self, request: SystemRequest) -> AsyncGenerator[StreamEvent | SystemResponse]:
        """Serve a request while the model's answers are streamed: their pieces, and last the response.

        It goes as far as it is read; closing it early leaves the loop as it is recorded. Where another driver
        drives there are no pieces.
        """
        request, loop_id = identified(request), new_id()
        if "driver" in self._options:
            yield await self.handle(request)
            return
        heard: list[str] = []
        try:
            run, agent, asked = self._prepared(request, loop_id)
            self._check_approvals(agent)
            async with agent.run_stream(run.prompt, **run.options, **self._options) as streamed:
                pieces = streamed.events()
                try:
                    async for piece in pieces:
                        _hear(piece, heard)
                        yield piece
                finally:
                    await close_stream(pieces)
            try:
                result: AnyResult = streamed.result
            except FlyballError as error:
                result = _partial(error)
            response = response_to(asked, result, await result.events())
        except Exception as error:
            response = refusal_of(request, error, loop_id)
        if heard and response.error is not None and not _is_strict(request):
            # Cut off in the middle of an answer, of which the journal has nothing.
            response = replace(response, content="".join(heard))
        yield response

    def _prepared(self, request: SystemRequest, loop_id: str) -> tuple[Run, Agent[Any, Any], Asked]:
        config = self.agent.clone().config
        run = run_for(request, loop_id, config, self._engine_for(config.model))
        output = run.changes.get("output")
        schema = output if isinstance(output, SchemaOutput) else None
        return run, self.agent.clone(**run.changes), Asked(request, schema, bool(config.validators))

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
        if config.approval is not None or "journal" in self._options:
            return
        for tool in config.tools:
            if tool.spec.approval:
                raise UserError(
                    f"the tool {tool.spec.definition.name!r} needs approval, and nobody could give it: pass "
                    "approval= to the agent, or give the system a journal= and send the signal there"
                )


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
    elif isinstance(piece, Finish):
        heard.clear()


def _is_strict(request: SystemRequest) -> bool:
    return request.output is not None and request.output.strict_validation
