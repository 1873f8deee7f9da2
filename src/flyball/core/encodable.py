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

_PLAIN = (str, int, bool, type(None))


class NotEncodable(TypeError):
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


def to_json(value: Any) -> Any:
    """The value as plain JSON: str, int, float, bool, None, list and dict with text keys.

    Raises:
        NotEncodable: it has no such form; the message names the path and the type.
    """
    if type(value) is str:
        return clean_text(value)
    if value is None or type(value) in (int, bool):
        return value
    return _plain(value, "result", frozenset())


def as_text(value: Any) -> str:
    """A JSON value as a model reads it: text as it is, anything else as JSON."""
    if type(value) is str:
        return value
    return msgspec.json.encode(value).decode("utf-8")


def _plain(value: Any, path: str, above: frozenset[int]) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clean_text(str(value.value) if _is_enum(value) else str(value))
    if isinstance(value, int):
        return value.value if _is_enum(value) else int(value)
    if isinstance(value, float):
        # JSON has no word for these; a model reads the text.
        return float(value) if math.isfinite(value) else str(float(value))
    if id(value) in above:
        raise NotEncodable(f"{path} contains itself")
    above |= {id(value)}
    if isinstance(value, Mapping):
        items: Iterable[tuple[Any, Any]] = value.items()  # pyright: ignore[reportUnknownVariableType]
        return {_key(key, path): _plain(item, f"{path}[{key!r}]", above) for key, item in items}
    if isinstance(value, list | tuple):
        sequence: Iterable[Any] = value  # pyright: ignore[reportUnknownVariableType]
        return [_plain(item, f"{path}[{n}]", above) for n, item in enumerate(sequence)]
    if isinstance(value, set | frozenset):
        members: Iterable[Any] = value  # pyright: ignore[reportUnknownVariableType]
        # Sets have no order; a fixed one keeps journals comparable.
        return sorted((_plain(item, f"{path}{{}}", above) for item in members), key=as_text)
    return _plain(_opened(value, path), path, above)


def _is_enum(value: Any) -> bool:
    from enum import Enum

    return isinstance(value, Enum)


def _key(key: Any, path: str) -> str:
    if isinstance(key, str):
        return clean_text(str(key))
    if key is None or isinstance(key, int | float):
        return as_text(key)
    plain = _plain(key, f"{path} key", frozenset())
    return plain if isinstance(plain, str) else as_text(plain)


def _opened(value: Any, path: str) -> Any:
    """One level of a value that is no JSON type, as something that is closer to it."""
    from base64 import b64encode
    from dataclasses import fields, is_dataclass
    from enum import Enum

    if isinstance(value, Enum):
        return value.value
    if isinstance(value, bytes | bytearray | memoryview):
        raw = bytes(value)
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            return b64encode(raw).decode("ascii")
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="python")
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.asdict(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Iterable) and not isinstance(value, type) and hasattr(value, "__len__"):
        return list(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    try:
        return msgspec.to_builtins(value, str_keys=True)
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise NotEncodable(
            f"{path} is a {type(value).__qualname__}, which has no JSON form: "
            "return text, numbers, lists, dicts, dataclasses or pydantic models"
        ) from error
