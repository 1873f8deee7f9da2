"""From what a tool gave back to a ToolResult that can be journaled and read by a model.

What has no JSON form, or is too large, becomes an error that says so: the model and the tool's author can
both act on it. Images are set apart, since models take them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from flyball.core.encodable import NotEncodable, clean_text, to_json
from flyball.core.errors import ToolExecutionFailed, ToolFailure
from flyball.core.messages import Image, ResultKind, ToolCall, ToolResult
from flyball.tool.errors import CallDeferred, CallDenied, ModelRetry
from flyball.tool.feedback import capped

_MAX_ERROR = 4_000
_encode = msgspec.json.Encoder().encode


class _TooLarge(Exception):  # noqa: N818 - never leaves this module
    """A result over the limit; the message says its size."""


def result_of(call: ToolCall, value: object, max_bytes: int) -> ToolResult:
    """The result of a call that gave back `value`. Never raises."""
    kind = type(value)
    if kind is str and len(value) <= max_bytes >> 2:  # pyright: ignore[reportArgumentType] # it is a str
        # No character takes more than four bytes: there is nothing to measure.
        return ToolResult(call.id, call.name, clean_text(value))  # pyright: ignore[reportArgumentType]
    try:
        if kind is int or value is None or kind is bool or kind is float:
            return ToolResult(call.id, call.name, to_json(value))
        if kind is ToolResult:
            return _passed(call, cast("ToolResult", value), max_bytes)
        if kind is Image or _has_images(value):
            return _with_images(call, value, max_bytes)
        return ToolResult(call.id, call.name, _fitting(value, max_bytes))
    except (NotEncodable, _TooLarge) as error:
        return failure(call, str(error), ToolExecutionFailed.code)
    except Exception as error:
        # The value's own code ran (a subclass of list, a struct with fields of the wrong type), and failed.
        return failure(call, f"the result cannot be read: {describe(error)}", ToolExecutionFailed.code)


def retry_of(call: ToolCall, retry: ModelRetry, max_bytes: int) -> ToolResult:
    """The result of a call that the model should make again."""
    text = capped(clean_text(_message(retry)), max_bytes >> 2)
    return ToolResult(call.id, call.name, text, None, ResultKind.RETRY)


def deferred_of(call: ToolCall, deferral: CallDeferred, max_bytes: int) -> ToolResult:
    """What is recorded of a call whose result comes later, from outside."""
    text = capped(clean_text(_message(deferral)), max_bytes >> 2)
    return ToolResult(call.id, call.name, text, None, ResultKind.DEFERRED)


def denied_of(call: ToolCall, denial: CallDenied) -> ToolResult:
    """The result of a call that may not run."""
    error = capped(f"The call was not allowed: {clean_text(denial.reason)}", _MAX_ERROR)
    return ToolResult(call.id, call.name, error=error, status=ResultKind.DENIED)


def failure(call: ToolCall, text: str, code: str) -> ToolResult:
    """The result of a call that failed: what the model reads, and the code for programs."""
    error = capped(clean_text(text), _MAX_ERROR)
    return ToolResult(call.id, call.name, error=error, metadata={"code": code})


def describe(error: BaseException) -> str:
    """An exception as a model reads it: its type and its message, and those inside a group."""
    kind = type(error).__name__
    if isinstance(error, BaseExceptionGroup):
        inside: Sequence[BaseException] = cast("Any", error).exceptions
        return f"{kind}: {'; '.join([describe(inner) for inner in inside])}"
    message = _message(error)
    return f"{kind}: {message}" if message else kind


def code_of(error: BaseException) -> str:
    """The stable code of an exception that a tool raised."""
    return error.code if isinstance(error, ToolFailure) else ToolExecutionFailed.code


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "its message cannot be read"


def _passed(call: ToolCall, given: ToolResult, max_bytes: int) -> ToolResult:
    """A result that the tool made itself; it answers this call and no other."""
    made = replace(
        given,
        call_id=call.id,
        name=call.name,
        content=_fitting(given.content, max_bytes, _weight(given.images)),
        error=None if given.error is None else capped(clean_text(given.error), _MAX_ERROR),
        images=_clean(given.images),
        metadata=to_json(given.metadata, "metadata"),
        extra=to_json(given.extra, "extra"),
    )
    # Nobody checked the fields' types; what can be written now can be written later.
    _encode(made)
    return made


def _has_images(value: object) -> bool:
    return isinstance(value, list | tuple) and any(
        type(item) is Image for item in cast("Sequence[object]", value)
    )


def _with_images(call: ToolCall, value: object, max_bytes: int) -> ToolResult:
    items = cast("Sequence[object]", value) if isinstance(value, list | tuple) else (value,)
    images = tuple([item for item in items if isinstance(item, Image)])
    others = [item for item in items if not isinstance(item, Image)]
    said: object = others[0] if len(others) == 1 else others
    if not others:
        # Some providers refuse a result without text.
        said = "1 image" if len(images) == 1 else f"{len(images)} images"
    content = _fitting(said, max_bytes, _weight(images))
    return ToolResult(call.id, call.name, content, images=_clean(images))


def _weight(images: Sequence[Image]) -> int:
    return sum([len(image.url) for image in images])


def _clean(images: Sequence[Image]) -> tuple[Image, ...]:
    return tuple([replace(image, url=clean_text(image.url), extra=to_json(image.extra)) for image in images])


def _fitting(value: object, max_bytes: int, beside: int = 0) -> Any:
    """The value as JSON that, with the bytes that stand beside it, is not larger than allowed.

    Raises:
        NotEncodable: it has no JSON form.
        _TooLarge: it is larger.
    """
    if isinstance(value, list | tuple | dict):
        # What is far too large is noticed at C's speed, before anything is copied.
        rough = _roughly(cast("object", value))
        if rough > 2 * max_bytes:
            raise _too_large(rough, max_bytes)
    plain = to_json(value)
    if type(plain) is str:
        size = len(plain) if plain.isascii() else len(plain.encode("utf-8"))
    else:
        size = len(_encode(plain))
    if size + beside > max_bytes:
        raise _too_large(size + beside, max_bytes)
    return plain


def _roughly(value: object) -> int:
    try:
        return len(_encode(value))
    except Exception:
        return 0  # It must be made plain first, and is measured then.


def _too_large(size: int, max_bytes: int) -> _TooLarge:
    return _TooLarge(
        f"the result has {size:,} bytes, more than the {max_bytes:,} allowed: ask for a part of it"
    )
