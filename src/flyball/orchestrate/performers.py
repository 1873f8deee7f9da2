"""Performers: how each effect is carried out. One function an effect: it does the work and gives the event.

None of them decides what comes next, and none raises for what the outside world does wrong: that is an event
too. They take what they need as data, so that a model call or a tool call can be made in another process.
"""

from __future__ import annotations

from asyncio import CancelledError
from contextlib import suppress
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from flyball.core.around import noted
from flyball.core.context import RunContext, RunFacts
from flyball.core.detach import DetachSource
from flyball.core.effects import Admit, Deliver, Effect, End, Judge, Prepare, Review, Settle
from flyball.core.encodable import clean_text
from flyball.core.errors import (
    EngineError,
    FlyballError,
    ToolExecutionFailed,
    ToolUnavailable,
)
from flyball.core.events import (
    CallsJudged,
    Delivered,
    Ended,
    Event,
    ModelAnswered,
    ModelFailed,
    Outcome,
    ToolReturned,
    Verdict,
)
from flyball.core.messages import Message, ResultKind, ToolCall, ToolResult
from flyball.core.spec import Purpose
from flyball.inference.engine import Engine
from flyball.inference.request import Request, Result
from flyball.orchestrate.admitting import admit
from flyball.orchestrate.awaiting import answer_of, is_cancelled
from flyball.orchestrate.bindings import Approval, Bindings
from flyball.orchestrate.children import Home
from flyball.orchestrate.facts import context_of
from flyball.orchestrate.failing import as_rule
from flyball.orchestrate.preparing import prepare
from flyball.orchestrate.reviewing import review
from flyball.orchestrate.settling import settle, settle_validated
from flyball.orchestrate.soundness import sound
from flyball.orchestrate.state import State
from flyball.tool.execute import execute
from flyball.tool.protocol import Tool
from flyball.tool.result import describe

_RETURN = ResultKind.RETURN

# The model


async def infer(
    engine: Engine, request: Request, turn: int, now: Any, purpose: Purpose = "turn"
) -> ModelAnswered | ModelFailed:
    """Call the model."""
    began = now()
    try:
        result = await engine.infer(request)
        if not isinstance(result, Result):  # pyright: ignore[reportUnnecessaryIsInstance] - anybody's code
            return model_failed(_no_result(result), turn, began, now(), purpose=purpose)
        message, notes = sound(result.message)
    except Exception as error:
        return model_failed(error, turn, began, now(), purpose=purpose)
    except CancelledError as error:
        if is_cancelled():
            raise
        return model_failed(error, turn, began, now(), purpose=purpose)
    ended = now()
    return ModelAnswered(
        ended, turn, message, ended - began, result.request_id, notes, purpose, result.around
    )


def model_answered(  # noqa: PLR0917 - on the hot path, positional is cheaper
    result: Result,
    turn: int,
    began: float,
    ended: float,
    purpose: Purpose = "turn",
    source: object = None,
) -> ModelAnswered:
    """The event of an answer, made sound; `source` is the stream that it came from."""
    message, notes = sound(result.message)
    around = noted(source)
    return ModelAnswered(ended, turn, message, ended - began, result.request_id, notes, purpose, around)


def model_failed(  # noqa: PLR0917 - on the hot path, positional is cheaper
    error: Exception | CancelledError,
    turn: int,
    began: float,
    ended: float,
    partial: Message | None = None,
    purpose: Purpose = "turn",
) -> ModelFailed:
    """The event of a failure, with what had come by then."""
    failure = error
    if not isinstance(failure, FlyballError):
        failure = EngineError(f"the engine failed: {describe(error)}", retryable=isinstance(error, OSError))
        failure.__cause__ = error
    said: Message | None = None
    if partial is not None:
        with suppress(Exception):  # anybody's code has made it: what cannot be recorded is left out
            said = sound(partial)[0]
    return ModelFailed(ended, turn, failure.record(), said, ended - began, purpose, noted(error))


def _no_result(given: object) -> EngineError:
    return EngineError(f"the engine gave a {type(given).__name__}, not a Result", retryable=False)


# Tools


async def call_tool(  # noqa: PLR0917 - on the hot path, positional is cheaper
    tool: Tool | None,
    call: ToolCall,
    turn: int,
    index: int,
    deps: Any,
    facts: RunFacts | None,
    now: Any,
    home: Home | None = None,
    detaches: DetachSource | None = None,
) -> ToolReturned:
    """Run one tool call; `facts` only where the tool reads its context. `home` is for the run's children."""
    began = now()
    state: Any = UNSET
    if tool is None:
        missing = ToolUnavailable(f"the tool {call.name!r} is not bound in this process")
        result = ToolResult(call.id, call.name, error=missing.message, metadata={"code": missing.code})
    elif facts is None:
        result = await execute(tool, call, None)
    else:
        context = RunContext(deps, facts, home, detaches)
        result = await execute(tool, call, context)
        if tool.spec.state is not None and result.status is _RETURN and result.error is None:
            state = context.saved_tool_state
    ended = now()
    return ToolReturned(ended, turn, index, result, ended - began, state)


def call_cancelled(call: ToolCall, turn: int, index: int, at: float) -> ToolReturned:
    """The event of a call whose tool cancelled the task that it ran in."""
    error = f"{call.name} cancelled itself"
    result = ToolResult(call.id, call.name, error=error, metadata={"code": ToolExecutionFailed.code})
    return ToolReturned(at, turn, index, result)


# The loop's own side


async def judge(  # noqa: PLR0917 - like the others, and what it judges
    state: State, indices: tuple[int, ...], bindings: Bindings, deps: Any, now: Any, home: Home | None = None
) -> CallsJudged:
    """Ask the filters about the calls, then the approval callback about those let through that need it."""
    spec, calls = state.spec, state.calls
    verdicts = [Verdict(index, allowed=True) for index in indices]
    context = context_of(state, bindings, deps, now(), home)
    if spec.filters:
        from flyball.orchestrate.filtering import filtered

        try:
            verdicts = await filtered(bindings.filters, context, {index: calls[index] for index in indices})
        except Exception as error:
            return CallsJudged(now(), state.turn, (), as_rule(error, "a tool filter failed").record())
    if spec.judges:
        for number, verdict in enumerate(verdicts):
            call = calls[verdict.index]
            if not verdict.allowed or not spec.tools[call.name].approval:
                continue
            try:
                verdicts[number] = await _approved(verdict, call, bindings.approval, context)
            except Exception as error:
                failed = as_rule(error, f"the approval of {call.name!r} failed")
                return CallsJudged(now(), state.turn, (), failed.record())
    return CallsJudged(now(), state.turn, tuple(verdicts))


async def _approved(
    verdict: Verdict, call: ToolCall, approval: Approval | None, context: RunContext[Any]
) -> Verdict:
    """The approval callback's verdict about a call that filters let through, with the arguments they gave."""
    index = verdict.index
    if approval is None:
        return Verdict(index, allowed=False, reason="no approval callback is bound")
    if verdict.args_json is not None:
        call = replace(call, args_json=verdict.args_json)
    answer = await answer_of(approval, context, call)
    if answer is True:
        return verdict
    return Verdict(index, allowed=False, reason=clean_text(answer) if isinstance(answer, str) else "")


async def deliver(  # noqa: PLR0917 - like the others, and what is delivered
    state: State, bindings: Bindings, output: Any, deps: Any, now: Any, home: Home | None = None
) -> Delivered:
    """Run what must happen at the end, all of it. The first failure is recorded; the outcome stands."""
    context = context_of(state, bindings, deps, now(), home)
    failed: FlyballError | None = None
    for delivery in bindings.deliveries:
        try:
            await answer_of(delivery, context, state.outcome or Outcome.FAILED, output)
        except Exception as error:
            failed = failed or as_rule(error, "a delivery failed")
    if (bases := bindings.stages.knowledge_bases) and state.outcome is Outcome.SUCCESS:
        from flyball.orchestrate.knowing import store

        try:
            await store(bases, state, context)
        except FlyballError as error:
            failed = failed or error
    return Delivered(now(), None if failed is None else failed.record())


async def perform_own(  # noqa: PLR0917 - all that an effect may need
    effect: Effect, state: State, bindings: Bindings, deps: Any, now: Any, home: Home | None = None
) -> Event:
    """Carry out an effect that is the loop's own: none that the model, a tool or a signal answers.

    What an end owes others is done before (`editing.take_leave`).
    """
    if isinstance(effect, Admit):
        return await admit(state, bindings, deps, now, home)
    if isinstance(effect, Prepare):
        return await prepare(state, bindings, deps, now, home)
    if isinstance(effect, Review):
        return await review(state, bindings, deps, now, home)
    if isinstance(effect, Judge):
        return await judge(state, effect.indices, bindings, deps, now, home)
    if isinstance(effect, Settle):
        if bindings.ruled:
            return (await settle_validated(state, bindings, deps, now, home))[0]
        return settle(state, bindings.output, now)[0]
    if isinstance(effect, Deliver):
        output = bindings.output.of(state) if state.outcome is Outcome.SUCCESS else None
        return await deliver(state, bindings, output, deps, now, home)
    assert isinstance(effect, End), effect
    return Ended(now(), effect.outcome, effect.error)
