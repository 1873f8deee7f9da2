"""Running one tool call: whatever happens in it, a ToolResult comes out.

A tool that fails is no failure of the loop: the model reads the error and decides. This is a hot path; what
is seldom needed lies outside of it.
"""

from __future__ import annotations

from asyncio import CancelledError, current_task
from typing import Any

from flyball.core.context import RunContext
from flyball.core.errors import Deferred, ToolTimeout
from flyball.core.messages import ToolCall, ToolResult
from flyball.core.tools import Safety, ToolSpec
from flyball.tool.deadline import Deadline
from flyball.tool.errors import CallContinues, CallDeferred, CallDenied, ModelRetry
from flyball.tool.protocol import Tool
from flyball.tool.result import code_of, deferred_of, denied_of, describe, failure, result_of, retry_of

MAX_RESULT_BYTES = 4 * 1024 * 1024
"""A larger result is refused: it would fill the journal, and no model could read it."""
_RETRIES = 1
"""How often a failed call of an idempotent tool is repeated where the tool does not say."""


async def execute(
    tool: Tool, call: ToolCall, context: RunContext[Any] | None, *, max_result_bytes: int = MAX_RESULT_BYTES
) -> ToolResult:
    """Run one call of a tool. Never raises, except to pass on a cancellation, an interrupt or an exit.

    It also passes on that a loop which the call has begun under the run is not over: `CallContinues`, or the
    child's own Deferred. Then there is no result, and the call is to be run again.

    A ModelRetry gives a result of status `retry`, whose content is the message, a CallDeferred one of status
    `deferred` (its real result comes from elsewhere), and a CallDenied one of status `denied`. Any other
    exception, a time-out, a result without a JSON form and one that is too large give a result with an
    `error`, and with a code in the metadata
    (TOOL_EXECUTION_FAILED, TOOL_TIMEOUT). The call of an idempotent tool that raised is repeated at once, as
    often as its retries say; others are not, nor is one that took too long.
    """
    failures = 0
    limit = tool.spec.timeout
    while True:
        deadline: Deadline | None = None
        try:
            if limit is None:
                value = await tool.run(call.args_json, context)
            else:
                deadline = Deadline(limit)
                value = await deadline.run(tool.run(call.args_json, context))
        except ModelRetry as retry:
            return retry_of(call, retry, max_result_bytes)
        except CallDeferred as deferral:
            return deferred_of(call, deferral, max_result_bytes)
        except CallDenied as denial:
            return denied_of(call, denial)
        except CallContinues:
            raise
        except (Exception, CancelledError) as error:
            if isinstance(error, CancelledError) and _is_cancelled():
                raise
            if isinstance(error, Deferred) and context is not None and _is_childs(error, context):
                raise
            if deadline is not None and deadline.passed:
                text = f"{call.name} took longer than its time-out of {limit:g} seconds"
                return failure(call, text, ToolTimeout.code)
            if failures >= _repeats(tool.spec):
                return failure(call, describe(error), code_of(error))
            failures += 1
        else:
            return result_of(call, value, max_result_bytes)


def _is_cancelled() -> bool:
    """Whether this task is being cancelled, and not just something that the tool waited for."""
    task = current_task()
    return task is None or task.cancelling() > 0


def _is_childs(error: Deferred, context: RunContext[Any]) -> bool:
    """Whether what waits for results from outside is a loop that was begun from this run."""
    return error.details.get("parent_loop_id") == context.facts.loop_id


def _repeats(spec: ToolSpec) -> int:
    if spec.safety is not Safety.IDEMPOTENT:
        return 0
    return _RETRIES if spec.retries is None else spec.retries
