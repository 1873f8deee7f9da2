"""Making values encodable at the boundary, so that nothing later can fail to be journaled.

What comes from tools and models passes through here once: text that UTF-8 cannot hold (lone surrogates),
numbers that JSON cannot hold (NaN, infinities), sets, bytes, dates, enums, dataclasses, structs and pydantic
values become plain JSON values. What has no such form is refused with its path, so that the tool's author
can see what to change.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

MAX_DEPTH = 128
"""How deep a value may be nested: encoders and decoders go down the stack, and all must come back."""
MAX_INT_BITS = 4096
"""How large a whole number may be: beyond it, readers refuse to turn the digits into a number."""


_SMALL = 1 << 63


class NotEncodable(TypeError):  # noqa: N818 - says what the value is
    """A value has no JSON form; the message says where and of which type it is."""


def clean_text(text: str) -> str:
    """The text with lone surrogates replaced by U+FFFD, so that UTF-8 can hold it."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        # Surrogate pairs that stand for one character are joined; the lone ones are replaced.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def to_json(value: Any, name: str = "result") -> Any:
    """The value as plain JSON: str, int, float, bool, None, list and dict with text keys.

    The outcome can always be encoded, and passing it through again changes nothing. Where two keys become
    the same text, the later one stays. `name` is what the value is called in the error.

    Raises:
        NotEncodable: it has no such form; the message names the path and the type.
    """
    kind = type(value)  # pyright: ignore[reportUnknownVariableType]
    if kind is str:
        return clean_text(value)
    if (kind is int and -_SMALL < value < _SMALL) or value is None or kind is bool:
        return value
    try:
        return _plain(value, set())
    except _Refused as refused:
        steps = refused.steps
        # The innermost steps say where it is; a path of a hundred of them says nothing more.
        path = "".join(reversed(steps[:8]))
        raise NotEncodable(f"{name}{'…' if len(steps) > 8 else ''}{path} {refused.reason}") from (
            refused.__cause__
        )
    except Exception as error:  # a mapping or an iterable of the user's runs code, and the stack may be full
        raise NotEncodable(f"{name} could not be read: {type(error).__name__}: {error}") from error


def as_text(value: Any) -> str:
    """A JSON value as a model reads it: text as it is, anything else as JSON."""
    if type(value) is str:
        return value
    return msgspec.json.encode(value).decode("utf-8")


class _Refused(Exception):  # noqa: N818 - never leaves this module
    """Why a value has no JSON form; on its way up each container adds the step that led to it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.steps: list[str] = []


def _plain(value: Any, above: set[int]) -> Any:
    kind = type(value)  # pyright: ignore[reportUnknownVariableType]
    if kind is str:
        return clean_text(value)
    if value is None or kind is bool:
        return value
    if kind is int and -_SMALL < value < _SMALL:
        return value
    if kind is float and math.isfinite(value):
        return value
    if isinstance(value, str | int | float):
        return _scalar(value)
    mark = id(value)
    if mark in above:
        raise _Refused("contains itself")
    if len(above) >= MAX_DEPTH:
        raise _Refused(f"is nested more than {MAX_DEPTH} deep: return something flatter")
    above.add(mark)
    if isinstance(value, Mapping):
        plain = _mapping(value, above)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, list | tuple):
        plain = _sequence(value, above)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, set | frozenset):
        # Sets have no order; a fixed one keeps journals comparable.
        plain = sorted(_sequence(value, above), key=_order)  # pyright: ignore[reportUnknownArgumentType]
    else:
        plain = _plain(_opened(value), above)
    above.discard(mark)
    return plain


def _scalar(value: str | int | float) -> Any:
    """A text or a number; of a subclass (an enumeration, numpy's float) only the plain value is kept."""
    from enum import Enum

    plain: Any = value.value if isinstance(value, Enum) else value
    if isinstance(plain, str):
        return clean_text(str.__str__(plain))
    if isinstance(plain, bool):
        return bool(plain)
    if isinstance(plain, int):
        if plain.bit_length() > MAX_INT_BITS:
            raise _Refused(f"is a whole number of {plain.bit_length()} bits: return it as text")
        return int.__int__(plain)
    if isinstance(plain, float):
        # JSON has no word for NaN and the infinities; a model reads the text.
        return float.__float__(plain) if math.isfinite(plain) else str(float.__float__(plain))
    raise _Refused(f"is a {type(value).__qualname__} with the value {plain!r}, which has no JSON form")


def _mapping(value: Mapping[Any, Any], above: set[int]) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    key: Any = None
    try:
        for key, item in value.items():
            plain[clean_text(key) if type(key) is str else _key(key)] = _plain(item, above)
    except _Refused as refused:
        refused.steps.append(f"[{repr(key)[:60]}]")
        raise
    return plain


def _sequence(value: Iterable[Any], above: set[int]) -> list[Any]:
    plain: list[Any] = []
    try:
        for item in value:
            plain.append(_plain(item, above))
    except _Refused as refused:
        refused.steps.append(f"[{len(plain)}]")
        raise
    return plain


def _order(plain: Any) -> bytes:
    return msgspec.json.encode(plain, order="deterministic")


def _key(key: Any) -> str:
    plain = _plain(key, set())
    return plain if isinstance(plain, str) else as_text(plain)


def _opened(value: Any) -> Any:
    """One level of a value that is no JSON type, as something that is closer to it."""
    try:
        return _opening(value)
    except (_Refused, RecursionError):
        raise
    except (
        Exception
    ) as error:  # the value's own code runs here: whatever it raises, the value has no JSON form
        raise _Refused(
            f"is a {type(value).__qualname__}, which has no JSON form: "
            "return text, numbers, lists, dicts, dataclasses or pydantic models"
        ) from error


def _opening(value: Any) -> Any:
    from dataclasses import fields, is_dataclass
    from enum import Enum
    from numbers import Integral, Real

    if isinstance(value, Enum):
        return value.value
    if isinstance(value, type):
        raise _Refused(f"is the class {value.__qualname__}: return an instance, or its name")
    if isinstance(value, bytes | bytearray | memoryview):
        return _bytes(bytes(value))  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, msgspec.Struct):
        items = msgspec.structs.asdict(value).items()
        return {name: item for name, item in items if item is not msgspec.UNSET}
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if callable(dump := getattr(value, "model_dump", None)):
        return dump(mode="python")
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, Iterable) and hasattr(value, "__len__"):  # pyright: ignore[reportUnknownArgumentType]
        return list(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return msgspec.to_builtins(value, str_keys=True)


def _bytes(raw: bytes) -> str:
    from base64 import b64encode

    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return b64encode(raw).decode("ascii")
