"""What is refused, or has failed, in OpenAI's shape: `{"error": {message, type, param, code}}` and a status.

The official client makes an exception of the status: 400 BadRequestError, 401 AuthenticationError, 403
PermissionDeniedError, 404 NotFoundError, 409 ConflictError, 422 UnprocessableEntityError, 429
RateLimitError, 5xx InternalServerError. It tries some of them again by itself: the header `x-should-retry`
says whether that helps.

    400               the request cannot be: a field, a schema; too long; refused by a guardrail
    404               there is no such agent, no such response
    409               the loop is another one, was taken over, was cancelled, or waits for somebody else
    422               the model gave no answer that follows what was asked for
    429               a rate limit, a provider's or your own, a quota
    502, 503, 504     a model failed or could not be reached; the journal could not be used; the time was up
    500               anything else
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

from flyball.adapters.http.problems import told_outside
from flyball.core.errors import FlyballError, SystemError  # noqa: A004 - pagantic's name for it

INVALID = "invalid_request_error"
SERVER = "server_error"


class Refused(Exception):  # noqa: N818 - it is told, and not always an error of ours
    """A request that is not served, or failed: what the client is told.

    `param` is the field that stands in the way, by OpenAI's name; `headers` go with the status.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        kind: str = INVALID,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.kind = kind
        self.param = param
        self.code = code
        self.headers: Mapping[str, str] = headers or {}

    @property
    def document(self) -> dict[str, Any]:
        """The body of the answer."""
        told = {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}
        return {"error": told}


def unsupported(param: str, why: str) -> Refused:
    """The refusal of a field that asks for what cannot be done here."""
    return Refused(f"{param}: {why}", param=param, code="unsupported_parameter")


def no_model(name: str) -> Refused:
    """The refusal of a model that there is not."""
    return Refused(
        f"The model {name!r} does not exist: see /v1/models for those that do.",
        status=404,
        param="model",
        code="model_not_found",
    )


def no_response(response_id: str) -> Refused:
    """The refusal of a response that is not recorded."""
    return Refused(f"There is no response {response_id!r}.", status=404, param="response_id")


def unauthorized(message: str = "A valid API key is needed.") -> Refused:
    """The refusal of somebody whose key is missing or unknown."""
    return Refused(message, status=401, kind="authentication_error", code="invalid_api_key")


def forbidden(message: str = "This key may not do that.") -> Refused:
    """The refusal of somebody whose key is known, and not for this."""
    return Refused(message, status=403, kind="permission_error", code="insufficient_permissions")


def refused_by(error: SystemError | Exception, param: Callable[[str], str] = lambda name: name) -> Refused:
    """What a client is told of a failure; `param` gives OpenAI's name for a field of a SystemRequest."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, FlyballError):
        error = error.record()
    if not isinstance(error, SystemError):
        return Refused("The server failed unexpectedly.", status=500, kind=SERVER)
    error = told_outside(error)
    details = error.details or {}
    status, code = _status(error, details)
    field = details.get("field")
    headers = {"x-should-retry": "true" if error.retryable and status >= 409 else "false"}
    if isinstance(after := details.get("retry_after"), int | float) and not isinstance(after, bool):
        headers["retry-after"] = f"{max(0.0, after):g}"
    return Refused(
        error.message,
        status=status,
        kind=INVALID if status < 429 else "rate_limit_error" if status == 429 else SERVER,
        param=param(field) if isinstance(field, str) and field and status == 400 else None,
        code=code or error.code,
        headers=headers,
    )


@contextmanager
def refusing(param: Callable[[str], str]) -> Generator[None]:
    """Within this block a failure of ours is `Refused`, by OpenAI's names for the fields of a request."""
    try:
        yield
    except FlyballError as error:
        raise refused_by(error, param) from error


def _status(error: SystemError, details: Mapping[str, Any]) -> tuple[int, str]:
    """The status of a failure, and OpenAI's code for it if it has one."""
    if error.code in _BY_CODE:
        return _BY_CODE[error.code]
    if error.kind in _BY_KIND:
        return _BY_KIND[error.kind]
    if error.code.startswith("INFERENCE_"):
        if details.get("status_code") == 429:
            return 429, "rate_limit_exceeded"
        return (503 if error.retryable else 502), ""
    area = error.code.partition("_")[0]
    return _BY_AREA.get(area, 500), ""


_BY_CODE: Mapping[str, tuple[int, str]] = {
    "INFERENCE_MALFORMED_RESPONSE": (422, ""),
    "CONFIG_INVALID_REQUEST": (400, ""),
    "CONFIG_INVALID_MESSAGE": (400, ""),
    "CONFIG_SCHEMA_REQUIRED": (400, ""),
    "CONFIG_SCHEMA_MALFORMED": (400, "invalid_json_schema"),
    "CONFIG_GRAMMAR_MALFORMED": (400, ""),
    "CONFIG_GRAMMAR_NO_ROOT": (400, ""),
    "CONFIG_LOOP_MISMATCH": (409, ""),
    "ORCHESTRATION_NOT_PERMITTED": (403, ""),
    "CONSTRAINT_GRAMMAR_UNSUPPORTED": (400, ""),
    "INFERENCE_CONTEXT_EXCEEDED": (400, "context_length_exceeded"),
    "ORCHESTRATION_LOOP_NOT_FOUND": (404, ""),
    "ORCHESTRATION_UNKNOWN_AGENT": (404, "model_not_found"),
    "ORCHESTRATION_ANSWER_REFUSED": (400, ""),
    "ORCHESTRATION_DEFERRED": (409, ""),
    "ORCHESTRATION_JOURNAL_CONFLICT": (409, ""),
    "ORCHESTRATION_LOOP_TAKEN_OVER": (409, ""),
    "ORCHESTRATION_JOURNAL_FAILED": (503, ""),
    "ORCHESTRATION_JOURNAL_UNREACHABLE": (503, ""),
    "ORCHESTRATION_QUOTA_EXCEEDED": (429, "insufficient_quota"),
    "VALIDATION_RATE_EXCEEDED": (429, "rate_limit_exceeded"),
    "CANCELLED_TIMEOUT": (504, ""),
    "CANCELLED_SIGNAL": (409, ""),
}
_BY_KIND: Mapping[str, tuple[int, str]] = {
    "GuardrailError": (400, "content_policy_violation"),
    "ContentFilterError": (400, "content_filter"),
}
_BY_AREA: Mapping[str, int] = {"CONSTRAINT": 422, "VALIDATION": 422}
