"""flyball: language-model agents with deterministic control around probabilistic inference.

What most programs need is here; the rest is in its layer (see ARCHITECTURE.md). What not every program needs
is loaded when it is first asked for, so that importing flyball stays cheap.
"""

from typing import TYPE_CHECKING, Any

from flyball.core import errors, events
from flyball.core.context import RunContext
from flyball.core.deferred import DeferredToolRequest, DeferredToolResult
from flyball.core.errors import Deferred, FlyballError
from flyball.core.events import Outcome
from flyball.core.limits import Limits, UsageLimits, UsageQuota
from flyball.core.messages import (
    Audio,
    Document,
    FinishReason,
    Image,
    Message,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    assistant,
    system,
    user,
)
from flyball.core.settings import ModelSettings
from flyball.core.signals import Signal, SignalType
from flyball.core.spec import OutputMode
from flyball.core.tools import Safety, ToolChoice, ToolDefinition
from flyball.core.usage import RunUsage, Usage
from flyball.inference.engine import Engine
from flyball.inference.request import ModelInfo, Request, Result
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.answering import send_results
from flyball.orchestrate.journal import Journal, MemoryJournal
from flyball.orchestrate.recorded import calls_waiting, pending_approvals, send_signal, snapshot_at
from flyball.orchestrate.result import RunResult
from flyball.tool.decorator import tool
from flyball.tool.errors import CallDeferred, ModelRetry
from flyball.tool.toolset import Toolset

if TYPE_CHECKING:
    from flyball.constraint.grammar import GrammarDefinition
    from flyball.constraint.validators import JSONRepairStrategy, JSONValidator, SchemaValidator
    from flyball.context.builder import ContextBuilder
    from flyball.context.chunk import Chunk
    from flyball.context.chunking.code import chunk_code
    from flyball.context.chunking.folder import load_folder
    from flyball.context.chunking.markdown import chunk_markdown
    from flyball.context.chunking.size import ChunkSize
    from flyball.context.chunking.text import chunk_text
    from flyball.context.embedding_retriever import EmbeddingRetriever
    from flyball.context.hybrid import HybridRetriever
    from flyball.context.in_memory import InMemoryRetriever
    from flyball.context.knowledge import Knowledge
    from flyball.context.knowledge_base import KnowledgeBase
    from flyball.context.policy import ContextPolicy
    from flyball.context.recall import Recall, recall
    from flyball.context.refreshing import refresh_index
    from flyball.context.retriever import Index, Retriever
    from flyball.context.sqlite_knowledge import SQLiteKnowledgeBase
    from flyball.context.sqlite_retriever import SQLiteRetriever
    from flyball.context.static import StaticKnowledgeBase
    from flyball.core.compaction import CompactionStrategy, ContextCompaction
    from flyball.core.context_provider import ContextProvider
    from flyball.core.correlation import Correlation, CorrelationContext
    from flyball.core.deps import Deps
    from flyball.core.forms.semstreams import ToolCallFilterResult, ToolCallRejection
    from flyball.core.pin import instruction_pin
    from flyball.core.snapshot import RunSnapshot
    from flyball.core.tokens import TokenEstimator, by_bytes, by_characters, by_words, estimate_tokens
    from flyball.inference.cache.engine import cached
    from flyball.inference.cache.sqlite import SQLiteCache
    from flyball.inference.cache.store import MemoryCache
    from flyball.inference.embedder import Embedder
    from flyball.inference.fallback import fallback
    from flyball.inference.hashed_embedder import HashedEmbedder
    from flyball.inference.limiting import limited
    from flyball.inference.middleware.kinds import (
        ChangeRequest,
        DualMiddleware,
        Middleware,
        RequestMiddleware,
        StreamMiddleware,
    )
    from flyball.inference.middleware.logs import Logging
    from flyball.inference.middleware.max_tokens import MaxTokens
    from flyball.inference.middleware.timing import Timing
    from flyball.inference.retry_policy import RetryPolicy
    from flyball.inference.retrying import retrying
    from flyball.inference.routing.capability import by_capability
    from flyball.inference.routing.classifier import by_classifier
    from flyball.inference.routing.model_classifier import ModelClassifier
    from flyball.inference.routing.round_robin import round_robin
    from flyball.inference.routing.threshold import by_threshold
    from flyball.memory.buffer import ConversationBuffer
    from flyball.memory.compactor import Compactor
    from flyball.memory.conversation import Conversation
    from flyball.memory.normalize import NormalizeHistory
    from flyball.memory.overflow import ContextOverflow
    from flyball.memory.policy import EvictionStrategy, MemoryPolicy
    from flyball.memory.processor import HistoryProcessor
    from flyball.memory.session import SessionState
    from flyball.memory.summaries import AutoContext, SummaryMemory
    from flyball.memory.windows import SlidingWindow, TokenBudget
    from flyball.memory.working import WorkingMemory
    from flyball.observe.bus import EventBus
    from flyball.observe.cost import CostTracker, estimate_run_cost
    from flyball.observe.cost_recorder import CostRecorder, InMemoryCostTracker, NoOpCostTracker
    from flyball.observe.event_log import EventLog, InMemoryEventLog, NoOpEventLog
    from flyball.observe.events import RunCompletedEvent, RunStartedEvent, RuntimeEvent, ToolCalledEvent
    from flyball.observe.exporters import (
        ConsoleExporter,
        JSONFileExporter,
        MultiExporter,
        TraceExporter,
        Tracing,
    )
    from flyball.observe.hooks import Hook
    from flyball.observe.metrics import InMemoryMetrics, MetricsCollector, NoOpMetrics
    from flyball.observe.observer import Observer
    from flyball.observe.pricing import ModelPricing
    from flyball.observe.run_cost import RunCost
    from flyball.observe.telemetry import OpenTelemetry
    from flyball.observe.trace import RunTrace
    from flyball.observe.tracer import InMemoryTracer, NoOpTracer, Span, TraceRecorder
    from flyball.observe.watcher import Watcher
    from flyball.orchestrate.agent_features import AgentFeatures
    from flyball.orchestrate.agent_tool import AgentTool
    from flyball.orchestrate.budget import MaxCost
    from flyball.orchestrate.constraining import ConstraintPipeline, ConstraintStage
    from flyball.orchestrate.contracts import (
        ExecutionHints,
        Mode,
        OutputContract,
        SystemRequest,
        SystemResponse,
        ValidationReport,
        ValidationResult,
    )
    from flyball.orchestrate.family import WaitingCall
    from flyball.orchestrate.flow.doing import (
        StepContext,
    )
    from flyball.orchestrate.flow.filters import (
        chain_filters,
        keep_last_n,
        strip_system_prompts,
        summarize_history,
    )
    from flyball.orchestrate.flow.handing import (
        Handoff,
        chain,
    )
    from flyball.orchestrate.flow.result import (
        FlowResult,
    )
    from flyball.orchestrate.flow.steps import (
        AgentStep,
        ConditionalStep,
        ParallelSteps,
        Pipeline,
        RedundantSteps,
        TransformStep,
    )
    from flyball.orchestrate.followed import Recorded
    from flyball.orchestrate.local import LocalRuntime
    from flyball.orchestrate.output_types import (
        GrammarOutput,
        NativeOutput,
        PromptedOutput,
        TextOutput,
        ToolOutput,
    )
    from flyball.orchestrate.patterns.agent_loop import AgentLoop, LoopConfig, LoopResult
    from flyball.orchestrate.patterns.redundant import (
        Redundancy,
        RedundantConfig,
        RedundantLoop,
        RedundantResult,
    )
    from flyball.orchestrate.patterns.specialized import SpecializedConfig, SpecializedLoop, SpecializedResult
    from flyball.orchestrate.patterns.voting import (
        MajorityVoting,
        SimilarityVoting,
        UnanimityVoting,
        VotingStrategy,
    )
    from flyball.orchestrate.plan import (
        ExecutionPlan,
        PlanBranch,
        PlanExecutor,
        PlanParallel,
        PlanPolicy,
        PlanResult,
        PlanStep,
        PlanTrace,
        StepHandler,
    )
    from flyball.orchestrate.plan.handlers import (
        agent_handler,
        infer_handler,
        pattern_handler,
        rerank_handler,
        retrieve_handler,
        tool_handler,
        validate_handler,
    )
    from flyball.orchestrate.plan.planner import ModelPlanner, Planner, StaticPlanner
    from flyball.orchestrate.reflect import ReflectResult, reflect
    from flyball.orchestrate.reranking import RerankedRetriever
    from flyball.orchestrate.runtime import Runtime
    from flyball.orchestrate.semantic import ModelSemanticValidator
    from flyball.orchestrate.service import Service
    from flyball.orchestrate.system import System
    from flyball.prompt.instruction_set import InstructionSet
    from flyball.prompt.jinja_template import JinjaTemplate
    from flyball.prompt.policy import PromptPolicy
    from flyball.prompt.provider import PromptProvider
    from flyball.prompt.system_prompt import SystemPrompt
    from flyball.prompt.template import Template
    from flyball.prompt.variables import TemplateVars
    from flyball.rerank.candidate import Candidate
    from flyball.rerank.embedding import EmbeddingScorer
    from flyball.rerank.keyword import KeywordScorer
    from flyball.rerank.model import ModelScorer
    from flyball.rerank.reranker import Reranker
    from flyball.rerank.scorer import Scorer
    from flyball.runtime.sqlite import SQLiteJournal
    from flyball.tool.ambient import AmbientContext, current_context
    from flyball.tool.mcp import MCPServer, mcp_servers
    from flyball.tool.preparing import ToolsPrepare
    from flyball.tool.stateful_tool import stateful
    from flyball.tool.timing import DefaultToolTimeout
    from flyball.tool.truncation import ToolOutputTruncation, truncate_tool_output
    from flyball.tool.validating import ToolResultValidator
    from flyball.validate.conditions import (
        And,
        MaxRunDuration,
        Or,
        ResponseContains,
        RunCondition,
        TextContains,
        ToolCallCount,
    )
    from flyball.validate.filter_chain import FilterChain, FilterPolicy, ResponseFilterChain
    from flyball.validate.filters.categories import ModerationCategory
    from flyball.validate.filters.injection import InjectionFilter, InjectionPattern
    from flyball.validate.filters.moderation import ModerationFilter
    from flyball.validate.filters.pii import PIIFilter, PIIKind
    from flyball.validate.filters.rate import Rate, RateFilter
    from flyball.validate.guardrails import (
        ContentFilter,
        InputGuardrail,
        MaxPromptLength,
        MaxTurns,
        TurnGuardrail,
    )
    from flyball.validate.interceptors import (
        AuditLog,
        InterceptResult,
        MessageInterceptor,
        ResponseInterceptor,
    )
    from flyball.validate.redaction import RedactPII
    from flyball.validate.reflection import Reflection
    from flyball.validate.repair import ModelRepair, OutputRepair, RepairStrategy
    from flyball.validate.rules import Rule, RuleValidator
    from flyball.validate.semantic import SemanticCheck, SemanticValidator, Verdict

_LATER = {
    "agent_handler": "flyball.orchestrate.plan.handlers",
    "AgentFeatures": "flyball.orchestrate.agent_features",
    "AgentLoop": "flyball.orchestrate.patterns.agent_loop",
    "AgentStep": "flyball.orchestrate.flow.steps",
    "AgentTool": "flyball.orchestrate.agent_tool",
    "AmbientContext": "flyball.tool.ambient",
    "And": "flyball.validate.conditions",
    "AuditLog": "flyball.validate.interceptors",
    "AutoContext": "flyball.memory.summaries",
    "by_bytes": "flyball.core.tokens",
    "by_capability": "flyball.inference.routing.capability",
    "by_characters": "flyball.core.tokens",
    "by_classifier": "flyball.inference.routing.classifier",
    "by_threshold": "flyball.inference.routing.threshold",
    "by_words": "flyball.core.tokens",
    "cached": "flyball.inference.cache.engine",
    "Candidate": "flyball.rerank.candidate",
    "chain": "flyball.orchestrate.flow.handing",
    "chain_filters": "flyball.orchestrate.flow.filters",
    "ChangeRequest": "flyball.inference.middleware.kinds",
    "Chunk": "flyball.context.chunk",
    "chunk_code": "flyball.context.chunking.code",
    "chunk_markdown": "flyball.context.chunking.markdown",
    "chunk_text": "flyball.context.chunking.text",
    "ChunkSize": "flyball.context.chunking.size",
    "CompactionStrategy": "flyball.core.compaction",
    "Compactor": "flyball.memory.compactor",
    "ConditionalStep": "flyball.orchestrate.flow.steps",
    "ConsoleExporter": "flyball.observe.exporters",
    "ConstraintPipeline": "flyball.orchestrate.constraining",
    "ConstraintStage": "flyball.orchestrate.constraining",
    "ContentFilter": "flyball.validate.guardrails",
    "ContextBuilder": "flyball.context.builder",
    "ContextCompaction": "flyball.core.compaction",
    "ContextOverflow": "flyball.memory.overflow",
    "ContextPolicy": "flyball.context.policy",
    "ContextProvider": "flyball.core.context_provider",
    "Conversation": "flyball.memory.conversation",
    "ConversationBuffer": "flyball.memory.buffer",
    "Correlation": "flyball.core.correlation",
    "CorrelationContext": "flyball.core.correlation",
    "CostRecorder": "flyball.observe.cost_recorder",
    "CostTracker": "flyball.observe.cost",
    "current_context": "flyball.tool.ambient",
    "DefaultToolTimeout": "flyball.tool.timing",
    "Deps": "flyball.core.deps",
    "DualMiddleware": "flyball.inference.middleware.kinds",
    "Embedder": "flyball.inference.embedder",
    "EmbeddingRetriever": "flyball.context.embedding_retriever",
    "EmbeddingScorer": "flyball.rerank.embedding",
    "estimate_run_cost": "flyball.observe.cost",
    "estimate_tokens": "flyball.core.tokens",
    "EventBus": "flyball.observe.bus",
    "EventLog": "flyball.observe.event_log",
    "EvictionStrategy": "flyball.memory.policy",
    "ExecutionHints": "flyball.orchestrate.contracts",
    "ExecutionPlan": "flyball.orchestrate.plan",
    "fallback": "flyball.inference.fallback",
    "FilterChain": "flyball.validate.filter_chain",
    "FilterPolicy": "flyball.validate.filter_chain",
    "FlowResult": "flyball.orchestrate.flow.result",
    "GrammarDefinition": "flyball.constraint.grammar",
    "GrammarOutput": "flyball.orchestrate.output_types",
    "Handoff": "flyball.orchestrate.flow.handing",
    "HashedEmbedder": "flyball.inference.hashed_embedder",
    "HistoryProcessor": "flyball.memory.processor",
    "Hook": "flyball.observe.hooks",
    "HybridRetriever": "flyball.context.hybrid",
    "Index": "flyball.context.retriever",
    "infer_handler": "flyball.orchestrate.plan.handlers",
    "InjectionFilter": "flyball.validate.filters.injection",
    "InjectionPattern": "flyball.validate.filters.injection",
    "InMemoryCostTracker": "flyball.observe.cost_recorder",
    "InMemoryEventLog": "flyball.observe.event_log",
    "InMemoryMetrics": "flyball.observe.metrics",
    "InMemoryRetriever": "flyball.context.in_memory",
    "InMemoryTracer": "flyball.observe.tracer",
    "InputGuardrail": "flyball.validate.guardrails",
    "instruction_pin": "flyball.core.pin",
    "InstructionSet": "flyball.prompt.instruction_set",
    "InterceptResult": "flyball.validate.interceptors",
    "JinjaTemplate": "flyball.prompt.jinja_template",
    "JSONFileExporter": "flyball.observe.exporters",
    "JSONRepairStrategy": "flyball.constraint.validators",
    "JSONValidator": "flyball.constraint.validators",
    "keep_last_n": "flyball.orchestrate.flow.filters",
    "KeywordScorer": "flyball.rerank.keyword",
    "Knowledge": "flyball.context.knowledge",
    "Recall": "flyball.context.recall",
    "recall": "flyball.context.recall",
    "KnowledgeBase": "flyball.context.knowledge_base",
    "limited": "flyball.inference.limiting",
    "load_folder": "flyball.context.chunking.folder",
    "LocalRuntime": "flyball.orchestrate.local",
    "Logging": "flyball.inference.middleware.logs",
    "LoopConfig": "flyball.orchestrate.patterns.agent_loop",
    "LoopResult": "flyball.orchestrate.patterns.agent_loop",
    "MajorityVoting": "flyball.orchestrate.patterns.voting",
    "MaxCost": "flyball.orchestrate.budget",
    "MaxPromptLength": "flyball.validate.guardrails",
    "MaxRunDuration": "flyball.validate.conditions",
    "MaxTokens": "flyball.inference.middleware.max_tokens",
    "MaxTurns": "flyball.validate.guardrails",
    "mcp_servers": "flyball.tool.mcp",
    "MCPServer": "flyball.tool.mcp",
    "MemoryCache": "flyball.inference.cache.store",
    "MemoryPolicy": "flyball.memory.policy",
    "MessageInterceptor": "flyball.validate.interceptors",
    "MetricsCollector": "flyball.observe.metrics",
    "Middleware": "flyball.inference.middleware.kinds",
    "Mode": "flyball.orchestrate.contracts",
    "ModelClassifier": "flyball.inference.routing.model_classifier",
    "ModelPlanner": "flyball.orchestrate.plan.planner",
    "ModelPricing": "flyball.observe.pricing",
    "ModelRepair": "flyball.validate.repair",
    "ModelScorer": "flyball.rerank.model",
    "ModelSemanticValidator": "flyball.orchestrate.semantic",
    "ModerationCategory": "flyball.validate.filters.categories",
    "ModerationFilter": "flyball.validate.filters.moderation",
    "MultiExporter": "flyball.observe.exporters",
    "NativeOutput": "flyball.orchestrate.output_types",
    "NoOpCostTracker": "flyball.observe.cost_recorder",
    "NoOpEventLog": "flyball.observe.event_log",
    "NoOpMetrics": "flyball.observe.metrics",
    "NoOpTracer": "flyball.observe.tracer",
    "NormalizeHistory": "flyball.memory.normalize",
    "Observer": "flyball.observe.observer",
    "OpenTelemetry": "flyball.observe.telemetry",
    "Or": "flyball.validate.conditions",
    "OutputContract": "flyball.orchestrate.contracts",
    "OutputRepair": "flyball.validate.repair",
    "ParallelSteps": "flyball.orchestrate.flow.steps",
    "pattern_handler": "flyball.orchestrate.plan.handlers",
    "PIIFilter": "flyball.validate.filters.pii",
    "PIIKind": "flyball.validate.filters.pii",
    "Pipeline": "flyball.orchestrate.flow.steps",
    "PlanBranch": "flyball.orchestrate.plan",
    "PlanExecutor": "flyball.orchestrate.plan",
    "Planner": "flyball.orchestrate.plan.planner",
    "PlanParallel": "flyball.orchestrate.plan",
    "PlanPolicy": "flyball.orchestrate.plan",
    "PlanResult": "flyball.orchestrate.plan",
    "PlanStep": "flyball.orchestrate.plan",
    "PlanTrace": "flyball.orchestrate.plan",
    "PromptedOutput": "flyball.orchestrate.output_types",
    "PromptPolicy": "flyball.prompt.policy",
    "PromptProvider": "flyball.prompt.provider",
    "Rate": "flyball.validate.filters.rate",
    "RateFilter": "flyball.validate.filters.rate",
    "Recorded": "flyball.orchestrate.followed",
    "RedactPII": "flyball.validate.redaction",
    "Redundancy": "flyball.orchestrate.patterns.redundant",
    "RedundantConfig": "flyball.orchestrate.patterns.redundant",
    "RedundantLoop": "flyball.orchestrate.patterns.redundant",
    "RedundantResult": "flyball.orchestrate.patterns.redundant",
    "RedundantSteps": "flyball.orchestrate.flow.steps",
    "reflect": "flyball.orchestrate.reflect",
    "Reflection": "flyball.validate.reflection",
    "ReflectResult": "flyball.orchestrate.reflect",
    "refresh_index": "flyball.context.refreshing",
    "RepairStrategy": "flyball.validate.repair",
    "RequestMiddleware": "flyball.inference.middleware.kinds",
    "rerank_handler": "flyball.orchestrate.plan.handlers",
    "RerankedRetriever": "flyball.orchestrate.reranking",
    "Reranker": "flyball.rerank.reranker",
    "ResponseContains": "flyball.validate.conditions",
    "ResponseFilterChain": "flyball.validate.filter_chain",
    "ResponseInterceptor": "flyball.validate.interceptors",
    "retrieve_handler": "flyball.orchestrate.plan.handlers",
    "Retriever": "flyball.context.retriever",
    "retrying": "flyball.inference.retrying",
    "RetryPolicy": "flyball.inference.retry_policy",
    "round_robin": "flyball.inference.routing.round_robin",
    "Rule": "flyball.validate.rules",
    "RuleValidator": "flyball.validate.rules",
    "RunCompletedEvent": "flyball.observe.events",
    "RunCondition": "flyball.validate.conditions",
    "RunCost": "flyball.observe.run_cost",
    "RunSnapshot": "flyball.core.snapshot",
    "RunStartedEvent": "flyball.observe.events",
    "Runtime": "flyball.orchestrate.runtime",
    "RuntimeEvent": "flyball.observe.events",
    "RunTrace": "flyball.observe.trace",
    "SchemaValidator": "flyball.constraint.validators",
    "Scorer": "flyball.rerank.scorer",
    "SemanticCheck": "flyball.validate.semantic",
    "SemanticValidator": "flyball.validate.semantic",
    "Service": "flyball.orchestrate.service",
    "SessionState": "flyball.memory.session",
    "SimilarityVoting": "flyball.orchestrate.patterns.voting",
    "SlidingWindow": "flyball.memory.windows",
    "Span": "flyball.observe.tracer",
    "SpecializedConfig": "flyball.orchestrate.patterns.specialized",
    "SpecializedLoop": "flyball.orchestrate.patterns.specialized",
    "SpecializedResult": "flyball.orchestrate.patterns.specialized",
    "SQLiteCache": "flyball.inference.cache.sqlite",
    "SQLiteJournal": "flyball.runtime.sqlite",
    "SQLiteKnowledgeBase": "flyball.context.sqlite_knowledge",
    "SQLiteRetriever": "flyball.context.sqlite_retriever",
    "stateful": "flyball.tool.stateful_tool",
    "StaticKnowledgeBase": "flyball.context.static",
    "StaticPlanner": "flyball.orchestrate.plan.planner",
    "StepContext": "flyball.orchestrate.flow.doing",
    "StepHandler": "flyball.orchestrate.plan",
    "StreamMiddleware": "flyball.inference.middleware.kinds",
    "strip_system_prompts": "flyball.orchestrate.flow.filters",
    "summarize_history": "flyball.orchestrate.flow.filters",
    "SummaryMemory": "flyball.memory.summaries",
    "System": "flyball.orchestrate.system",
    "SystemPrompt": "flyball.prompt.system_prompt",
    "SystemRequest": "flyball.orchestrate.contracts",
    "SystemResponse": "flyball.orchestrate.contracts",
    "Template": "flyball.prompt.template",
    "TemplateVars": "flyball.prompt.variables",
    "TextContains": "flyball.validate.conditions",
    "TextOutput": "flyball.orchestrate.output_types",
    "Timing": "flyball.inference.middleware.timing",
    "TokenBudget": "flyball.memory.windows",
    "TokenEstimator": "flyball.core.tokens",
    "tool_handler": "flyball.orchestrate.plan.handlers",
    "ToolCallCount": "flyball.validate.conditions",
    "ToolCalledEvent": "flyball.observe.events",
    "ToolCallFilterResult": "flyball.core.forms.semstreams",
    "ToolCallRejection": "flyball.core.forms.semstreams",
    "ToolOutput": "flyball.orchestrate.output_types",
    "ToolOutputTruncation": "flyball.tool.truncation",
    "ToolResultValidator": "flyball.tool.validating",
    "ToolsPrepare": "flyball.tool.preparing",
    "TraceExporter": "flyball.observe.exporters",
    "TraceRecorder": "flyball.observe.tracer",
    "Tracing": "flyball.observe.exporters",
    "TransformStep": "flyball.orchestrate.flow.steps",
    "truncate_tool_output": "flyball.tool.truncation",
    "TurnGuardrail": "flyball.validate.guardrails",
    "UnanimityVoting": "flyball.orchestrate.patterns.voting",
    "validate_handler": "flyball.orchestrate.plan.handlers",
    "ValidationReport": "flyball.orchestrate.contracts",
    "ValidationResult": "flyball.orchestrate.contracts",
    "Verdict": "flyball.validate.semantic",
    "VotingStrategy": "flyball.orchestrate.patterns.voting",
    "WaitingCall": "flyball.orchestrate.family",
    "Watcher": "flyball.observe.watcher",
    "WorkingMemory": "flyball.memory.working",
}

__all__ = [
    "Agent",
    "AgentFeatures",
    "AgentLoop",
    "AgentStep",
    "AgentTool",
    "AmbientContext",
    "And",
    "Audio",
    "AuditLog",
    "AutoContext",
    "CallDeferred",
    "Candidate",
    "ChangeRequest",
    "Chunk",
    "ChunkSize",
    "CompactionStrategy",
    "Compactor",
    "ConditionalStep",
    "ConsoleExporter",
    "ConstraintPipeline",
    "ConstraintStage",
    "ContentFilter",
    "ContextBuilder",
    "ContextCompaction",
    "ContextOverflow",
    "ContextPolicy",
    "ContextProvider",
    "Conversation",
    "ConversationBuffer",
    "Correlation",
    "CorrelationContext",
    "CostRecorder",
    "CostTracker",
    "DefaultToolTimeout",
    "Deferred",
    "DeferredToolRequest",
    "DeferredToolResult",
    "Deps",
    "Document",
    "DualMiddleware",
    "Embedder",
    "EmbeddingRetriever",
    "EmbeddingScorer",
    "Engine",
    "EventBus",
    "EventLog",
    "EvictionStrategy",
    "ExecutionHints",
    "ExecutionPlan",
    "FilterChain",
    "FilterPolicy",
    "FinishReason",
    "FlowResult",
    "FlyballError",
    "GrammarDefinition",
    "GrammarOutput",
    "Handoff",
    "HashedEmbedder",
    "HistoryProcessor",
    "Hook",
    "HybridRetriever",
    "Image",
    "InMemoryCostTracker",
    "InMemoryEventLog",
    "InMemoryMetrics",
    "InMemoryRetriever",
    "InMemoryTracer",
    "Index",
    "InjectionFilter",
    "InjectionPattern",
    "InputGuardrail",
    "InstructionSet",
    "InterceptResult",
    "JSONFileExporter",
    "JSONRepairStrategy",
    "JSONValidator",
    "JinjaTemplate",
    "Journal",
    "KeywordScorer",
    "Knowledge",
    "Recall",
    "recall",
    "KnowledgeBase",
    "Limits",
    "LocalRuntime",
    "Logging",
    "LoopConfig",
    "LoopResult",
    "MajorityVoting",
    "MaxCost",
    "MaxPromptLength",
    "MaxRunDuration",
    "MaxTokens",
    "MaxTurns",
    "mcp_servers",
    "MCPServer",
    "MemoryCache",
    "MemoryJournal",
    "MemoryPolicy",
    "Message",
    "MessageInterceptor",
    "MetricsCollector",
    "Middleware",
    "Mode",
    "ModelClassifier",
    "ModelInfo",
    "ModelPlanner",
    "ModelPricing",
    "ModelRepair",
    "ModelRetry",
    "ModelScorer",
    "ModelSemanticValidator",
    "ModelSettings",
    "ModerationCategory",
    "ModerationFilter",
    "MultiExporter",
    "NativeOutput",
    "NoOpCostTracker",
    "NoOpEventLog",
    "NoOpMetrics",
    "NoOpTracer",
    "NormalizeHistory",
    "Observer",
    "OpenTelemetry",
    "Or",
    "Outcome",
    "OutputContract",
    "OutputMode",
    "OutputRepair",
    "PIIFilter",
    "PIIKind",
    "ParallelSteps",
    "Pipeline",
    "PlanBranch",
    "PlanExecutor",
    "PlanParallel",
    "PlanPolicy",
    "PlanResult",
    "PlanStep",
    "PlanTrace",
    "Planner",
    "PromptPolicy",
    "PromptProvider",
    "PromptedOutput",
    "Rate",
    "RateFilter",
    "Recorded",
    "RedactPII",
    "Redundancy",
    "RedundantConfig",
    "RedundantLoop",
    "RedundantResult",
    "RedundantSteps",
    "ReflectResult",
    "Reflection",
    "RepairStrategy",
    "Request",
    "RequestMiddleware",
    "RerankedRetriever",
    "Reranker",
    "ResponseContains",
    "ResponseFilterChain",
    "ResponseInterceptor",
    "Result",
    "Retriever",
    "RetryPolicy",
    "Role",
    "Rule",
    "RuleValidator",
    "RunCompletedEvent",
    "RunCondition",
    "RunContext",
    "RunCost",
    "RunResult",
    "RunSnapshot",
    "RunStartedEvent",
    "RunTrace",
    "RunUsage",
    "Runtime",
    "RuntimeEvent",
    "SQLiteCache",
    "SQLiteJournal",
    "SQLiteKnowledgeBase",
    "SQLiteRetriever",
    "Safety",
    "SchemaValidator",
    "Scorer",
    "SemanticCheck",
    "SemanticValidator",
    "Service",
    "SessionState",
    "Signal",
    "SignalType",
    "SimilarityVoting",
    "SlidingWindow",
    "Span",
    "SpecializedConfig",
    "SpecializedLoop",
    "SpecializedResult",
    "StaticKnowledgeBase",
    "StaticPlanner",
    "StepContext",
    "StepHandler",
    "StreamMiddleware",
    "SummaryMemory",
    "System",
    "SystemPrompt",
    "SystemRequest",
    "SystemResponse",
    "Template",
    "TemplateVars",
    "Text",
    "TextContains",
    "TextOutput",
    "Thinking",
    "Timing",
    "TokenBudget",
    "TokenEstimator",
    "ToolCall",
    "ToolCallCount",
    "ToolCallFilterResult",
    "ToolCallRejection",
    "ToolCalledEvent",
    "ToolChoice",
    "ToolDefinition",
    "ToolOutput",
    "ToolOutputTruncation",
    "ToolResult",
    "ToolResultValidator",
    "ToolsPrepare",
    "Toolset",
    "TraceExporter",
    "TraceRecorder",
    "Tracing",
    "TransformStep",
    "TurnGuardrail",
    "UnanimityVoting",
    "Usage",
    "UsageLimits",
    "UsageQuota",
    "ValidationReport",
    "ValidationResult",
    "Verdict",
    "VotingStrategy",
    "WaitingCall",
    "Watcher",
    "WorkingMemory",
    "agent_handler",
    "assistant",
    "by_bytes",
    "by_capability",
    "by_characters",
    "by_classifier",
    "by_threshold",
    "by_words",
    "cached",
    "calls_waiting",
    "chain",
    "chain_filters",
    "chunk_code",
    "chunk_markdown",
    "chunk_text",
    "current_context",
    "errors",
    "estimate_run_cost",
    "estimate_tokens",
    "events",
    "fallback",
    "infer_handler",
    "instruction_pin",
    "keep_last_n",
    "limited",
    "load_folder",
    "pattern_handler",
    "pending_approvals",
    "reflect",
    "refresh_index",
    "rerank_handler",
    "retrieve_handler",
    "retrying",
    "round_robin",
    "send_results",
    "send_signal",
    "snapshot_at",
    "stateful",
    "strip_system_prompts",
    "summarize_history",
    "system",
    "tool",
    "tool_handler",
    "truncate_tool_output",
    "user",
    "validate_handler",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'flyball' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LATER[name]), name)
