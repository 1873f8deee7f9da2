"""What goes wrong with the content of inputs and outputs."""

# ruff: noqa: N818 - the categories and many of the errors bear pagantic's and gollem's names

from __future__ import annotations

from flyball.core.errors.root import FailureCategory, FlyballError


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
