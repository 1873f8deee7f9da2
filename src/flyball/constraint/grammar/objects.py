"""Objects: their keys in the schema's order, the optional ones left out or not, undeclared ones last."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

from msgspec import Struct

from flyball.constraint.grammar.automaton import matches
from flyball.constraint.grammar.canonical import COMMA, literal
from flyball.constraint.grammar.keys import other_key
from flyball.constraint.grammar.pattern import PatternError, pattern_tree
from flyball.constraint.grammar.scope import At, Node, Scope
from flyball.constraint.grammar.strings import string_expr
from flyball.constraint.grammar.tree import EMPTY, NOTHING, Expr, Literal, choice, optional, repeat, sequence

COLON = Literal(": ")


class Member(Struct, frozen=True):
    """A key with its value, and whether it has to be there."""

    expr: Expr
    required: bool


def object_expr(schema: Node, at: At, scope: Scope) -> Expr:
    """The objects that follow the schema."""
    named = cast("dict[str, Any]", schema.get("properties", {}))
    required = cast("list[str]", schema.get("required", []))
    undeclared = [name for name in required if name not in named]
    members = [
        Member(_member(name, inner, at.into("properties", name, name=name), scope), name in required)
        for name, inner in named.items()
    ]
    if undeclared:
        others = _declared_by_need(schema, undeclared, at, scope)
        members += [Member(other, required=True) for other in others]
    if any(member.required and member.expr == NOTHING for member in members):
        return NOTHING
    members = [member for member in members if member.expr != NOTHING]
    extra = _extra(schema, (*named, *undeclared), at, scope)
    low, high = int(schema.get("minProperties", 0)), schema.get("maxProperties")
    needed = sum(member.required for member in members)
    if high is not None and needed > high:
        return NOTHING
    most_extra = scope.bounds.max_properties if extra != NOTHING else 0
    plain = low <= needed and (high is None or len(members) + most_extra <= high)
    body = (
        _body(members, extra, most_extra, at, scope) if plain else _counted(members, extra, schema, at, scope)
    )
    return scope.rule(at.name, sequence(Literal("{"), body, Literal("}")))


def _member(name: str, schema: Any, at: At, scope: Scope) -> Expr:
    value = scope.compile(schema, at)
    return sequence(literal(name), COLON, value)


def _declared_by_need(schema: Node, names: list[str], at: At, scope: Scope) -> list[Expr]:
    """Keys that have to be there and are not described: what holds for undeclared keys holds for them."""
    if schema.get("patternProperties"):
        raise at.refuse("required", f"{names[0]!r} is not among the properties, and patterns may describe it")
    if "propertyNames" in schema:
        raise at.refuse("propertyNames", f"{names[0]!r} is required and not among the properties")
    inner = schema.get("additionalProperties", True)
    where = at.into("additionalProperties")
    return [_member(name, inner, where, scope) for name in names]


def _extra(schema: Node, names: tuple[str, ...], at: At, scope: Scope) -> Expr:
    """A member with a key that the schema does not name; nothing where there may be none."""
    by_pattern = cast("dict[str, Any]", schema.get("patternProperties", {}))
    listed = "properties" in schema or bool(by_pattern)
    inner = schema.get("additionalProperties", scope.bounds.undeclared or not listed)
    if by_pattern:
        return _by_pattern(by_pattern, inner, names, at, scope)
    if inner is False:
        return NOTHING
    value = scope.compile(inner, at.into("additionalProperties", name=f"{at.name}-value"))
    if value == NOTHING:
        return NOTHING
    if "propertyNames" in schema:
        key = _key_by_schema(schema["propertyNames"], names, at, scope)
    else:
        key = other_key(names, scope)
    return scope.rule(f"{at.name}-other", sequence(key, COLON, value))


def _by_pattern(by_pattern: dict[str, Any], inner: Any, names: tuple[str, ...], at: At, scope: Scope) -> Expr:
    where = at.into("patternProperties")
    if len(by_pattern) > 1:
        raise at.refuse("patternProperties", "a key may match several patterns at once; keep one of them")
    if inner is not False and (inner is not True or scope.bounds.undeclared):
        raise at.refuse(
            "patternProperties", 'other keys could match the pattern too; say "additionalProperties": false'
        )
    pattern, value_schema = next(iter(by_pattern.items()))
    try:
        tree = pattern_tree(pattern)
    except PatternError as error:
        raise at.refuse("patternProperties", f"in {pattern!r}, {error}") from error
    taken = [name for name in names if matches(tree, name)]
    if taken:
        raise at.refuse("patternProperties", f"the property {taken[0]!r} matches {pattern!r} as well")
    value = scope.compile(value_schema, where.into(pattern, name=f"{at.name}-value"))
    key = string_expr({"pattern": pattern}, where, scope, most=scope.bounds.max_key)
    return scope.rule(f"{at.name}-other", sequence(key, COLON, value))


def _key_by_schema(schema: Any, names: tuple[str, ...], at: At, scope: Scope) -> Expr:
    if names:
        raise at.refuse("propertyNames", "it also holds for the properties that are listed; leave it out")
    where = at.into("propertyNames", name="key")
    if not isinstance(schema, dict):
        return scope.compile(schema and {"type": "string", "maxLength": scope.bounds.max_key}, where)
    given = {"type": "string", **cast("dict[str, Any]", schema)}
    if not {"maxLength", "pattern", "format", "enum", "const", "$ref"} & given.keys():
        given["maxLength"] = max(scope.bounds.max_key, int(given.get("minLength", 0)))
    return scope.compile(given, where)


def _body(members: list[Member], extra: Expr, most_extra: int, at: At, scope: Scope) -> Expr:
    """The members with commas between them: behind those before the first required one, then in front."""
    first = next((n for n, member in enumerate(members) if member.required), None)
    if first is None:
        return _all_optional(members, extra, most_extra, at, scope)
    parts: list[Expr] = []
    for n, member in enumerate(members):
        if n < first:
            parts.append(optional(sequence(member.expr, COMMA)))
        elif n == first:
            parts.append(member.expr)
        else:
            led = sequence(COMMA, member.expr)
            parts.append(led if member.required else optional(led))
    return sequence(*parts, repeat(sequence(COMMA, extra), 0, most_extra))


def _all_optional(members: list[Member], extra: Expr, most_extra: int, at: At, scope: Scope) -> Expr:
    """Each member may be the first; what may follow it is a rule that they share."""
    followed: Expr = repeat(sequence(COMMA, extra), 0, most_extra)
    options: list[Expr] = []
    if most_extra:
        options.append(sequence(extra, repeat(sequence(COMMA, extra), 0, most_extra - 1)))
    for n in range(len(members) - 1, -1, -1):
        member = scope.rule(f"{at.name}-part", members[n].expr)
        options.append(sequence(member, followed))
        if n:
            followed = scope.rule(f"{at.name}-rest", sequence(optional(sequence(COMMA, member)), followed))
    return optional(choice(*reversed(options)))


def _counted(members: list[Member], extra: Expr, schema: Node, at: At, scope: Scope) -> Expr:
    """The members where their number counts: undeclared ones count for one key at least, at most for each."""
    low, limit = int(schema.get("minProperties", 0)), schema.get("maxProperties")
    limit = None if limit is None else int(limit)
    most_extra = scope.bounds.max_properties if extra != NOTHING else 0

    @cache
    def rest(n: int, count: int) -> Expr:
        lead = COMMA if count else EMPTY
        left = most_extra if limit is None else min(most_extra, limit - count)
        if n == len(members):
            if count >= low:
                return _others(extra, 0, left, lead)
            if count == low - 1 and left >= 1:  # two keys that are not named might be the same
                return _others(extra, 1, left, lead)
            if left > 1:
                raise at.refuse(
                    "minProperties", "keys that the schema does not name may come twice; list them"
                )
            return NOTHING
        member = members[n]
        full = limit is not None and count >= limit
        taken = NOTHING if full else sequence(lead, member.expr, rest(n + 1, count + 1))
        skipped = NOTHING if member.required else rest(n + 1, count)
        return scope.rule(f"{at.name}-rest", choice(taken, skipped))

    return rest(0, 0)


def _others(extra: Expr, low: int, high: int, lead: Expr) -> Expr:
    if high == 0:
        return EMPTY
    if lead != EMPTY:
        return repeat(sequence(lead, extra), low, high)
    some = sequence(extra, repeat(sequence(COMMA, extra), 0, high - 1))
    return some if low else optional(some)
