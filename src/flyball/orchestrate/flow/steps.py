"""Steps: what a flow is made of. Each is a small frozen object, and a flow itself: it can be run as it is.

flow = (
    AgentStep(researcher)
    .then(TransformStep(outline))
    .then(ParallelSteps(AgentStep(critic), AgentStep(editor)))
)
result = await flow.run("Why do bridges sway?", journal=journal, loop_id="bridges")
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar, cast, overload

from msgspec.structs import replace
from typing_extensions import Unpack

from flyball.core.errors import UserError
from flyball.core.flow import CONDITIONAL, PARALLEL, PIPELINE, REDUNDANT, FlowNode
from flyball.core.messages import Content
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.flow.filters import HistoryFilter
from flyball.orchestrate.flow.functions import Function, function_of
from flyball.orchestrate.flow.leaves import AgentLeaf, FunctionLeaf, Test
from flyball.orchestrate.flow.options import FlowOptions
from flyball.orchestrate.flow.parts import Part, StepOutcome
from flyball.orchestrate.flow.result import FlowResult
from flyball.orchestrate.flow.retrying import Retries, retry_rule, sensible_retries, worth_another_try
from flyball.orchestrate.flow.running import run_flow
from flyball.orchestrate.flow.values import Values
from flyball.orchestrate.sensible import sensible_timeout

InT_contra = TypeVar("InT_contra", contravariant=True)
OutT_co = TypeVar("OutT_co", covariant=True)
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")
Each = TypeVar("Each")

Prompt: TypeAlias = (
    Callable[[A], Content | Awaitable[Content]] | Callable[[Any, A], Content | Awaitable[Content]]
)
"""What an agent is asked, made of what its step is given: `(value)` or `(ctx, value)`, perhaps async."""


class Step(Part, Generic[InT_contra, OutT_co]):
    """Something that takes a value and gives one: one of the kinds below, and a flow that can be run."""

    @overload
    def then(self, step: Step[OutT_co, B]) -> Pipeline[InT_contra, B]: ...
    @overload
    def then(self, step: Agent[Any, B]) -> Pipeline[InT_contra, B]: ...
    @overload
    def then(self, step: Callable[[OutT_co], Awaitable[B]]) -> Pipeline[InT_contra, B]: ...
    @overload
    def then(self, step: Callable[[OutT_co], B]) -> Pipeline[InT_contra, B]: ...
    def then(self, step: Any) -> Pipeline[InT_contra, Any]:
        """This, and then another step, which takes what this one gives; or an agent, or a function."""
        if isinstance(self, Pipeline):
            return Pipeline(*self.steps, as_step(step), name=self.name)
        return Pipeline(self, as_step(step))

    async def run(self, input: InT_contra, **options: Unpack[FlowOptions]) -> FlowResult[OutT_co]:  # noqa: A002
        """Run to the end, and give the result.

        With a journal and a `loop_id` that it holds already, the flow goes on where it stood: what has ended
        is not run again. A flow that is over gives its result again.

        Raises:
            SchemaMalformed, StepMismatch: a step gives, or the flow is given, what cannot be recorded.
            LoopMismatch: the id belongs to a flow with another structure or input.
            Deferred: calls of an agent wait for results from outside: send them, and run the flow again.
            FlyballError: a step failed, which is named, or the flow was cancelled; `partial` is a FlowResult
                with all steps that have ended.
        """
        return await run_flow(as_pipeline(self), input, options)

    def run_sync(self, input: InT_contra, **options: Unpack[FlowOptions]) -> FlowResult[OutT_co]:  # noqa: A002
        """`run`, for code that is not async.

        Raises:
            UserError: called where an event loop runs already: use `await flow.run(...)` there.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.run(input, **options))
        raise UserError("run_sync was called inside a running event loop: use `await flow.run(...)` there")


@dataclass(frozen=True, init=False, eq=False)
class AgentStep(AgentLeaf, Step[InT_contra, OutT_co]):
    """Runs an agent, in a loop of its own under the flow.

    Args:
        agent: the agent.
        prompt: what it is asked: a text, or a function of what the step is given; without it, that itself:
            text as it is, anything else as JSON.
        history: whether it goes on with the conversation of the agent before it, or a filter of that.
        retries: how often it is run anew if it fails, or a RetryPolicy.
        timeout: seconds for each of these runs.
        name: what the step is called; the agent's name, without it.
    """

    agent: Agent[Any, OutT_co]
    prompt: Any
    history: HistoryFilter | bool
    retries: Retries
    timeout: float | None
    name: str
    kind: str = field(default="agent", init=False, repr=False)

    @overload
    def __init__(
        self: AgentStep[Any, B],
        agent: Agent[Any, B],
        prompt: str | None = None,
        *,
        history: HistoryFilter | bool = False,
        retries: Retries = 0,
        timeout: float | None = None,
        name: str = "",
    ) -> None: ...
    @overload
    def __init__(
        self: AgentStep[A, B],
        agent: Agent[Any, B],
        prompt: Prompt[A],
        *,
        history: HistoryFilter | bool = False,
        retries: Retries = 0,
        timeout: float | None = None,
        name: str = "",
    ) -> None: ...
    def __init__(
        self,
        agent: Agent[Any, Any],
        prompt: Any = None,
        *,
        history: HistoryFilter | bool = False,
        retries: Retries = 0,
        timeout: float | None = None,
        name: str = "",
    ) -> None:
        if not isinstance(agent, Agent):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(f"AgentStep takes an agent, not {agent!r}")
        asked = prompt
        if prompt is not None and not isinstance(prompt, str):
            asked = function_of(prompt, "the prompt of a step")
        if not isinstance(history, bool) and not callable(history):
            raise UserError(f"history= takes True or a filter, not {history!r}")
        _set(
            self,
            agent=agent,
            prompt=asked,
            history=history,
            retries=sensible_retries(retries),
            timeout=sensible_timeout(timeout),
            name=name or agent.config.name,
        )


@dataclass(frozen=True, init=False, eq=False)
class TransformStep(FunctionLeaf, Step[InT_contra, OutT_co]):
    """Calls a function: `(value)` or `(ctx, value)`, which may be async.

    What it gives is recorded, as the type that it says it returns; without one, as plain JSON. It is called
    once for each attempt, and again only where a crash came before its output was recorded.

    Args:
        function: the function.
        output: the type of its output, where the function does not say it.
        retries: how often it is called anew if it raises, or a RetryPolicy.
        timeout: seconds for each of these calls, if it is async.
        name: what the step is called; the function's name, without it.
    """

    function: Function
    retries: Retries
    timeout: float | None
    name: str
    kind: str = field(default="transform", init=False, repr=False)

    @overload
    def __init__(
        self: TransformStep[A, B],
        function: Callable[[A], Awaitable[B]],
        *,
        output: type[B] | None = None,
        retries: Retries = 0,
        timeout: float | None = None,
        name: str = "",
    ) -> None: ...
    @overload
    def __init__(
        self: TransformStep[A, B],
        function: Callable[[A], B],
        *,
        output: type[B] | None = None,
        retries: Retries = 0,
        timeout: float | None = None,
        name: str = "",
    ) -> None: ...
    @overload
    def __init__(
        self: TransformStep[A, B],
        function: Callable[[Any, A], Awaitable[B]],
        *,
        output: type[B] | None = None,
        retries: Retries = 0,
        timeout: float | None = None,
        name: str = "",
    ) -> None: ...
    @overload
    def __init__(
        self: TransformStep[A, B],
        function: Callable[[Any, A], B],
        *,
        output: type[B] | None = None,
        retries: Retries = 0,
        timeout: float | None = None,
        name: str = "",
    ) -> None: ...
    def __init__(
        self,
        function: Any,
        *,
        output: Any = None,
        retries: Retries = 0,
        timeout: float | None = None,
        name: str = "",
    ) -> None:
        read = function_of(function, "TransformStep")
        if output is not None:
            read = replace(read, gives=output)
        retries = sensible_retries(retries)
        _set(self, function=read, retries=retries, timeout=sensible_timeout(timeout), name=name or read.name)

    @property
    def gives(self) -> Values:
        """See `Part.gives`."""
        return Values(self.function.gives)

    def node(self) -> FlowNode:
        """See `Part.node`."""
        return FlowNode(self.kind, self.name, **retry_rule(self.retries))

    def worth_another_try(self, error: Exception) -> bool:
        """See `Part.worth_another_try`."""
        return worth_another_try(self.retries, error)


@dataclass(frozen=True, init=False, eq=False)
class Pipeline(Step[InT_contra, OutT_co]):
    """One step after the other: each takes what the one before gives, and the last one's output is its own.

    An agent may stand for an AgentStep, a function for a TransformStep.
    """

    steps: tuple[Step[Any, Any], ...]
    name: str
    kind: str = field(default=PIPELINE, init=False, repr=False)

    @overload
    def __init__(self: Pipeline[A, B], first: Step[A, B], /, *, name: str = ...) -> None: ...
    @overload
    def __init__(
        self: Pipeline[A, C], first: Step[A, B], second: Step[B, C], /, *, name: str = ...
    ) -> None: ...
    @overload
    def __init__(
        self: Pipeline[A, D], first: Step[A, B], second: Step[B, C], third: Step[C, D], /, *, name: str = ...
    ) -> None: ...
    @overload
    def __init__(
        self: Pipeline[A, E],
        first: Step[A, B],
        second: Step[B, C],
        third: Step[C, D],
        fourth: Step[D, E],
        /,
        *,
        name: str = ...,
    ) -> None: ...
    @overload
    def __init__(self: Pipeline[Any, Any], /, *steps: Any, name: str = ...) -> None: ...
    def __init__(self, /, *steps: Any, name: str = "pipeline") -> None:
        _set(self, steps=tuple([as_step(step) for step in steps]), name=name)

    @property
    def inner(self) -> tuple[Part, ...]:
        """See `Part.inner`."""
        return self.steps


@dataclass(frozen=True, init=False, eq=False)
class ParallelSteps(Step[InT_contra, list[Each]]):
    """Some steps beside each other, all with the same input; their outputs, in their order.

    The first that fails ends the flow, and with it the others; see `RedundantSteps`.

    Args:
        steps: the steps, or agents, or functions.
        concurrency: how many of them may run at once; without it, all.
        name: what the step is called.
    """

    steps: tuple[Step[Any, Any], ...]
    concurrency: int | None
    name: str
    kind: str = field(default=PARALLEL, init=False, repr=False)

    @overload
    def __init__(
        self: ParallelSteps[A, B], *steps: Step[A, B], concurrency: int | None = None, name: str = ...
    ) -> None: ...
    @overload
    def __init__(
        self: ParallelSteps[Any, Any], *steps: Any, concurrency: int | None = None, name: str = ...
    ) -> None: ...
    def __init__(self, *steps: Any, concurrency: int | None = None, name: str = "parallel") -> None:
        made = tuple([as_step(step) for step in steps])
        _set(self, steps=made, concurrency=_at_once(concurrency), name=name)

    @property
    def inner(self) -> tuple[Part, ...]:
        """See `Part.inner`."""
        return self.steps

    def node(self) -> FlowNode:
        """See `Part.node`."""
        return replace(super().node(), concurrency=self.concurrency)


@dataclass(frozen=True, init=False, eq=False)
class RedundantSteps(Step[InT_contra, list[StepOutcome[Each] | None]]):
    """Some steps beside each other of which not all need end well: an outcome for each, in their order.

    Args:
        steps: the steps, or agents, or functions.
        concurrency: how many of them may run at once; without it, all.
        until: asked after each of them with the outcomes so far (None: not yet): whether these are enough.
            Then the others are not begun, or are cancelled, and their outcome is None.
        name: what the step is called.
    """

    steps: tuple[Step[Any, Any], ...]
    concurrency: int | None
    enough: Test | None
    name: str
    kind: str = field(default=REDUNDANT, init=False, repr=False)

    @overload
    def __init__(
        self: RedundantSteps[A, B],
        *steps: Step[A, B],
        concurrency: int | None = None,
        until: Callable[[list[StepOutcome[B] | None]], bool | Awaitable[bool]] | None = None,
        name: str = ...,
    ) -> None: ...
    @overload
    def __init__(
        self: RedundantSteps[Any, Any],
        *steps: Any,
        concurrency: int | None = None,
        until: Callable[[list[StepOutcome[Any] | None]], bool | Awaitable[bool]] | None = None,
        name: str = ...,
    ) -> None: ...
    def __init__(
        self, *steps: Any, concurrency: int | None = None, until: Any = None, name: str = "redundant"
    ) -> None:
        made = tuple([as_step(step) for step in steps])
        enough = None if until is None else Test(until, "until=")
        _set(self, steps=made, concurrency=_at_once(concurrency), enough=enough, name=name)

    @property
    def inner(self) -> tuple[Part, ...]:
        """See `Part.inner`."""
        return self.steps

    @property
    def until(self) -> Part | None:
        """See `Part.until`."""
        return self.enough

    def node(self) -> FlowNode:
        """See `Part.node`."""
        return replace(super().node(), concurrency=self.concurrency)


@dataclass(frozen=True, init=False, eq=False)
class ConditionalStep(Step[InT_contra, OutT_co]):
    """One of two steps, as a function of the input decides. What it decided is recorded.

    Args:
        test: `(value)` or `(ctx, value)`, perhaps async: what it gives is true or not.
        when_true: the step, agent or function that follows if it is.
        otherwise: what follows if not; without it, the input is the output.
        name: what the step is called.
    """

    steps: tuple[Part, ...]
    name: str
    kind: str = field(default=CONDITIONAL, init=False, repr=False)

    @overload
    def __init__(
        self: ConditionalStep[A, B],
        test: Callable[[A], bool | Awaitable[bool]],
        when_true: Step[A, B],
        otherwise: Step[A, B],
        *,
        name: str = ...,
    ) -> None: ...
    @overload
    def __init__(
        self: ConditionalStep[A, A],
        test: Callable[[A], bool | Awaitable[bool]],
        when_true: Step[A, A],
        otherwise: None = None,
        *,
        name: str = ...,
    ) -> None: ...
    @overload
    def __init__(
        self: ConditionalStep[Any, Any], test: Any, when_true: Any, otherwise: Any = None, *, name: str = ...
    ) -> None: ...
    def __init__(
        self, test: Any, when_true: Any, otherwise: Any = None, *, name: str = "conditional"
    ) -> None:
        decide = Test(test, "the test of a ConditionalStep")
        then = as_step(when_true)
        other = Pipeline[Any, Any](name="as it is") if otherwise is None else as_step(otherwise)
        _set(self, steps=(decide, then, other), name=name)

    @property
    def inner(self) -> tuple[Part, ...]:
        """See `Part.inner`."""
        return self.steps


def as_step(given: Any) -> Step[Any, Any]:
    """A step as it is; an agent or a function as one.

    Raises:
        UserError: it is none of these.
    """
    if isinstance(given, Step):
        return cast("Step[Any, Any]", given)
    if isinstance(given, Agent):
        return AgentStep(cast("Agent[Any, Any]", given))
    if callable(given):
        return TransformStep(given)
    raise UserError(f"a flow is made of steps, agents and functions, not of {given!r}")


def as_pipeline(step: Step[Any, Any]) -> Pipeline[Any, Any]:
    """A flow as what a flow is written down as."""
    return step if isinstance(step, Pipeline) else Pipeline(step, name=step.name)


def _set(step: Any, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(step, name, value)


def _at_once(given: int | None) -> int | None:
    if given is not None and (type(given) is not int or given < 1):
        raise UserError(f"concurrency= takes a number from 1, not {given!r}")
    return given
