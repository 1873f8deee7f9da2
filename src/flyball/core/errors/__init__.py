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

from flyball.core.errors.cancellation import (
    Cancellation,
    CancelledSignal,
    CancelledTimeout,
)
from flyball.core.errors.configuration import (
    ConfigurationFailure,
    DepsError,
    GrammarMalformed,
    GrammarNotFound,
    GrammarWithoutRoot,
    IdentityInvalid,
    IdentityNotFound,
    IdentityStorageFailed,
    InvalidMessage,
    InvalidRequest,
    LoopMismatch,
    MissingExtra,
    MissingKey,
    MissingLibrary,
    ModelFileInvalid,
    ModelRequestsForbidden,
    ModelStorageFailed,
    NoEngine,
    PermissionDenied,
    SchemaMalformed,
    SchemaRequired,
    TemplateError,
    TemplateMalformed,
    TemplateVariableMissing,
    UnknownModel,
    UnknownTenant,
    UserError,
)
from flyball.core.errors.constraint import (
    ConstraintFailure,
    EnumUnrecognized,
    GrammarRejected,
    GrammarUnsupported,
    JSONInvalid,
    SchemaInvalid,
)
from flyball.core.errors.inference import (
    AllModelsFailed,
    ContentFilterError,
    ContextExceeded,
    EngineError,
    IncompleteToolCall,
    InferenceFailure,
    MiddlewareFailed,
    ModelBeingFetched,
    ModelDownloadFailed,
    ModelHashMismatch,
    ModelHTTPError,
    ModelUnavailable,
    UnexpectedModelBehavior,
)
from flyball.core.errors.journal import (
    JournalConflict,
    JournalCorrupt,
    JournalFailure,
    JournalFull,
    JournalTooNew,
    JournalUnreachable,
    LoopNotFound,
    LoopTakenOver,
)
from flyball.core.errors.orchestration import (
    AgentRunClosed,
    AnswerRefused,
    Deferred,
    DelegationRefused,
    DepthLimit,
    IllegalTransition,
    IterationLimit,
    KnowledgeFailed,
    LoopDetected,
    MemoryFull,
    NoConsensus,
    NotPermitted,
    OrchestrationFailure,
    PlanRejected,
    QuotaExceeded,
    Rejected,
    RunConditionError,
    SignalRefused,
    StepFailed,
    StepMismatch,
    StreamRestarted,
    UnknownAgent,
    UsageLimitExceeded,
    WorkPutAside,
)
from flyball.core.errors.root import (
    FailureCategory,
    FlyballError,
    SystemError,  # noqa: A004 - pagantic's name for it
)
from flyball.core.errors.tool import (
    ToolExecutionFailed,
    ToolFailure,
    ToolNotFound,
    ToolRetriesExceeded,
    ToolTimeout,
    ToolUnavailable,
)
from flyball.core.errors.validation import (
    GuardrailError,
    RateExceeded,
    RequestDropped,
    RuleFailed,
    SemanticFailed,
    ValidationFailure,
)

__all__ = [
    "AgentRunClosed",
    "AllModelsFailed",
    "AnswerRefused",
    "Cancellation",
    "CancelledSignal",
    "CancelledTimeout",
    "ConfigurationFailure",
    "ConstraintFailure",
    "ContentFilterError",
    "ContextExceeded",
    "Deferred",
    "DelegationRefused",
    "DepsError",
    "DepthLimit",
    "EngineError",
    "EnumUnrecognized",
    "FailureCategory",
    "FlyballError",
    "GrammarMalformed",
    "GrammarNotFound",
    "GrammarRejected",
    "GrammarUnsupported",
    "GrammarWithoutRoot",
    "GuardrailError",
    "IdentityInvalid",
    "IdentityNotFound",
    "IdentityStorageFailed",
    "IllegalTransition",
    "IncompleteToolCall",
    "InferenceFailure",
    "InvalidMessage",
    "InvalidRequest",
    "IterationLimit",
    "JSONInvalid",
    "JournalConflict",
    "JournalCorrupt",
    "JournalFailure",
    "JournalFull",
    "JournalTooNew",
    "JournalUnreachable",
    "KnowledgeFailed",
    "LoopDetected",
    "LoopMismatch",
    "LoopNotFound",
    "LoopTakenOver",
    "MemoryFull",
    "MiddlewareFailed",
    "MissingExtra",
    "MissingKey",
    "MissingLibrary",
    "ModelBeingFetched",
    "ModelDownloadFailed",
    "ModelFileInvalid",
    "ModelHTTPError",
    "ModelHashMismatch",
    "ModelRequestsForbidden",
    "ModelStorageFailed",
    "ModelUnavailable",
    "NoConsensus",
    "NoEngine",
    "NotPermitted",
    "OrchestrationFailure",
    "PermissionDenied",
    "PlanRejected",
    "QuotaExceeded",
    "RateExceeded",
    "Rejected",
    "RequestDropped",
    "RuleFailed",
    "RunConditionError",
    "SchemaInvalid",
    "SchemaMalformed",
    "SchemaRequired",
    "SemanticFailed",
    "SignalRefused",
    "StepFailed",
    "StepMismatch",
    "StreamRestarted",
    "SystemError",
    "TemplateError",
    "TemplateMalformed",
    "TemplateVariableMissing",
    "ToolExecutionFailed",
    "ToolFailure",
    "ToolNotFound",
    "ToolRetriesExceeded",
    "ToolTimeout",
    "ToolUnavailable",
    "UnexpectedModelBehavior",
    "UnknownAgent",
    "UnknownModel",
    "UnknownTenant",
    "UsageLimitExceeded",
    "UserError",
    "ValidationFailure",
    "WorkPutAside",
]
