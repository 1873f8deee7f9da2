"""Values that are listed, and values of any kind."""

from __future__ import annotations

from typing import Any

from flyball.constraint.grammar.arrays import array_expr
from flyball.constraint.grammar.canonical import literal
from flyball.constraint.grammar.merging import types
from flyball.constraint.grammar.numbers import number_expr
from flyball.constraint.grammar.objects import object_expr
from flyball.constraint.grammar.scope import At, Node, Scope
from flyball.constraint.grammar.strings import string_expr
from flyball.constraint.grammar.tree import Expr, Literal, choice

BOOLEAN = choice(Literal("true"), Literal("false"))
NULL = Literal("null")
_NOT_CHECKED = frozenset(
    {
        "$anchor",
        "$comment",
        "$defs",
        "$id",
        "$schema",
        "default",
        "definitions",
        "deprecated",
        "description",
        "discriminator",
        "examples",
        "readOnly",
        "title",
        "writeOnly",
    }
)


def listed_values(schema: Node, at: At, scope: Scope) -> Expr:
    """The values of `const` or `enum` that follow the rest of the schema as well."""
    keyword = "const" if "const" in schema else "enum"
    listed: list[Any] = [schema["const"]] if keyword == "const" else schema["enum"]
    rest = {key: value for key, value in schema.items() if key != keyword and key not in _NOT_CHECKED}
    if set(rest) == {"type"}:
        kept = [value for value in listed if any(is_of(value, name) for name in types(rest["type"]))]
    elif rest:
        kept = [value for value in listed if scope.accepts(rest, value)]
    else:
        kept = listed
    return scope.rule(at.name, choice(*map(literal, kept)))


def is_of(value: Any, name: str) -> bool:
    """Whether a value is of one of JSON Schema's types."""
    match name:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return not isinstance(value, bool) and (
                isinstance(value, int) or (isinstance(value, float) and value.is_integer())
            )
        case "number":
            return not isinstance(value, bool) and isinstance(value, int | float)
        case "string":
            return isinstance(value, str)
        case "array":
            return isinstance(value, list)
        case _:
            return isinstance(value, dict)


def any_value(at: At, scope: Scope) -> Expr:
    """Any JSON value; what it holds has one level less of room, and at the end holds nothing."""
    parts = [string_expr({}, at, scope), number_expr({}, at, scope), BOOLEAN, NULL]
    if at.room > 0:
        inner = At(at.path, "value", at.room - 1)
        parts += [object_expr({}, inner, scope), array_expr({}, inner, scope)]
    return scope.rule("value", choice(*parts))
