"""What may stand behind a bar: filters that work on what they are given, and whose work is counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, TypeAlias, cast

import msgspec
from jinja2 import pass_context
from jinja2.runtime import Context, Undefined

from flyball.core.errors import TemplateError
from flyball.prompt.jinja.budget import Budget, budget_of, size

WIDEST = 100
"""By how many characters a text may be indented."""


def as_text(value: Any) -> str:
    """A value as it is put into the text.

    Raises:
        TemplateError: it is no text, and has none of its own.
    """
    kind: Any = type(value)  # pyright: ignore[reportUnknownVariableType]
    if kind is str:
        return value
    if value is None:
        return ""
    if isinstance(value, Undefined):
        return str(value)  # which says what is missing
    if isinstance(value, Mapping | Set) or (isinstance(value, Sequence) and not isinstance(value, str)):
        raise TemplateError(
            f"a {kind.__name__} is no text: name a field of it, or go through it by for or join"
        )
    if kind.__str__ is object.__str__ and not isinstance(value, int | float):
        raise TemplateError(f"a {kind.__name__} has no text of its own: give text")
    return str(value)


def items_of(value: Any) -> list[Any]:
    """What a loop goes through: the items of a list, the keys of a mapping.

    Raises:
        TemplateError: it is neither.
    """
    if isinstance(value, str | bytes) or not isinstance(value, Sequence | Mapping | Set | range):
        kind: Any = type(value)  # pyright: ignore[reportUnknownVariableType]
        raise TemplateError(f"a {kind.__name__} cannot be gone through: for takes a list or a mapping")
    return list(cast("Iterable[Any]", value))


def joined(budget: Budget, pieces: Iterable[Any], between: str = "") -> str:
    """Pieces in a row, once there are steps enough for them."""
    texts = [as_text(piece) for piece in pieces]
    budget.spend(sum(map(len, texts)) + len(between) * len(texts))
    return between.join(texts)


def _join(budget: Budget, value: Any, between: str = "") -> str:
    return joined(budget, items_of(value), as_text(between))


def _replace(budget: Budget, value: Any, old: str, new: str) -> str:
    text, old, new = as_text(value), as_text(old), as_text(new)
    budget.spend(len(text) + text.count(old) * len(new))
    return text.replace(old, new)


def _indent(budget: Budget, value: Any, width: int = 4, first: bool = False) -> str:
    text = as_text(value)
    if type(width) is not int or not 0 <= width <= WIDEST:
        raise TemplateError(f"indent takes a width from 0 to {WIDEST}, not {width!r:.50}")
    budget.spend(len(text) + width * (text.count("\n") + 1))
    return (" " * width if first else "") + text.replace("\n", "\n" + " " * width)


def _default(budget: Budget, value: Any, otherwise: Any = "", boolean: bool = False) -> Any:
    return otherwise if isinstance(value, Undefined) or (boolean and not value) else value


def _truncate(budget: Budget, value: Any, length: int = 255, end: str = "…") -> str:
    text = as_text(value)
    return text if len(text) <= length else text[: max(length, 0)] + as_text(end)


def _json(budget: Budget, value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        raise TemplateError(f"a {type(value).__name__} has no JSON form: {error}") from error


def _ordered(budget: Budget, value: Any, reverse: bool = False) -> list[Any]:
    items = items_of(value)
    budget.spend(len(items) * max(len(items), 1).bit_length())
    return sorted(items, reverse=bool(reverse))


def _unique(budget: Budget, value: Any) -> list[Any]:
    return list(dict.fromkeys(items_of(value)))


def _reversed(budget: Budget, value: Any) -> Any:
    return value[::-1] if isinstance(value, str) else items_of(value)[::-1]


Filter: TypeAlias = Callable[[Budget, Any], Any]


def _of_number(function: Callable[[Any], Any]) -> Filter:
    def filtered(_: Budget, value: Any) -> Any:
        return function(value)

    return filtered


def _of_text(function: Callable[[str], Any]) -> Filter:
    def filtered(_: Budget, value: Any) -> Any:
        return function(as_text(value))

    return filtered


def _of_items(function: Callable[[list[Any]], Any]) -> Filter:
    def filtered(_: Budget, value: Any) -> Any:
        return function(items_of(value))

    return filtered


def _round(_: Budget, value: float, digits: int = 0) -> float:
    return round(value, digits)


def _words(text: str) -> int:
    return len(text.split())


def _first(items: list[Any]) -> Any:
    return items[0] if items else None


def _last(items: list[Any]) -> Any:
    return items[-1] if items else None


def _most(items: list[Any]) -> Any:
    return max(items)


def _least(items: list[Any]) -> Any:
    return min(items)


def _total(items: list[Any]) -> Any:
    return sum(items)


def _same(items: list[Any]) -> list[Any]:
    return items


def _pairs(_: Budget, value: Any) -> list[tuple[Any, Any]]:
    if not isinstance(value, Mapping):
        raise TemplateError(f"items is for mappings, not for a {type(value).__name__}")
    return list(cast("Mapping[Any, Any]", value).items())


def _length(_: Budget, value: Any) -> int:
    return len(value)


def _counted(function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter whose work is counted: what it is given, and what it gives."""

    @pass_context
    def filtered(context: Context, value: Any, *args: Any, **options: Any) -> Any:
        budget = budget_of(context)
        budget.spend(size(value))
        result = function(budget, value, *args, **options)
        budget.spend(size(result))
        return result

    return filtered


_KNOWN: dict[str, Callable[..., Any]] = {
    "abs": _of_number(abs),
    "capitalize": _of_text(str.capitalize),
    "count": _length,
    "d": _default,
    "default": _default,
    "first": _of_items(_first),
    "float": _of_number(float),
    "indent": _indent,
    "int": _of_number(int),
    "items": _pairs,
    "join": _join,
    "last": _of_items(_last),
    "length": _length,
    "list": _of_items(_same),
    "lower": _of_text(str.lower),
    "max": _of_items(_most),
    "min": _of_items(_least),
    "replace": _replace,
    "reverse": _reversed,
    "round": _round,
    "sort": _ordered,
    "string": _of_text(str),
    "sum": _of_items(_total),
    "title": _of_text(str.title),
    "tojson": _json,
    "trim": _of_text(str.strip),
    "truncate": _truncate,
    "unique": _unique,
    "upper": _of_text(str.upper),
    "wordcount": _of_text(_words),
}
FILTERS: dict[str, Callable[..., Any]] = {name: _counted(function) for name, function in _KNOWN.items()}
"""The filters that templates know."""
