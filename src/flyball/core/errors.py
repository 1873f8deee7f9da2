"""Everything that can go wrong, as one tree.

    FlyballError
    ├── InferenceFailure            inference_failure       retry with backoff, sometimes
    │   ├── EngineError                 INFERENCE_ENGINE_ERROR
    │   │   ├── ModelHTTPError
    │   │   └── AllModelsFailed
    │   ├── ModelUnavailable            INFERENCE_MODEL_UNAVAILABLE
    │   │   ├── ModelBeingFetched           INFERENCE_MODEL_BEING_FETCHED
    │   │   └── ModelDownloadFailed         INFERENCE_MODEL_DOWNLOAD_FAILED
    │   │       └── ModelHashMismatch           INFERENCE_MODEL_HASH_MISMATCH
    │   ├── ContextExceeded             INFERENCE_CONTEXT_EXCEEDED
    │   ├── MiddlewareFailed            INFERENCE_MIDDLEWARE_FAILED
    │   └── UnexpectedModelBehavior     INFERENCE_MALFORMED_RESPONSE
    │       ├── ContentFilterError
    │       └── IncompleteToolCall
    ├── ToolFailure                 tool_failure            retry if idempotent, or hand it to the model
    │   ├── ToolNotFound                TOOL_NOT_FOUND
    │   ├── ToolExecutionFailed         TOOL_EXECUTION_FAILED
    │   │   └── ToolRetriesExceeded
    │   ├── ToolTimeout                 TOOL_TIMEOUT
    │   └── ToolUnavailable             TOOL_UNAVAILABLE
    ├── ConstraintFailure           constraint_failure      repair, or infer again
    │   ├── GrammarRejected             CONSTRAINT_GRAMMAR_REJECTED
    │   ├── GrammarUnsupported          CONSTRAINT_GRAMMAR_UNSUPPORTED
    │   ├── SchemaInvalid               CONSTRAINT_SCHEMA_INVALID
    │   ├── JSONInvalid                 CONSTRAINT_JSON_INVALID
    │   └── EnumUnrecognized            CONSTRAINT_ENUM_UNRECOGNIZED
    ├── ValidationFailure           validation_failure      infer again with what was wrong
    │   ├── RuleFailed                  VALIDATION_RULE_FAILED
    │   │   ├── GuardrailError
    │   │   └── RequestDropped
    │   │       └── RateExceeded            VALIDATION_RATE_EXCEEDED
    │   └── SemanticFailed              VALIDATION_SEMANTIC_FAILED
    ├── OrchestrationFailure        orchestration_failure   not retryable
    │   ├── StepMismatch                ORCHESTRATION_STEP_MISMATCH
    │   ├── StepFailed                  ORCHESTRATION_STEP_FAILED
    │   ├── PlanRejected                ORCHESTRATION_PLAN_REJECTED
    │   ├── IterationLimit              ORCHESTRATION_ITERATION_LIMIT
    │   ├── DepthLimit                  ORCHESTRATION_DEPTH_LIMIT
    │   ├── NoConsensus                 ORCHESTRATION_NO_CONSENSUS
    │   ├── UsageLimitExceeded          ORCHESTRATION_USAGE_LIMIT
    │   │   └── QuotaExceeded               ORCHESTRATION_QUOTA_EXCEEDED
    │   ├── LoopDetected                ORCHESTRATION_LOOP_DETECTED
    │   ├── RunConditionError           ORCHESTRATION_RUN_CONDITION
    │   ├── KnowledgeFailed             ORCHESTRATION_KNOWLEDGE_FAILED
    │   ├── MemoryFull                  ORCHESTRATION_MEMORY_FULL
    │   ├── AgentRunClosed              ORCHESTRATION_RUN_CLOSED
    │   ├── StreamRestarted             ORCHESTRATION_STREAM_RESTARTED
    │   ├── Rejected                    ORCHESTRATION_REJECTED
    │   ├── IllegalTransition           ORCHESTRATION_ILLEGAL_TRANSITION
    │   ├── SignalRefused               ORCHESTRATION_SIGNAL_REFUSED
    │   ├── NotPermitted                ORCHESTRATION_NOT_PERMITTED
    │   ├── Deferred                    ORCHESTRATION_DEFERRED
    │   ├── AnswerRefused               ORCHESTRATION_ANSWER_REFUSED
    │   ├── DelegationRefused           ORCHESTRATION_DELEGATION_REFUSED
    │   ├── UnknownAgent                ORCHESTRATION_UNKNOWN_AGENT
    │   ├── WorkPutAside                ORCHESTRATION_WORK_PUT_ASIDE
    │   └── JournalFailure              ORCHESTRATION_JOURNAL_FAILED
    │       ├── JournalConflict             ORCHESTRATION_JOURNAL_CONFLICT
    │       │   └── LoopTakenOver               ORCHESTRATION_LOOP_TAKEN_OVER
    │       ├── JournalCorrupt              ORCHESTRATION_JOURNAL_CORRUPT
    │       ├── JournalTooNew               ORCHESTRATION_JOURNAL_TOO_NEW
    │       ├── JournalFull                 ORCHESTRATION_JOURNAL_FULL
    │       ├── JournalUnreachable          ORCHESTRATION_JOURNAL_UNREACHABLE
    │       └── LoopNotFound                ORCHESTRATION_LOOP_NOT_FOUND
    ├── ConfigurationFailure        configuration_failure   not retryable: fix the configuration
    │   ├── UserError                   CONFIG_USAGE
    │   │   ├── InvalidMessage              CONFIG_INVALID_MESSAGE
    │   │   └── DepsError                   CONFIG_DEPS
    │   ├── NoEngine                    CONFIG_NO_ENGINE
    │   ├── UnknownModel                CONFIG_UNKNOWN_MODEL
    │   ├── MissingExtra                CONFIG_MISSING_EXTRA
    │   ├── MissingLibrary              CONFIG_MISSING_LIBRARY
    │   ├── MissingKey                  CONFIG_MISSING_KEY
    │   ├── PermissionDenied            CONFIG_PERMISSION_DENIED
    │   ├── UnknownTenant               CONFIG_UNKNOWN_TENANT
    │   ├── ModelFileInvalid            CONFIG_MODEL_FILE_INVALID
    │   ├── ModelStorageFailed          CONFIG_MODEL_STORAGE
    │   ├── SchemaRequired              CONFIG_SCHEMA_REQUIRED
    │   ├── SchemaMalformed             CONFIG_SCHEMA_MALFORMED
    │   ├── GrammarNotFound             CONFIG_GRAMMAR_NOT_FOUND
    │   ├── GrammarMalformed            CONFIG_GRAMMAR_MALFORMED
    │   │   └── GrammarWithoutRoot          CONFIG_GRAMMAR_NO_ROOT
    │   ├── TemplateError               CONFIG_TEMPLATE
    │   │   ├── TemplateMalformed           CONFIG_TEMPLATE_MALFORMED
    │   │   └── TemplateVariableMissing     CONFIG_TEMPLATE_VARIABLE_MISSING
    │   ├── InvalidRequest              CONFIG_INVALID_REQUEST
    │   ├── LoopMismatch                CONFIG_LOOP_MISMATCH
    │   ├── IdentityInvalid             CONFIG_IDENTITY_INVALID
    │   ├── IdentityNotFound            CONFIG_IDENTITY_NOT_FOUND
    │   ├── IdentityStorageFailed       CONFIG_IDENTITY_STORAGE
    │   └── ModelRequestsForbidden      CONFIG_MODEL_REQUESTS_FORBIDDEN
    └── Cancellation                cancellation            submit again
        ├── CancelledTimeout            CANCELLED_TIMEOUT
        └── CancelledSignal             CANCELLED_SIGNAL

Codes are stable and meant for programs; messages are for people and may change. What an error knows beyond
its message is in `details`, so that it survives a journal: `SystemError` is its written form, and
`SystemError.exception()` gives the exception back.
"""

# ruff: noqa: N818 - the categories and many of the errors bear pagantic's and gollem's names

from __future__ import annotations

from enum import StrEnum
from typing import Any, ClassVar, cast

from msgspec import Struct, convert

from flyball.core.deferred import DeferredToolRequest
from flyball.core.encodable import NotEncodable, clean_text, to_json
from flyball.core.usage import RunUsage


class FailureCategory(StrEnum):
    """The seven categories; each error belongs to exactly one."""

    INFERENCE = "inference_failure"
    TOOL = "tool_failure"
    CONSTRAINT = "constraint_failure"
    VALIDATION = "validation_failure"
    ORCHESTRATION = "orchestration_failure"
    CONFIGURATION = "configuration_failure"
    CANCELLATION = "cancellation"


class SystemError(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True, dict=True):  # noqa: A001 - pagantic's name for it
    """An error as data: what journals, responses and wires carry.

    Programs decide by `code`, `category` and `retryable`; `caused_by` tells what lay behind it.
    """

    code: str
    category: FailureCategory
    message: str
    retryable: bool = False
    details: dict[str, Any] | None = None
    caused_by: str | None = None
    kind: str = ""

    def exception(self) -> FlyballError:
        """The exception this was written from, of the same class where that class still exists.

        Where it was written in this process, it has the cause and the traceback of the original too.
        """
        known = _by_name(FlyballError)
        cls = known.get(self.kind) or _by_code(known.values()).get(self.code) or _CATEGORY[self.category]
        # The root's __init__, because a subclass of a user's may ask for arguments that are not written down.
        error = cls.__new__(cls, self.message)
        FlyballError.__init__(error, self.message, retryable=self.retryable)
        error.details = dict(self.details or {})
        error.caused_by = self.caused_by
        error.code = self.code
        raised = self.__dict__.get("raised")
        if isinstance(raised, FlyballError):
            error.__cause__ = raised.__cause__
            error.__traceback__ = raised.__traceback__
        return error


class FlyballError(Exception):
    """The root. `code`, `category` and `retryable` are for programs; `details` is plain data.

    `partial` is what a run had reached when it failed (a `RunResult`), or None.
    """

    code: str = "ORCHESTRATION_FAILED"
    category: ClassVar[FailureCategory] = FailureCategory.ORCHESTRATION
    retryable: bool = False

    def __init__(self, message: str, *, retryable: bool | None = None, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details: dict[str, Any] = details
        self.partial: Any = None
        self.caused_by: str | None = None
        if retryable is not None:
            self.retryable = retryable

    def record(self) -> SystemError:
        """This error as data that can always be encoded: a detail without a JSON form is told by its type."""
        cause = self.__cause__
        if cause is None and not self.__suppress_context__:
            cause = self.__context__
        caused_by = self.caused_by
        if caused_by is None and cause is not None:
            caused_by = _told(cause)
        record = SystemError(
            code=self.code,
            category=self.category,
            message=clean_text(self.message),
            retryable=self.retryable,
            details={clean_text(key): _plain(value) for key, value in self.details.items()} or None,
            caused_by=caused_by,
            kind=type(self).__name__,
        )
        # Beside the data, never in it: who wrote this down can still see where it came from.
        cast("dict[str, Any]", record.__dict__)["raised"] = self
        return record


def _plain(value: Any) -> Any:
    try:
        return to_json(value)
    except NotEncodable:
        return f"<{type(value).__qualname__}>"


def _told(cause: BaseException) -> str:
    name = type(cause).__name__
    try:
        return clean_text(f"{name}: {cause}")
    except Exception:  # an exception that cannot even say what it is must not hide the one that it caused
        return name


# Inference


class InferenceFailure(FlyballError):
    """The engine or the model failed."""

    code = "INFERENCE_ENGINE_ERROR"
    category = FailureCategory.INFERENCE
    retryable = True


class EngineError(InferenceFailure):
    """The engine could not answer: a server error, a refused connection."""


class ModelHTTPError(EngineError):
    """A provider answered with an HTTP error: details `status_code`, `body`, `model`, `retry_after`."""

    @property
    def status_code(self) -> int:
        """The status; 0 where it is not known."""
        return self.details.get("status_code") or 0

    @property
    def body(self) -> str:
        """What the provider said."""
        return self.details.get("body") or ""

    @property
    def model_name(self) -> str:
        """The model that was asked."""
        return self.details.get("model") or ""

    @property
    def retry_after(self) -> float | None:
        """In how many seconds the provider wants to be asked again, if it said so."""
        return self.details.get("retry_after")


class AllModelsFailed(EngineError):
    """Each of several models failed: details `attempts`, one entry a try, with its model and its error."""


class ModelUnavailable(InferenceFailure):
    """The model is not loaded, or does not exist there."""

    code = "INFERENCE_MODEL_UNAVAILABLE"
    retryable = False


class ModelBeingFetched(ModelUnavailable):
    """The model's file is on its way: details `model`, `percent` (None: not known) and `retry_after`."""

    code = "INFERENCE_MODEL_BEING_FETCHED"
    retryable = True


class ModelDownloadFailed(ModelUnavailable):
    """No place gave the model's file (often: no network); details `model` and `tried`, one entry a place."""

    code = "INFERENCE_MODEL_DOWNLOAD_FAILED"


class ModelHashMismatch(ModelDownloadFailed):
    """A place gave other bytes than the model's: details `model`, `expected`, `actual`."""

    code = "INFERENCE_MODEL_HASH_MISMATCH"


class ContextExceeded(InferenceFailure):
    """The input is larger than the context window: shorten the history or the context."""

    code = "INFERENCE_CONTEXT_EXCEEDED"
    retryable = False


class MiddlewareFailed(InferenceFailure):
    """A middleware around the model call failed, or gave what is none: details `middleware`."""

    code = "INFERENCE_MIDDLEWARE_FAILED"
    retryable = False


class UnexpectedModelBehavior(InferenceFailure):
    """The model's answer cannot be used: details `body` holds what came."""

    code = "INFERENCE_MALFORMED_RESPONSE"

    @property
    def body(self) -> str:
        """What the model answered, or the end of it; empty where that is not known."""
        return self.details.get("body") or ""


class ContentFilterError(UnexpectedModelBehavior):
    """The provider's content filter stopped the answer."""

    retryable = False


class IncompleteToolCall(UnexpectedModelBehavior):
    """A tool call's arguments are no JSON object, often because the token limit cut them."""


# Tools


class ToolFailure(FlyballError):
    """A tool failed; retryable only where the tool is idempotent."""

    code = "TOOL_EXECUTION_FAILED"
    category = FailureCategory.TOOL


class ToolNotFound(ToolFailure):
    """The model asked for a tool that is not registered."""

    code = "TOOL_NOT_FOUND"


class ToolExecutionFailed(ToolFailure):
    """The tool raised, or gave back what cannot be taken: details `tool` and the error."""


class ToolRetriesExceeded(ToolExecutionFailed):
    """The model called a tool wrongly more often than its retries allow."""


class ToolTimeout(ToolFailure):
    """The tool took longer than its time-out and was cancelled."""

    code = "TOOL_TIMEOUT"


class ToolUnavailable(ToolFailure):
    """The tool is there but cannot work now, or is not bound in this process."""

    code = "TOOL_UNAVAILABLE"


# Constraints


class ConstraintFailure(FlyballError):
    """The output breaks a constraint on its form."""

    code = "CONSTRAINT_SCHEMA_INVALID"
    category = FailureCategory.CONSTRAINT
    retryable = True


class GrammarRejected(ConstraintFailure):
    """The output breaks the grammar: details `grammar`, `position`, `line` and `column` of where."""

    code = "CONSTRAINT_GRAMMAR_REJECTED"


class GrammarUnsupported(ConstraintFailure):
    """A schema says what no grammar can: details `path` (into the schema) and `keyword`."""

    code = "CONSTRAINT_GRAMMAR_UNSUPPORTED"
    retryable = False


class SchemaInvalid(ConstraintFailure):
    """The output breaks its schema: details `path` and `violation`."""


class JSONInvalid(ConstraintFailure):
    """The output is no JSON."""

    code = "CONSTRAINT_JSON_INVALID"


class EnumUnrecognized(ConstraintFailure):
    """A value is outside its enumeration."""

    code = "CONSTRAINT_ENUM_UNRECOGNIZED"


# Validation


class ValidationFailure(FlyballError):
    """The output has the right form and the wrong content."""

    code = "VALIDATION_RULE_FAILED"
    category = FailureCategory.VALIDATION
    retryable = True


class RuleFailed(ValidationFailure):
    """A rule failed: details `rules` lists which and why (`name` and `reason`)."""


class GuardrailError(RuleFailed):
    """A guardrail refused the input or the turn: details `guardrail` names it."""

    retryable = False

    @property
    def guardrail_name(self) -> str:
        """Which one; empty until a run has failed by it."""
        return self.details.get("guardrail") or ""


class RequestDropped(RuleFailed):
    """An interceptor dropped what was to be sent: details `interceptor`, `reason`."""

    retryable = False


class RateExceeded(RequestDropped):
    """A rate has no room for a request: details `retry_after` (in seconds) and `limits`, those without."""

    code = "VALIDATION_RATE_EXCEEDED"
    retryable = True

    @property
    def retry_after(self) -> float:
        """Seconds until there is room, if nobody else comes."""
        return float(self.details.get("retry_after") or 0.0)


class SemanticFailed(ValidationFailure):
    """The output does not mean what was asked for: details `reason`, `intent`."""

    code = "VALIDATION_SEMANTIC_FAILED"


# Orchestration


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


class JournalFailure(OrchestrationFailure):
    """The journal could not be read or written: the disk is full, the file is locked."""

    code = "ORCHESTRATION_JOURNAL_FAILED"


class JournalConflict(JournalFailure):
    """Somebody else appended first: details `loop_id`, `expected`, `actual`."""

    code = "ORCHESTRATION_JOURNAL_CONFLICT"
    retryable = True


class LoopTakenOver(JournalConflict):
    """Another driver resumed this loop; this one has stopped and lost nothing that was recorded."""

    code = "ORCHESTRATION_LOOP_TAKEN_OVER"
    retryable = False


class JournalCorrupt(JournalFailure):
    """The journal's bytes are not events of a loop."""

    code = "ORCHESTRATION_JOURNAL_CORRUPT"


class JournalTooNew(JournalFailure):
    """A newer flyball wrote this; details `version`, or the event's `kind`, and `supported`."""

    code = "ORCHESTRATION_JOURNAL_TOO_NEW"


class JournalFull(JournalFailure):
    """There is no room for more: an account's quota is used up; details `tenant`. What is there is safe."""

    code = "ORCHESTRATION_JOURNAL_FULL"
    retryable = True


class JournalUnreachable(JournalFailure):
    """The server that has the journal does not answer; whether the last append was taken is not known."""

    code = "ORCHESTRATION_JOURNAL_UNREACHABLE"
    retryable = True


class LoopNotFound(JournalFailure):
    """The journal holds no such loop."""

    code = "ORCHESTRATION_LOOP_NOT_FOUND"


# Configuration


class ConfigurationFailure(FlyballError):
    """Something is set up wrongly; trying again will not help."""

    code = "CONFIG_USAGE"
    category = FailureCategory.CONFIGURATION


class UserError(ConfigurationFailure):
    """flyball was used in a way that cannot work."""


class InvalidMessage(UserError):
    """A message has parts that its role cannot carry, or none."""

    code = "CONFIG_INVALID_MESSAGE"


class DepsError(UserError):
    """Dependencies are missing, or of the wrong type."""

    code = "CONFIG_DEPS"


class NoEngine(ConfigurationFailure):
    """No engine is configured."""

    code = "CONFIG_NO_ENGINE"


class UnknownModel(ConfigurationFailure):
    """A model string names no known provider, or cannot be read."""

    code = "CONFIG_UNKNOWN_MODEL"


class MissingExtra(ConfigurationFailure):
    """An optional part of flyball is not installed; the message has the command that installs it."""

    code = "CONFIG_MISSING_EXTRA"


class MissingLibrary(ConfigurationFailure):
    """A library of the operating system is not there; the message names the package that brings it."""

    code = "CONFIG_MISSING_LIBRARY"


class MissingKey(ConfigurationFailure):
    """A provider's key is not set; the message names the environment variable."""

    code = "CONFIG_MISSING_KEY"


class PermissionDenied(ConfigurationFailure):
    """A server refuses something to this user: details `subject`, `action`, `role`, `tenant`."""

    code = "CONFIG_PERMISSION_DENIED"


class UnknownTenant(ConfigurationFailure):
    """A tenant has no account here: details `tenant`."""

    code = "CONFIG_UNKNOWN_TENANT"


class ModelFileInvalid(ConfigurationFailure):
    """A file is no model: it is no GGUF file, it is cut short, or the engine cannot load it."""

    code = "CONFIG_MODEL_FILE_INVALID"


class ModelStorageFailed(ConfigurationFailure):
    """The folder for model files cannot be used: the disk is full, or writing there is not allowed."""

    code = "CONFIG_MODEL_STORAGE"


class SchemaRequired(ConfigurationFailure):
    """The mode needs a schema and the request has none."""

    code = "CONFIG_SCHEMA_REQUIRED"


class SchemaMalformed(ConfigurationFailure):
    """A schema is no JSON Schema, or a type has none."""

    code = "CONFIG_SCHEMA_MALFORMED"


class GrammarNotFound(ConfigurationFailure):
    """A grammar file is not there: details `path`."""

    code = "CONFIG_GRAMMAR_NOT_FOUND"


class GrammarMalformed(ConfigurationFailure):
    """A text is no GBNF grammar: details `line` and `column`."""

    code = "CONFIG_GRAMMAR_MALFORMED"


class GrammarWithoutRoot(GrammarMalformed):
    """A grammar has no rule `root`, where every grammar begins: details `rules` has those that it has."""

    code = "CONFIG_GRAMMAR_NO_ROOT"


class TemplateError(ConfigurationFailure):
    """A template cannot be filled with a value: details `template`, `line`, `column`, `variable`."""

    code = "CONFIG_TEMPLATE"


class TemplateMalformed(TemplateError):
    """A text is no template: details `template`, `line` and `column`."""

    code = "CONFIG_TEMPLATE_MALFORMED"


class TemplateVariableMissing(TemplateError):
    """A template's variable was not given: details `missing`, and `known`, those that were."""

    code = "CONFIG_TEMPLATE_VARIABLE_MISSING"


class InvalidRequest(ConfigurationFailure):
    """A request to the system lacks something or contradicts itself."""

    code = "CONFIG_INVALID_REQUEST"


class LoopMismatch(ConfigurationFailure):
    """The loop id is taken by a loop with another prompt or spec: details `loop_id`, `differs`."""

    code = "CONFIG_LOOP_MISMATCH"


class IdentityInvalid(ConfigurationFailure):
    """A text is no DID, or a document is no credential, DID document or identity: details `where`."""

    code = "CONFIG_IDENTITY_INVALID"


class IdentityNotFound(ConfigurationFailure):
    """Nobody here knows a DID, its key or a credential: details `did` or `credential`.

    Retryable where it was asked for over the network, and that failed.
    """

    code = "CONFIG_IDENTITY_NOT_FOUND"


class IdentityStorageFailed(ConfigurationFailure):
    """The folder of identities and keys cannot be read or written: details `path`."""

    code = "CONFIG_IDENTITY_STORAGE"


class ModelRequestsForbidden(ConfigurationFailure):
    """Real model calls are switched off here (tests), and one was tried."""

    code = "CONFIG_MODEL_REQUESTS_FORBIDDEN"


# Cancellation


class Cancellation(FlyballError):
    """The run was ended from outside."""

    code = "CANCELLED_SIGNAL"
    category = FailureCategory.CANCELLATION


class CancelledTimeout(Cancellation):
    """The deadline passed."""

    code = "CANCELLED_TIMEOUT"


class CancelledSignal(Cancellation):
    """Somebody cancelled: details `by`, `reason`."""


_CATEGORY: dict[FailureCategory, type[FlyballError]] = {
    FailureCategory.INFERENCE: InferenceFailure,
    FailureCategory.TOOL: ToolFailure,
    FailureCategory.CONSTRAINT: ConstraintFailure,
    FailureCategory.VALIDATION: ValidationFailure,
    FailureCategory.ORCHESTRATION: OrchestrationFailure,
    FailureCategory.CONFIGURATION: ConfigurationFailure,
    FailureCategory.CANCELLATION: Cancellation,
}


def _by_name(root: type[FlyballError]) -> dict[str, type[FlyballError]]:
    found = {root.__name__: root}
    for child in root.__subclasses__():
        # Of two classes with one name the one that was there first wins: flyball's own over a user's.
        found = _by_name(child) | found
    return found


def _by_code(classes: Any) -> dict[str, type[FlyballError]]:
    codes: dict[str, type[FlyballError]] = {}
    for cls in classes:
        codes.setdefault(cls.code, cls)
    return codes
