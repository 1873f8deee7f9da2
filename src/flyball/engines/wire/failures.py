"""What went wrong between us and a server, as errors of the taxonomy.

What a status and a body mean is a table: the vendors differ in where they say it, hardly in what they say.
Programs read `retryable` and the details: `status_code`, `body`, `model`, `provider`, `request_id`,
`retry_after` (seconds).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from math import isfinite
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec

from flyball.core.encodable import clean_text
from flyball.core.errors import (
    ContentFilterError,
    ContextExceeded,
    EngineError,
    FlyballError,
    ModelHTTPError,
    ModelUnavailable,
)

RETRYABLE = frozenset((408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529))
"""The statuses that pass by themselves; 409 is a lock that was held, 529 is Anthropic's "overloaded"."""

_MOST = 2_000
"""Characters of a body that an error keeps."""

_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|prompt is too long|maximum context length|context window"
    r"|input (?:token count|is too long|length and)|too many (?:input )?tokens in"
    r"|exceeds? the (?:available )?context|request_too_large|string_above_max_length",
    re.IGNORECASE,
)
_FILTERED = re.compile(r"content_filter|content management policy|responsibleai|usage polic", re.IGNORECASE)
_BILLING = re.compile(
    r"insufficient_quota|billing|credit balance|exceeded your current quota|payment|spend(?:ing)? limit"
    r"|hard limit",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(
    r"model_not_found|does not exist|no such model|model .{0,80}not found|not found.{0,80}model|unknown model"
    r"|not_found_error",
    re.IGNORECASE,
)
_TOLD = {"overloaded": 529, "rate_limit": 429, "RESOURCE_EXHAUSTED": 429, "api_error": 500}
_REQUEST_IDS = ("x-request-id", "request-id", "x-goog-request-id", "apim-request-id", "cf-ray")
_SECONDS = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(\d+(?:\.\d+)?)(ms|s)")


def http_failure(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    provider: str,
    model: str,
) -> FlyballError:
    """The error that a reply with an error's status means."""
    text = clean_text(body.decode("utf-8", "replace"))
    said = _message(text) or _phrase(status)
    about = f"{provider} answered {status}" + (f" for {model!r}" if model else "") + f": {said}"
    details = _details(status, headers, text, provider, model)
    return _failure(status, text, about, details)


def stream_failure(
    body: Any, *, provider: str, model: str, request_id: str | None = None, status: int = 0
) -> FlyballError:
    """The error that a server tells of in the middle of a stream, where no status can say it any more."""
    text = clean_text(body if isinstance(body, str) else msgspec.json.encode(body).decode("utf-8", "replace"))
    status = status or _told_status(text)
    details = _details(status, {}, text, provider, model)
    if request_id:
        details["request_id"] = request_id
    about = f"{provider} broke off its answer" + (f" for {model!r}" if model else "")
    return _failure(status, text, f"{about}: {_message(text) or text[:200]}", details)


def network_failure(error: BaseException, server: str, url: str) -> FlyballError:
    """The error that a connection which could not be made, or broke, means. It may be tried again."""
    parts = urlsplit(url)
    where = f"{server} at {parts.hostname}:{parts.port or {'http': 80}.get(parts.scheme, 443)}"
    said = str(error) or type(error).__name__
    if isinstance(error, TimeoutError):
        what = f"{where} took too long ({said})"
    elif type(error).__name__ in _REFUSED or isinstance(error, ConnectionRefusedError):
        what = f"{where} cannot be reached: {said}"
    else:
        what = f"the connection to {where} broke: {type(error).__name__}: {said}"
    return EngineError(what, url=url.partition("?")[0])


_REFUSED = frozenset((
    "ClientConnectorError", "ClientConnectorDNSError", "ClientProxyConnectionError",
    "ClientConnectorSSLError", "ClientConnectorCertificateError",
))  # fmt: skip


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """In how many seconds the server wants to be asked again, if its headers say so: never less than none."""
    for name, factor in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name) or headers.get(name.title())
        if value is None:
            continue
        try:
            seconds = max(float(value) * factor, 0.0)
        except ValueError:
            pass  # a date, or nothing that is known
        else:
            if isfinite(seconds):
                return seconds
            continue
        try:
            when = parsedate_to_datetime(value).timestamp()
        except (ValueError, TypeError, OverflowError):
            continue
        if now is None:
            from time import time

            now = time()
        return max(when - now, 0.0)
    return None


def request_id_of(headers: Mapping[str, str]) -> str | None:
    """What the vendor calls this request, for its support."""
    for name in _REQUEST_IDS:
        if found := headers.get(name):
            return found
    return None


def _details(status: int, headers: Mapping[str, str], text: str, provider: str, model: str) -> dict[str, Any]:
    details: dict[str, Any] = {
        "status_code": status, "body": text[:_MOST], "model": model, "provider": provider
    }  # fmt: skip
    seconds = retry_after(headers)
    if seconds is None:
        seconds = _told_seconds(text)
    if seconds is not None:
        details["retry_after"] = seconds
    if request_id := request_id_of(headers):
        details["request_id"] = request_id
    return details


def _failure(status: int, text: str, message: str, details: dict[str, Any]) -> FlyballError:
    if status in (0, 400, 413, 422, 500) and _TOO_LONG.search(text):
        return ContextExceeded(message, **details)
    if status in (0, 400, 403) and _FILTERED.search(text):
        return ContentFilterError(message, **details)
    if status == 404 or (status == 400 and _NO_MODEL.search(text)):
        return ModelUnavailable(message, **details)
    unpaid = status in (402, 429) and _BILLING.search(text) is not None and not _passes_soon(text)
    passes = status in RETRYABLE or status == 0 or (status >= 500 and status not in (501, 505))
    return ModelHTTPError(message, retryable=passes and not unpaid, **details)


def _passes_soon(text: str) -> bool:
    """Whether Google says when to ask again: it speaks of billing at every limit, also one a minute."""
    return "retryDelay" in text and "PerDay" not in text


def _message(text: str) -> str:
    """What the server says in words, wherever in its body it does."""
    try:
        found: Any = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return " ".join(text.split())[:300]
    if isinstance(found, list) and found:
        found = cast("list[Any]", found)[0]
    for key in ("error", "detail", "message", "msg"):
        if isinstance(found, dict) and key in found:
            found = cast("dict[str, Any]", found)[key]
    return (found if isinstance(found, str) else msgspec.json.encode(found).decode())[:500]


def _told_status(text: str) -> int:
    """The status that an error in a stream stands for."""
    return next((status for name, status in _TOLD.items() if name in text), 0)


def _told_seconds(text: str) -> float | None:
    """How long Google (`retryDelay`) and OpenAI ("try again in 1m2.5s") want to be left alone."""
    at = text.find("retryDelay")
    if at < 0:
        at = text.find("try again in ")
    found = _SECONDS.search(text, at, at + 60) if at >= 0 else None
    if found is None:
        return None
    hours, minutes, number, unit = found.groups()
    whole = 3600.0 * int(hours or 0) + 60.0 * int(minutes or 0)
    return whole + float(number) * (0.001 if unit == "ms" else 1.0)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "no reason was given"
