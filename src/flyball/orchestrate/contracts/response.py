"""SystemResponse: what an adapter gets back, of a request that succeeded or failed."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from flyball.core.deferred import DeferredToolRequest
from flyball.core.encodable import to_json
from flyball.core.errors import SystemError  # noqa: A004 - pagantic's name for it
from flyball.core.forms.fields import Fields, entered, written
from flyball.core.messages import JSON, FinishReason
from flyball.core.usage import RunUsage
from flyball.orchestrate.contracts.reading import inner, names, one_of, reading, typed
from flyball.orchestrate.contracts.usage import read_error, read_run_usage, write_error, write_run_usage
from flyball.orchestrate.tool_record import ToolCallRecord


class ValidationResult(Struct, frozen=True, omit_defaults=True):
    """What was checked: how much passed and failed, how many repairs were made, what is still wrong.

    Of a run, answers are counted; of one answer (see `ConstraintPipeline`), the stages that looked at it.
    `violations` are those of the answer that there is; `warnings` tell what else was put right.
    """

    passed: int = 0
    failed: int = 0
    repairs: int = 0
    violations: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    extra: dict[str, Any] | None = None

    def to_json(self) -> dict[str, JSON]:
        """As JSON, with all keys."""
        known: dict[str, JSON] = {
            "passed": self.passed,
            "failed": self.failed,
            "repairs": self.repairs,
            "violations": list(self.violations),
            "warnings": list(self.warnings),
        }
        return written(known, self.extra, _VALIDATION)

    @staticmethod
    def read(fields: Fields) -> ValidationResult:
        """From JSON."""
        return ValidationResult(
            passed=fields.whole("passed") or 0,
            failed=fields.whole("failed") or 0,
            repairs=fields.whole("repairs") or 0,
            violations=names(fields, "violations"),
            warnings=names(fields, "warnings"),
            extra=fields.rest(),
        )


ValidationReport: TypeAlias = ValidationResult
"""The same by the name that it has where an answer is checked, rather than in a response."""

_VALIDATION = frozenset(ValidationResult.__struct_fields__) - {"extra"}


class SystemResponse(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The answer to a request: an output, or an error with whatever had been reached.

    `content` is the answer's text, before parsing where there is a schema; `structured_output` is what it
    was parsed to. On a failure both may hold something partial. `calls_wanted` are the calls that wait for
    their results from outside: where these are calls of the request's `caller_tools` alone, nothing has
    failed. `confidence` is between 0 and 1, and `confidence_source` says where it comes from: `voting`,
    `validation` or `retrieval`. `loop_id` is the loop in the journal; it is empty where the request was
    refused before one began.
    """

    request_id: str = ""
    session_id: str = ""
    trace_id: str = ""
    content: str = ""
    structured_output: JSON = None
    tool_calls_made: tuple[ToolCallRecord, ...] = ()
    calls_wanted: tuple[DeferredToolRequest, ...] = ()
    confidence: float | None = None
    confidence_source: str = ""
    validation_result: ValidationResult | None = None
    usage: RunUsage = field(default=RunUsage(), name="token_usage")
    error: SystemError | None = None
    loop_id: str = ""
    model: str = ""
    finish_reason: FinishReason | None = None
    extra: dict[str, Any] | None = None

    @property
    def ok(self) -> bool:
        """Whether the request succeeded."""
        return self.error is None

    @property
    def token_usage(self) -> RunUsage:
        """The name that pagantic has for the usage."""
        return self.usage

    def to_json(self) -> dict[str, JSON]:
        """As JSON: `from_json` gives the same response back."""
        result = self.validation_result
        known: dict[str, JSON] = {
            "request_id": self.request_id,
            "session_id": self.session_id,
            "trace_id": self.trace_id,
            "content": self.content,
            "structured_output": to_json(self.structured_output),
            "tool_calls_made": [_written(call) for call in self.tool_calls_made],
            "calls_wanted": [msgspec.to_builtins(call) for call in self.calls_wanted],
            "confidence": self.confidence,
            "confidence_source": self.confidence_source,
            "validation_result": None if result is None else result.to_json(),
            "token_usage": write_run_usage(self.usage),
            "error": None if self.error is None else write_error(self.error),
            "loop_id": self.loop_id,
            "model": self.model,
            "finish_reason": self.finish_reason and str(self.finish_reason),
        }
        return written(known, self.extra, frozenset(known))

    @classmethod
    def from_json(cls, document: object) -> SystemResponse:
        """A response from JSON (a dict).

        Raises:
            InvalidRequest: it is malformed; `field` names what is wrong.
        """
        with reading():
            fields = Fields(entered(document, "response"), "response")
            return cls(
                request_id=fields.text("request_id"),
                session_id=fields.text("session_id"),
                trace_id=fields.text("trace_id"),
                content=fields.text("content"),
                structured_output=fields.any("structured_output"),
                tool_calls_made=tuple([_call(*item) for item in fields.items("tool_calls_made")]),
                calls_wanted=tuple(
                    [
                        typed(value, DeferredToolRequest, where)
                        for value, where in fields.items("calls_wanted")
                    ]
                ),
                confidence=fields.number("confidence"),
                confidence_source=fields.text("confidence_source"),
                validation_result=inner(fields, "validation_result", ValidationResult.read),
                usage=inner(fields, "token_usage", read_run_usage) or RunUsage(),
                error=inner(fields, "error", read_error),
                loop_id=fields.text("loop_id"),
                model=fields.text("model"),
                finish_reason=one_of(fields, "finish_reason", FinishReason, FinishReason, None),
                extra=fields.rest(),
            )


def _written(call: ToolCallRecord) -> dict[str, JSON]:
    return written(msgspec.to_builtins(replace(call, extra=None)), call.extra, _CALL)


def _call(value: JSON, where: str) -> ToolCallRecord:
    """A tool call; keys that are unknown are kept."""
    fields = Fields(value, where)
    known = {key: held for key in _CALL if (held := fields.any(key)) is not None}
    return typed({"arguments": None, **known, "extra": fields.rest()}, ToolCallRecord, where)


_CALL = frozenset(ToolCallRecord.__struct_fields__) - {"extra"}
