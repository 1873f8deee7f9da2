"""What goes wrong with engines and models."""

# ruff: noqa: N818 - the categories and many of the errors bear pagantic's and gollem's names

from __future__ import annotations

from flyball.core.errors.root import FailureCategory, FlyballError


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
