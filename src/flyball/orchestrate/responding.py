"""From a run that is over to the SystemResponse: one more projection of its journal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import UNSET, Struct
from msgspec.structs import replace

from flyball.constraint.validators import failure_of
from flyball.core.encodable import to_json
from flyball.core.errors import (
    Deferred,
    FailureCategory,
    FlyballError,
    JournalFailure,
    JSONInvalid,
    OrchestrationFailure,
    RuleFailed,
    SchemaInvalid,
    SystemError,  # noqa: A004 - pagantic's name for it
    UnexpectedModelBehavior,
)
from flyball.core.events import AnswerReviewed, Event, ModelAnswered, ModelFailed, ToolReturned, TurnSettled
from flyball.core.messages import JSON, FinishReason, Message
from flyball.core.spec import OutputSpec
from flyball.inference.request import Result
from flyball.orchestrate.approvals import is_withheld
from flyball.orchestrate.confidence import confidence_in
from flyball.orchestrate.contracts import SystemRequest, SystemResponse, ValidationResult
from flyball.orchestrate.projections import tool_calls_made
from flyball.orchestrate.result import AnyResult
from flyball.orchestrate.schema_output import Look, SchemaOutput, SchemaReader
from flyball.orchestrate.state import State
from flyball.orchestrate.tool_record import ToolCallRecord


class Asked(Struct, frozen=True):
    """What was asked for, as far as the response depends on it.

    `schema` is the schema that the output is held to, if a request brought one; `ruled`: whether rules of the
    user's own look at it too; `reserved`: whether a person approves it, or interceptors or conditions look at
    it before anything follows from it.
    """

    request: SystemRequest
    schema: SchemaOutput | None = None
    ruled: bool = False
    reserved: bool = False

    @property
    def strict(self) -> bool:
        """Whether nothing partial may be given back."""
        contract = self.request.output
        return contract is not None and contract.strict_validation


def response_to(
    asked: Asked, result: AnyResult, events: Sequence[Event], stopped: FlyballError | None = None
) -> SystemResponse:
    """The response to a request whose run is over, well or not, or waits for results from outside.

    `stopped` is what the run has raised, if it has. One that waits for nothing but the caller's own tools
    has not failed: the response says which calls these are. Where a person approves answers, it has nothing
    of one that was not approved.
    """
    state, request = result.state, asked.request
    said = _last_said(events)
    response = SystemResponse(
        request_id=request.request_id,
        session_id=request.session_id,
        trace_id=request.trace_id,
        content=result.text,
        tool_calls_made=_calls_made(events, state),
        validation_result=_validation(events),
        usage=state.usage,
        loop_id=state.loop_id,
        model=(said.model if said is not None else None) or state.spec.model,
        finish_reason=_finish_reason(events),
    )
    error = stopped or result.error
    if isinstance(error, Deferred):
        response = replace(response, calls_wanted=error.requests)
        if _is_the_callers(state, error):
            beside = "" if is_withheld(state) else state.history[-1].text
            return _with_confidence(replace(response, content=beside), asked, events)
    if error is not None:
        failed = _failed(response, asked, state.error or error.record(), state, events)
        return _with_confidence(failed, asked, events)
    answered = replace(response, structured_output=_structured(result, state.spec.output))
    return _with_confidence(answered, asked, events)


def _calls_made(events: Sequence[Event], state: State) -> tuple[ToolCallRecord, ...]:
    """The tools that were run; without what one ended the loop with, where nobody approved that."""
    made = tool_calls_made(events)
    if not state.spec.output.approval:
        return tuple(made)
    approved = 0 if is_withheld(state) else state.turn
    drafts = {
        event.result.call_id
        for event in events
        if isinstance(event, ToolReturned) and event.result.stop_loop and event.turn != approved
    }
    return tuple([replace(one, arguments={}, result=None) if one.call_id in drafts else one for one in made])


def _is_the_callers(state: State, error: Deferred) -> bool:
    """Whether a run waits for nothing but the results of tools that the caller runs."""
    tools = state.spec.tools
    return all(not one.loop_id and tools[one.tool_name].outside for one in error.requests)


def _with_confidence(response: SystemResponse, asked: Asked, events: Sequence[Event]) -> SystemResponse:
    confidence, source = confidence_in(events, response.error, ruled=asked.ruled)
    return replace(response, confidence=confidence, confidence_source=source)


def refusal_of(request: SystemRequest, error: Exception, loop_id: str = "") -> SystemResponse:
    """The response to a request that did not come to a run, or whose run could not be recorded to its end."""
    if not isinstance(error, FlyballError):
        cause = error
        error = OrchestrationFailure(f"the system failed unexpectedly: {type(cause).__name__}: {cause}")
        error.__cause__ = cause
    ids = request if isinstance(request, SystemRequest) else SystemRequest(messages=())  # pyright: ignore[reportUnnecessaryIsInstance] - anybody's
    return SystemResponse(
        request_id=ids.request_id,
        session_id=ids.session_id,
        trace_id=ids.trace_id,
        calls_wanted=error.requests if isinstance(error, Deferred) else (),
        error=error.record(),
        loop_id=loop_id if isinstance(error, JournalFailure) else "",
    )


def _structured(result: AnyResult, output: OutputSpec) -> JSON:
    """The output as JSON; None where the answer was text and nothing else."""
    return to_json(result.output) if output.schema is not None or output.tools else None


def _failed(
    response: SystemResponse,
    asked: Asked,
    error: SystemError,
    state: State,
    events: Sequence[Event],
) -> SystemResponse:
    look = Look()
    nothing_partial = asked.strict or is_withheld(state)
    if (refused := _refused(events)) is not None:
        look = _looked_at(asked, state, events)
        if not _could_not_look(events):
            error = _told_by_category(asked, error, look, refused, _last_said(events))
    report = response.validation_result
    if report is not None:
        violations = tuple([str(fault) for fault in look.faults]) or (refused or ())
        warnings = report.warnings
        if look.faults and look.value is not UNSET and not nothing_partial:
            warnings = (*warnings, "the output is given back although it is not valid")
        report = replace(report, violations=violations, warnings=warnings)
    failed = replace(response, error=_where(error, response), validation_result=report)
    if nothing_partial:
        return failed
    value = None if look.value is UNSET else look.value
    return replace(failed, content=_partial_text(state, events), structured_output=value)


def _where(error: SystemError, response: SystemResponse) -> SystemError:
    """An error of a model call with which model that was, and what the request had used by then."""
    if error.category != FailureCategory.INFERENCE:
        return error
    known = {"model": response.model, "total_tokens": response.usage.total_tokens}
    return replace(error, details={**known, **(error.details or {})})


def _refused(events: Sequence[Event]) -> tuple[str, ...] | None:
    """What was wrong with the last answer, if it was looked at and refused; None if that was not the end."""
    for event in reversed(events):
        if isinstance(event, TurnSettled):
            if event.accepted or event.reflected:
                return None
            return event.feedback or (() if event.error is None else (event.error.message,))
        if isinstance(event, ModelAnswered | ModelFailed) and event.purpose == "turn":
            break
    return None


def _could_not_look(events: Sequence[Event]) -> bool:
    """Whether it was not the last answer that failed but who was to look at it: a judge without a verdict."""
    last = next((event for event in reversed(events) if isinstance(event, TurnSettled)), None)
    return last is not None and last.error is not None and not last.feedback


def _looked_at(asked: Asked, state: State, events: Sequence[Event]) -> Look:
    answer, output = next(_passed(state, events), None), state.spec.output
    if asked.schema is None or answer is None:
        return Look()
    return SchemaReader(asked.schema, output).look(_raw(answer, output))


def _told_by_category(
    asked: Asked, error: SystemError, look: Look, refused: tuple[str, ...], said: Message | None
) -> SystemError:
    """The error in the category of the last failure, once the retries are used up: pagantic's rule.

    The loop itself says, as gollem does, that the model gave no acceptable answer; that is then the cause.
    """
    if error.kind != UnexpectedModelBehavior.__name__:
        return error
    if said is not None and said.finish_reason is FinishReason.LENGTH:
        after = f" after {said.usage.output_tokens} tokens" if said.usage is not None else ""
        failure: FlyballError = JSONInvalid(f"the answer was cut off{after}, its limit: raise max_tokens")
    elif look.faults:
        failure = failure_of(look.faults)
    else:
        told = refused[0] if refused else error.message
        failure = (RuleFailed if asked.ruled or asked.schema is not None else SchemaInvalid)(told)
    failure.details |= error.details or {}
    failure.caused_by = f"{error.kind}: {error.message}"
    return failure.record()


def _validation(events: Sequence[Event]) -> ValidationResult | None:
    """What was checked; None where nothing was."""
    settled = [event for event in events if isinstance(event, TurnSettled)]
    if not settled:
        return None
    repairs = [repair for event in settled for repair in event.repairs]
    passed = len([event for event in settled if event.accepted or event.reflected])
    return ValidationResult(
        passed=passed,
        failed=len(settled) - passed,
        repairs=len(repairs),
        warnings=tuple([f"the answer was put right: {repair}" for repair in repairs]),
    )


# What the model said


def _last_said(events: Sequence[Event]) -> Message | None:
    """The model's last answer, whole or broken off."""
    return next(_said(events), None)


def _passed(state: State, events: Sequence[Event]) -> Iterator[Message]:
    """What the model said, the newest first, without what nobody has looked at who was to."""
    return _said(events, unseen=not state.spec.reviews)


def _said(events: Sequence[Event], *, unseen: bool = True) -> Iterator[Message]:
    """What the model said, the newest first, as it counts: what was dropped or refused is not told on.

    Of `unseen` nobody has looked at it before anything follows from it.
    """
    reviewed: AnswerReviewed | None = None
    for event in _newest_first(events):
        if isinstance(event, AnswerReviewed):
            reviewed = event
        elif isinstance(event, ModelFailed):
            if event.partial is not None and unseen:
                yield event.partial
        elif isinstance(event, ModelAnswered):
            counts = unseen if reviewed is None else not (reviewed.dropped or reviewed.error is not None)
            if counts:
                yield event.message if reviewed is None or reviewed.message is None else reviewed.message
            reviewed = None


def _partial_text(state: State, events: Sequence[Event]) -> str:
    """The last thing that was said in words, or as an output: what a failed run had to show."""
    output = state.spec.output
    return next((text for message in _passed(state, events) if (text := _raw(message, output))), "")


def _raw(message: Message, output: OutputSpec) -> str:
    """An answer as it was given: the arguments of the call that carries the output, or the text."""
    names = [definition.name for definition in output.tools]
    return next((call.args_json for call in message.tool_calls if call.name in names), message.text)


def _finish_reason(events: Sequence[Event]) -> FinishReason | None:
    """Why the model stopped the last time; None where it was never asked, or never came to an end."""
    for event in _newest_first(events):
        if isinstance(event, ModelAnswered):
            return Result(event.message).finish_reason
        if isinstance(event, ModelFailed):
            return FinishReason.ERROR
    return None


def _newest_first(events: Sequence[Event]) -> Iterator[Event]:
    """The events from the last to the first, without model calls that were no turn's."""
    for event in reversed(events):
        if not isinstance(event, ModelAnswered | ModelFailed) or event.purpose == "turn":
            yield event
