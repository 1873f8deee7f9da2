"""What goes wrong with loops and flows themselves."""

# ruff: noqa: N818 - the categories and many of the errors bear pagantic's and gollem's names

from __future__ import annotations

from typing import Any

from msgspec import convert

from flyball.core.deferred import DeferredToolRequest
from flyball.core.errors.root import FlyballError
from flyball.core.usage import RunUsage


class OrchestrationFailure(FlyballError):
    """The loop itself could not go on."""


class StepMismatch(OrchestrationFailure):
    """A step's input has the wrong type."""

    code = "ORCHESTRATION_STEP_MISMATCH"


class StepFailed(OrchestrationFailure):
    """The function of a flow's step raised: details `step`, `path`."""

    code = "ORCHESTRATION_STEP_FAILED"


class PlanRejected(OrchestrationFailure):
    """A plan breaks the policy that it is to be run under, before any of its steps ran: detail `limit`."""

    code = "ORCHESTRATION_PLAN_REJECTED"


class IterationLimit(OrchestrationFailure):
    """The loop reached its iterations without an answer: details `limit`, `allowed`."""

    code = "ORCHESTRATION_ITERATION_LIMIT"


class DepthLimit(OrchestrationFailure):
    """The loop stands deeper under others than is allowed: details `limit`, `allowed`, `depth`."""

    code = "ORCHESTRATION_DEPTH_LIMIT"


class NoConsensus(OrchestrationFailure):
    """A vote gave no winner."""

    code = "ORCHESTRATION_NO_CONSENSUS"


class UsageLimitExceeded(OrchestrationFailure):
    """A soft limit was reached: details `limit` (its name), `allowed`, `used`."""

    code = "ORCHESTRATION_USAGE_LIMIT"


class QuotaExceeded(UsageLimitExceeded):
    """A hard quota was reached: details `limit`, `allowed`, `used`, and the whole `quota` and `usage`."""

    code = "ORCHESTRATION_QUOTA_EXCEEDED"

    @property
    def quota(self) -> dict[str, int]:
        """The limits that the run's quota sets, by name."""
        return self.details.get("quota") or {}

    @property
    def usage(self) -> RunUsage:
        """What the run had used when it was ended."""
        return convert(self.details.get("usage") or {}, RunUsage)


class LoopDetected(OrchestrationFailure):
    """The model asks for the same calls with the same arguments again and again: details `calls`, `times`."""

    code = "ORCHESTRATION_LOOP_DETECTED"


class RunConditionError(OrchestrationFailure):
    """A run condition ended the run without an acceptable answer: details `reason`."""

    code = "ORCHESTRATION_RUN_CONDITION"

    @property
    def reason(self) -> str:
        """Why the condition was met."""
        return self.details.get("reason") or ""


class KnowledgeFailed(OrchestrationFailure):
    """A knowledge base could not be asked, or could not store: details `knowledge` and `doing`."""

    code = "ORCHESTRATION_KNOWLEDGE_FAILED"


class MemoryFull(OrchestrationFailure):
    """A conversation has as many messages as it may have, and none may be left out: details `allowed`."""

    code = "ORCHESTRATION_MEMORY_FULL"


class AgentRunClosed(OrchestrationFailure):
    """The run was closed before it had a result."""

    code = "ORCHESTRATION_RUN_CLOSED"


class StreamRestarted(OrchestrationFailure):
    """A model call was made again and gave other text than the reader had been given: details `void`."""

    code = "ORCHESTRATION_STREAM_RESTARTED"


class Rejected(OrchestrationFailure):
    """A person rejected the result."""

    code = "ORCHESTRATION_REJECTED"


class IllegalTransition(OrchestrationFailure):
    """A move that the lifecycle or the machine does not have."""

    code = "ORCHESTRATION_ILLEGAL_TRANSITION"


class SignalRefused(OrchestrationFailure):
    """A signal does not fit where the loop stands: details `loop_id`, `signal`, `stage`, `fits`."""

    code = "ORCHESTRATION_SIGNAL_REFUSED"


class NotPermitted(OrchestrationFailure):
    """Who asks for something may not have it done: details `permission`, `user_id`."""

    code = "ORCHESTRATION_NOT_PERMITTED"


class Deferred(OrchestrationFailure):
    """Calls wait for results from outside: details `loop_id`, `requests`. The loop is not over.

    Of a run that waits for one under it, the requests name their own loops.
    """

    code = "ORCHESTRATION_DEFERRED"

    @property
    def loop_id(self) -> str:
        """The loop, by which it can be gone on with once there are results."""
        return str(self.details.get("loop_id", ""))

    @property
    def requests(self) -> tuple[DeferredToolRequest, ...]:
        """The calls that wait, with their arguments."""
        return convert(self.details.get("requests", ()), tuple[DeferredToolRequest, ...])

    @property
    def messages(self) -> tuple[Any, ...]:
        """The history so far, with these calls open: for `run(messages=..., deferred_results=...)`."""
        return () if self.partial is None else self.partial.messages


class AnswerRefused(OrchestrationFailure):
    """A result from outside is of no call that waits for one: details `call_id` or `missing`, `waiting`."""

    code = "ORCHESTRATION_ANSWER_REFUSED"


class DelegationRefused(OrchestrationFailure):
    """A loop may not hand capabilities on: details `delegator`, `delegate`."""

    code = "ORCHESTRATION_DELEGATION_REFUSED"


class UnknownAgent(OrchestrationFailure):
    """The agent's code is not in this process; another worker may have it."""

    code = "ORCHESTRATION_UNKNOWN_AGENT"
    retryable = True


class WorkPutAside(OrchestrationFailure):
    """A loop waits for work that no worker could do: it was put aside, and can be given out again."""

    code = "ORCHESTRATION_WORK_PUT_ASIDE"
