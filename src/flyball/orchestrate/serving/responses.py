"""From a flow that is over, well or not, to the SystemResponse: one more projection of its journals."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from flyball.core.encodable import NotEncodable, to_json
from flyball.core.errors import NoConsensus, OrchestrationFailure
from flyball.core.messages import JSON
from flyball.orchestrate.confidence import VOTING
from flyball.orchestrate.contracts import Mode, SystemResponse, ValidationResult
from flyball.orchestrate.flow.result import FlowResult, StepResult
from flyball.orchestrate.lifecycle.flows import holds_output, makes_plan
from flyball.orchestrate.patterns.redundant import voted
from flyball.orchestrate.plan.ir import StepInput
from flyball.orchestrate.plan.naming import names_in
from flyball.orchestrate.responding import Asked, response_to
from flyball.orchestrate.result import RunResult
from flyball.orchestrate.serving.tool_calls import flow_tool_calls


async def flow_response(asked: Asked, flow: FlowResult[Any]) -> SystemResponse:
    """The response to a request that was a flow."""
    request, state = asked.request, flow.state
    runs = [await _of_run(asked, step.run) for step in flow.steps if step.run is not None]
    last = runs[-1] if runs else SystemResponse()
    response = replace(
        last,
        request_id=request.request_id,
        session_id=request.session_id,
        trace_id=request.trace_id,
        tool_calls_made=tuple(await flow_tool_calls(flow.journal, await flow.events())),
        usage=flow.usage,
        loop_id=flow.loop_id,
        error=None,
    )
    response = _trusted(response, request.mode, runs)
    if request.mode is Mode.PLAN:
        response = _planned(response, flow, runs)
    elif state.error is None and request.mode is Mode.REDUNDANT:
        response = await _voted(response, asked, flow)
    if state.error is None:
        return response
    return _failed(response, asked, flow, runs)


def _trusted(response: SystemResponse, mode: Mode, runs: list[SystemResponse]) -> SystemResponse:
    """The response with the confidence of its answer: that of the last loop that has one.

    Of a vote it is the vote's, and a plan, whose steps give many things, has none.
    """
    named = [run for run in runs if run.confidence is not None]
    if not named or mode in (Mode.PLAN, Mode.REDUNDANT):
        return replace(response, confidence=None, confidence_source="")
    last = named[-1]
    return replace(response, confidence=last.confidence, confidence_source=last.confidence_source)


async def _of_run(asked: Asked, run: RunResult[Any]) -> SystemResponse:
    return response_to(asked, run, await run.events())


async def _voted(response: SystemResponse, asked: Asked, flow: FlowResult[Any]) -> SystemResponse:
    result = voted(flow)
    winner = await _of_run(asked, result.winner)
    return replace(
        response,
        content=result.content,
        structured_output=to_json(result.output),
        confidence=result.confidence,
        confidence_source=VOTING,
        validation_result=winner.validation_result,
        model=winner.model,
        finish_reason=winner.finish_reason,
    )


def _planned(response: SystemResponse, flow: FlowResult[Any], runs: list[SystemResponse]) -> SystemResponse:
    plan = flow.state.flow
    done = [step for step in flow.steps if step.error is None and not makes_plan(plan, step.path)]
    # What is held to the contract is told as `output`, whatever the plan's steps are called.
    contract = "1" if len(plan.steps) > 1 and holds_output(plan, "1") else ""
    names = names_in(plan, contract, "0.0" if makes_plan(plan, "0.0") else "")
    outputs: dict[str, JSON] = {names[step.path]: _plain(step.output) for step in done}
    given = flow.output if flow.state.error is None else done[-1].output if done else ""
    content = StepInput.of(given).text
    checked = [run.validation_result for run in runs if run.validation_result is not None]
    held = [_held(step) for step in flow.steps if holds_output(plan, step.path)]
    return replace(
        response,
        content=content,
        structured_output=outputs or None,
        validation_result=_together(checked or held) if checked or held else None,
    )


def _held(step: StepResult) -> ValidationResult:
    """What came of holding the plan's output to the contract."""
    if step.error is None:
        return ValidationResult(passed=1)
    return ValidationResult(failed=1, violations=(step.error.message,))


def _together(results: list[ValidationResult]) -> ValidationResult:
    return ValidationResult(
        passed=sum(one.passed for one in results),
        failed=sum(one.failed for one in results),
        repairs=sum(one.repairs for one in results),
        violations=tuple([text for one in results for text in one.violations]),
        warnings=tuple([text for one in results for text in one.warnings]),
    )


def _failed(
    response: SystemResponse, asked: Asked, flow: FlowResult[Any], runs: list[SystemResponse]
) -> SystemResponse:
    """The response to what failed: in the category of the run that did, if one did, with what there is."""
    error = flow.state.error
    assert error is not None, "it has failed"
    failed = next((step for step in reversed(flow.steps) if step.error is not None), None)
    told = None
    if failed is not None and failed.run is not None:
        told = runs[-1].error
    elif asked.request.mode is Mode.REDUNDANT and runs and error.code != NoConsensus.code:
        told = runs[0].error  # no replica gave an answer: why the first one did not
    if told is not None:
        details = {**(error.details or {}), **(told.details or {})}
        error = replace(told, details=details)
    if asked.strict:
        return replace(response, error=error, content="", structured_output=None)
    return replace(response, error=error)


def _plain(output: Any) -> JSON:
    try:
        return to_json(output)
    except NotEncodable as error:  # it was recorded, so it can be written
        raise OrchestrationFailure(str(error)) from error
