"""Problems (RFC 9457): what went wrong as a document, and the status that goes with each code.

4xx means that what was asked cannot be done as it was asked; 5xx that flyball, or what it stands on, is at
fault. A run that came to its end without an acceptable answer is no fault of the server's: 422.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, ClassVar

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from flyball.core.errors import (
    FailureCategory,
    FlyballError,
    InvalidRequest,
    OrchestrationFailure,
    SystemError,  # noqa: A004 - pagantic's name for it
)
from flyball.orchestrate.contracts import SystemResponse

MEDIA_TYPE = "application/problem+json"

_log = logging.getLogger("flyball.http")


class Problem(Struct, frozen=True):
    """What went wrong. `code`, `category` and `retryable` are for programs, `detail` is for people.

    `field` names the part of the request that is at fault, where there is one. `loop_id` is the loop that
    failed, if one had begun; `response` is what it had reached.
    """

    type: str
    title: str
    status: int
    detail: str
    code: str
    category: FailureCategory
    retryable: bool = False
    field: str | UnsetType = UNSET
    details: dict[str, Any] | UnsetType = UNSET
    caused_by: str | UnsetType = UNSET
    request_id: str | UnsetType = UNSET
    loop_id: str | UnsetType = UNSET
    response: Any = UNSET


class Refused(InvalidRequest):
    """A request that the API itself refuses, before the system sees it. `headers` go with the answer."""

    code = "API_REFUSED"
    status: ClassVar[int] = 400

    def __init__(self, message: str, headers: Mapping[str, str] | None = None, **details: Any) -> None:
        super().__init__(message, **details)
        self.headers = headers or {}


class Malformed(Refused):
    """The body is no JSON, or the request cannot be read."""

    code = "API_MALFORMED"


class Unauthenticated(Refused):
    """There is no token, or it is none of ours."""

    code = "API_UNAUTHENTICATED"
    status = 401


class Forbidden(Refused):
    """The token does not have the scope that this needs, or the request came from another site."""

    code = "API_FORBIDDEN"
    status = 403


class NotFound(Refused):
    """There is no such thing here, for this caller."""

    code = "API_NOT_FOUND"
    status = 404


class MethodNotAllowed(Refused):
    """The path is there, and is not asked in this way: `Allow` says in which."""

    code = "API_METHOD_NOT_ALLOWED"
    status = 405


class NotOver(Refused):
    """What is asked for is there once the loop is over."""

    code = "API_NOT_OVER"
    status = 409
    retryable = True


class Gone(Refused):
    """Who asked has gone away. Nobody is told so."""

    code = "API_GONE"
    status = 400


class TooSlow(Refused):
    """The body did not come in time."""

    code = "API_TOO_SLOW"
    status = 408


class TooLarge(Refused):
    """The body is larger than is taken here."""

    code = "API_TOO_LARGE"
    status = 413


class HeadTooLarge(Refused):
    """The request's line and headers are larger than is taken here."""

    code = "API_HEAD_TOO_LARGE"
    status = 431


class WrongMedia(Refused):
    """The body is of another type than JSON."""

    code = "API_WRONG_MEDIA_TYPE"
    status = 415


class TooMany(Refused):
    """More requests, or more at once, than are taken: `Retry-After` says when to come again."""

    code = "API_TOO_MANY"
    status = 429
    retryable = True


class ShuttingDown(Refused):
    """The server is about to end, and begins nothing new."""

    code = "API_SHUTTING_DOWN"
    status = 503
    retryable = True


_REFUSALS: dict[str, int] = {
    kind.code: kind.status
    for kind in (
        Refused, Malformed, Unauthenticated, Forbidden, NotFound, MethodNotAllowed, NotOver, TooSlow,
        TooLarge, HeadTooLarge, WrongMedia, TooMany, ShuttingDown,
    )
}  # fmt: skip

_STATUS: dict[str, int] = _REFUSALS | {
    "ORCHESTRATION_LOOP_NOT_FOUND": 404,
    "ORCHESTRATION_UNKNOWN_AGENT": 404,
    "ORCHESTRATION_NOT_PERMITTED": 403,
    "ORCHESTRATION_SIGNAL_REFUSED": 409,
    "ORCHESTRATION_ANSWER_REFUSED": 409,
    "ORCHESTRATION_DEFERRED": 409,
    "ORCHESTRATION_ILLEGAL_TRANSITION": 409,
    "ORCHESTRATION_LOOP_TAKEN_OVER": 409,
    "CONFIG_LOOP_MISMATCH": 409,
    "CANCELLED_SIGNAL": 409,
    "CANCELLED_TIMEOUT": 408,
    "VALIDATION_RATE_EXCEEDED": 429,
    # Those who serve models, and whoever keeps the journal, are behind us: it is not the caller's doing.
    "INFERENCE_ENGINE_ERROR": 502,
    "INFERENCE_MODEL_UNAVAILABLE": 503,
    "INFERENCE_MODEL_BEING_FETCHED": 503,
    "INFERENCE_MODEL_DOWNLOAD_FAILED": 503,
    "INFERENCE_MODEL_HASH_MISMATCH": 503,
    "INFERENCE_MIDDLEWARE_FAILED": 500,
    "ORCHESTRATION_JOURNAL_UNREACHABLE": 503,
    "ORCHESTRATION_JOURNAL_FAILED": 503,
    "ORCHESTRATION_JOURNAL_CONFLICT": 503,
    "ORCHESTRATION_JOURNAL_FULL": 507,
    "ORCHESTRATION_JOURNAL_CORRUPT": 500,
    "ORCHESTRATION_JOURNAL_TOO_NEW": 500,
    "ORCHESTRATION_WORK_PUT_ASIDE": 503,
    "ORCHESTRATION_RUN_CLOSED": 503,
    "ORCHESTRATION_FAILED": 500,
    "CONFIG_NO_ENGINE": 503,
    "CONFIG_MISSING_EXTRA": 503,
    "CONFIG_MISSING_LIBRARY": 503,
    "CONFIG_MISSING_KEY": 503,
    "CONFIG_PERMISSION_DENIED": 503,
    "CONFIG_UNKNOWN_TENANT": 403,
    "CONFIG_MODEL_FILE_INVALID": 503,
    "CONFIG_MODEL_STORAGE": 503,
}


_TOLD = ("loop_id", "retry_after")
"""What callers are told of a journal that fails."""
_JOURNAL = frozenset(
    (
        "ORCHESTRATION_JOURNAL_FAILED",
        "ORCHESTRATION_JOURNAL_CORRUPT",
        "ORCHESTRATION_JOURNAL_TOO_NEW",
        "ORCHESTRATION_JOURNAL_UNREACHABLE",
        "ORCHESTRATION_JOURNAL_FULL",
        "CONFIG_PERMISSION_DENIED",
    )
)
_SAID = {
    "ORCHESTRATION_JOURNAL_FULL": "there is no room for more: the quota is used up, and has to be raised",
}
"""What is told of such an error, where it is more than that."""


def status_of(error: SystemError) -> int:
    """The status of an answer that tells an error."""
    return _STATUS.get(error.code, 422)


def told_outside(error: SystemError) -> SystemError:
    """An error as callers are told of it: of a journal that fails, not where on this machine it is.

    What they are not told, the log is.
    """
    if error.code not in _JOURNAL:
        return error
    _log.warning("a request failed on the journal: %s: %s", error.code, error.message)
    message = _SAID.get(error.code, "the server's journal could not be used: its log says why")
    details = {
        key: value for key, value in (error.details or {}).items() if key in ("loop_id", "retry_after")
    }
    return replace(error, message=message, details=details or None, caused_by=None)


def problem_of(error: SystemError, request_id: str = "", response: SystemResponse | None = None) -> Problem:
    """An error as a document; `response` is that of the run which failed so, with what it had reached."""
    error = told_outside(error)
    status, details = status_of(error), dict(error.details or {})
    place = details.pop("field", None)
    reached: Any = UNSET
    if response is not None and response.loop_id:
        reached = {key: value for key, value in response.to_json().items() if key != "error"}
    return Problem(
        type=f"urn:flyball:error:{error.code}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=error.message,
        code=error.code,
        category=error.category,
        retryable=error.retryable,
        field=place if isinstance(place, str) and place else UNSET,
        details=details or UNSET,
        caused_by=error.caused_by or UNSET,
        request_id=request_id or UNSET,
        loop_id=(response.loop_id if response is not None else "") or UNSET,
        response=reached,
    )


def retry_after(details: Mapping[str, Any] | None) -> dict[str, str]:
    """The header that says when to come again, where an error's details do."""
    after = (details or {}).get("retry_after")
    if not isinstance(after, int | float) or isinstance(after, bool):
        return {}
    return {"Retry-After": str(max(1, round(after)))}


def unexpected(error: Exception) -> FlyballError:
    """What is told of an error that nobody foresaw: no more than that it happened. The log has the rest."""
    if isinstance(error, FlyballError):
        return error
    hidden = OrchestrationFailure("the server failed unexpectedly: its log says more, under the request's id")
    hidden.__suppress_context__ = True
    return hidden


def unwritten(error: msgspec.ValidationError, where: str = "") -> InvalidRequest:
    """What is wrong with a document that does not have the form that it should have."""
    text = str(error)
    message, _, path = text.partition(" - at `")
    place = path.removesuffix("`").removeprefix("$").removeprefix(".")
    field = ".".join([part for part in (where, place) if part])
    return InvalidRequest(f"{field}: {message}" if field else message, field=field)
