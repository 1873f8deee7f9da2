"""A schema as a grammar: references followed, alternatives spread out, each kind left to a file of its own.

What is refused is refused where it stands, before anything is merged, so that the path is the user's own.
"""

from __future__ import annotations

from typing import Any, cast

from flyball.constraint.grammar.arrays import array_expr
from flyball.constraint.grammar.bounds import Bounds
from flyball.constraint.grammar.disjoint import Look, apart
from flyball.constraint.grammar.merging import merged, types
from flyball.constraint.grammar.numbers import integer_expr, number_expr
from flyball.constraint.grammar.objects import object_expr
from flyball.constraint.grammar.refs import References
from flyball.constraint.grammar.rulebook import RuleBook
from flyball.constraint.grammar.scope import At
from flyball.constraint.grammar.strings import patterns, string_expr
from flyball.constraint.grammar.tree import NOTHING, Expr, choice
from flyball.constraint.grammar.values import BOOLEAN, NULL, any_value, listed_values

Plain = dict[str, Any]

_KIND_OF = {
    "object": (
        "properties",
        "required",
        "additionalProperties",
        "patternProperties",
        "propertyNames",
        "minProperties",
        "maxProperties",
    ),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems"),
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
"""Keywords that speak of one kind of value: where a schema names no type, they do."""

_CONSTRAINTS = frozenset(
    {
        "$ref",
        "allOf",
        "anyOf",
        "oneOf",
        "const",
        "enum",
        "type",
        *(key for keys in _KIND_OF.values() for key in keys),
    }
)
"""Everything that has a say in what is allowed and can be expressed. What is in neither set is a remark."""

_REFUSED = {
    "not": "what must not be cannot be excluded while it is written; say what may be instead",
    "contains": "it asks for an item somewhere in the array; give 'prefixItems' or leave it out",
    "if": "conditions are not followed; use 'anyOf' with complete branches",
    "dependentRequired": "keys that depend on others are not followed; use 'anyOf' with complete branches",
    "dependentSchemas": "schemas that depend on keys are not followed; use 'anyOf' with complete branches",
    "dependencies": "keys that depend on others are not followed; use 'anyOf' with complete branches",
    "unevaluatedProperties": "which keys are left over is not followed; use 'additionalProperties'",
    "unevaluatedItems": "which items are left over is not followed; use 'items'",
    "additionalItems": "it belongs to an older dialect; use 'prefixItems' and 'items'",
    "$dynamicRef": "dynamic references are not followed; use '$ref'",
    "$recursiveRef": "dynamic references are not followed; use '$ref'",
}
_MOST_STEPS = 5_000
"""How many schemas one compilation takes apart: alternatives within alternatives multiply."""


class Compiler:
    """One compilation: the rules made so far, and what has been compiled already."""

    def __init__(self, document: Any, bounds: Bounds, book: RuleBook) -> None:
        self.bounds = bounds
        self.document = document
        self.references = References(document)
        self._book = book
        self._done: dict[tuple[int, int | None], tuple[Any, Expr]] = {}
        self._steps = 0
        self._looks_at_room = 0

    def document_expr(self, name: str = "value") -> Expr:
        """What follows the whole document.

        Raises:
            GrammarUnsupported: a keyword cannot be expressed, or nothing at all follows the schema.
        """
        at = At("#", name, self.bounds.max_depth)
        expr = self.compile(self.document, at)
        if expr == NOTHING:
            raise at.refuse("type", "nothing follows this schema within the bounds; look for contradictions")
        return expr

    def compile(self, schema: Any, at: At) -> Expr:
        """What follows a schema, as an expression; a schema that was met before gives the same again."""
        for key in ((id(schema), None), (id(schema), at.room)):
            if key in self._done:
                self._looks_at_room += key[1] is not None
                return self._done[key][1]
        looks = self._looks_at_room
        expr = self._compile(schema, at)
        room = at.room if self._looks_at_room > looks else None  # without recursion it is the same everywhere
        self._done[id(schema), room] = (schema, expr)  # the schema is kept so that no other gets its id
        return expr

    def _compile(self, schema: Any, at: At) -> Expr:
        if schema is True or schema == {}:
            return self.any_value(at)
        if schema is False:
            return NOTHING
        here = cast("Plain", schema)
        said = set(here) & _CONSTRAINTS
        if said == {"$ref"}:
            self._check(here, at)
            inner = self._follow(here["$ref"], at)
            return NOTHING if inner is None else self.compile(*inner)
        if said == {"anyOf"}:
            self._check(here, at)
            places = [at.into("anyOf", n) for n in range(len(here["anyOf"]))]
            return self.rule(at.name, choice(*map(self.compile, here["anyOf"], places)))
        expanded = self._expand(here, at)
        return NOTHING if expanded is None else self._compile_plain(*expanded)

    def _compile_plain(self, schema: Plain, at: At) -> Expr:
        """What follows a schema without references and `allOf`."""
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                return self._alternatives(schema, keyword, at)
        if "const" in schema or "enum" in schema:
            return listed_values(schema, at, self)
        kinds = kinds_of(schema)
        if not kinds:
            return self.any_value(at) if "type" not in schema else NOTHING
        return choice(*(self._kind(name, schema, at) for name in kinds))

    def _kind(self, name: str, schema: Plain, at: At) -> Expr:
        match name:
            case "object":
                return object_expr(schema, at, self)
            case "array":
                return array_expr(schema, at, self)
            case "string":
                return string_expr(schema, at, self)
            case "integer":
                return integer_expr(schema, at, self)
            case "number":
                return number_expr(schema, at, self)
            case "boolean":
                return BOOLEAN
            case _:
                return NULL

    def _alternatives(self, schema: Plain, keyword: str, at: At) -> Expr:
        base = {key: value for key, value in schema.items() if key != keyword}
        branches: list[tuple[Any, At]] = []
        for n, branch in enumerate(schema[keyword]):
            where = at.into(keyword, n)
            if not _CONSTRAINTS & base.keys():
                branches.append((branch, where))
            elif branch is not False:
                branches.append(({**base, "allOf": [*base.get("allOf", []), branch]}, where))
        if keyword == "oneOf":
            self._check_apart(branches, at)
        return self.rule(at.name, choice(*(self.compile(branch, where) for branch, where in branches)))

    def _check_apart(self, branches: list[tuple[Any, At]], at: At) -> None:
        look = Look(
            cases=lambda schema: self._cases(schema, at),
            accepts=self.accepts,
            kinds=kinds_of,
            undeclared=self.bounds.undeclared,
        )
        for n, (branch, _) in enumerate(branches):
            for m, (other, _) in enumerate(branches[:n]):
                if not apart(other, branch, look):
                    raise at.refuse(
                        "oneOf",
                        f"branches {m} and {n} may both hold; use 'anyOf', or a required property that is a "
                        "different constant in each",
                    )

    def _cases(self, schema: Any, at: At) -> list[Plain]:
        """A schema as plain ones of which one has to hold."""
        if schema is False:
            return []
        if schema is True:
            return [{}]
        expanded = self._expand(cast("Plain", schema), at)
        if expanded is None:
            return []
        plain, here = expanded
        for keyword in ("anyOf", "oneOf"):
            if keyword in plain:
                base = {key: value for key, value in plain.items() if key != keyword}
                branches = [{**base, "allOf": [*base.get("allOf", []), branch]} for branch in plain[keyword]]
                return [case for branch in branches for case in self._cases(branch, here)]
        return [plain]

    def _expand(self, schema: Any, at: At) -> tuple[Plain, At] | None:
        """The schema with its references and `allOf` merged into it; None where nothing can follow it."""
        if schema is False:
            return None
        if schema is True:
            return {}, at
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise at.refuse(
                "allOf", "the schema branches too often; write its alternatives out, or fewer of them"
            )
        self._check(schema, at)
        plain = {key: value for key, value in schema.items() if key not in ("$ref", "allOf")}
        waiting: list[tuple[Any, At]] = []
        if "$ref" in schema:
            target = self._follow(schema["$ref"], at)
            if target is None:
                return None
            waiting.append(target)
        waiting += [(member, at.into("allOf", n)) for n, member in enumerate(schema.get("allOf", []))]
        room = at.room
        for member, where in waiting:
            expanded = self._expand(member, where)
            if expanded is None:
                return None
            room = min(room, expanded[1].room)
            plain = merged(plain, expanded[0], at)
        at = At(at.path, at.name, room)
        if (
            "allOf" in plain
        ):  # alternatives that had to be kept apart: they are merged once these are spread out
            if "anyOf" in plain or "oneOf" in plain:
                return plain, at
            return self._expand(plain, at)
        return plain, at

    def _follow(self, reference: str, at: At) -> tuple[Any, At] | None:
        """What a reference points to, and the place; None where it may not lead into itself any further."""
        target = self.references.target(reference, at)
        room = at.room
        if self.references.recursive(reference):
            self._looks_at_room += 1
            if room == 0:
                return None
            room -= 1
        return target, At(reference, reference.rpartition("/")[2].replace("#", "") or at.name, room)

    def _check(self, schema: Any, at: At) -> None:
        if not isinstance(schema, dict):
            raise at.refuse("type", f"no schema stands here, but {schema!r}")
        keys = cast("Plain", schema)
        for keyword in _REFUSED.keys() & keys.keys():
            if keyword == "if" and not {"then", "else"} & keys.keys():
                continue
            raise at.refuse(keyword, _REFUSED[keyword])
        if "$id" in keys and at.path != "#":
            raise at.refuse("$id", "references within a schema of its own are not followed; leave it out")

    def rule(self, name: str, expr: Expr) -> Expr:
        """A reference to a rule that says this; an equal one is found again, what is short stays itself."""
        return self._book.add(name, expr)

    def any_value(self, at: At) -> Expr:
        """Any JSON value, nested as far as there is room."""
        self._looks_at_room += 1
        return any_value(at, self)

    def accepts(self, schema: Any, value: Any) -> bool:
        """Whether a value follows a schema of this document, or one merged of several."""
        from flyball.constraint.validation import is_valid_within

        several = patterns(schema)
        if len(several) > 1:
            rest = {key: inner for key, inner in schema.items() if key != "pattern"}
            schema = {**rest, "allOf": [*rest.get("allOf", []), *({"pattern": each} for each in several)]}
        return is_valid_within(self.document, schema, value)


def kinds_of(schema: Plain) -> list[str]:
    """The types that a schema names, or that its keywords speak of; empty where it says nothing of either."""
    if "type" in schema:
        named = types(schema["type"])
        return [name for name in named if not (name == "integer" and "number" in named)]
    return [name for name, keys in _KIND_OF.items() if any(key in schema for key in keys)]
