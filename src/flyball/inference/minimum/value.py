"""The smallest value that fits a JSON Schema: what a model would say that says as little as it may.

Deterministic: of alternatives the first that has a value, of numbers the one nearest to nought, of optional
properties none. Local references are followed, recursive ones too. A keyword that is not followed is
refused, so that nothing is given that may not fit; the one exception are the alternatives of a `oneOf` that
overlap: they are taken as `anyOf`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from flyball.core.errors import SchemaMalformed
from flyball.core.messages import JSON
from flyball.inference.minimum.kinds import implied_types, is_of_type, types_of
from flyball.inference.minimum.merge import merged, property_schema
from flyball.inference.minimum.scalar import smallest_number, smallest_text, within_bounds

Flat: TypeAlias = Mapping[str, Any]
"""A schema without references and alternatives at its top."""

_NOT_FOLLOWED = (
    "not",
    "if",
    "contains",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "$dynamicRef",
)

_NOTHING: Any = object()
_MOST_ITEMS = 10_000


class _NoValueError(Exception):
    """No value was found at this place; another alternative may have one."""


def smallest_value(schema: Mapping[str, Any]) -> JSON:
    """The smallest value that fits.

    Raises:
        SchemaMalformed: none was found, because nothing fits, a reference leads nowhere, or the schema uses a
            keyword that is not followed; the message says where.
    """
    try:
        return _Search(schema).value(schema, "$", frozenset("#"))
    except _NoValueError as error:
        raise SchemaMalformed(
            f"cannot make a smallest value for a schema: {error}. "
            "Give the answer yourself, with a ScriptedEngine"
        ) from None
    except RecursionError:
        raise SchemaMalformed("cannot make a smallest value for a schema: it is nested too deeply") from None
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, re.error) as error:
        # A keyword has a value that it never has: a number for `required`, a text for `minimum`.
        raise SchemaMalformed(
            f"cannot make a smallest value for a schema that is malformed: {error}"
        ) from error


class _Search:
    """A search in one document. `above` holds the references that are open on the way to a place."""

    def __init__(self, root: Any) -> None:
        self._root = root

    def value(self, schema: Any, path: str, above: frozenset[str], nth: int = 0) -> JSON:
        first_reason: _NoValueError | None = None
        for flat, still_above in self._flat(schema, path, above):
            try:
                return self._of_flat(flat, path, still_above, nth)
            except _NoValueError as error:
                first_reason = first_reason or error
        raise first_reason or _NoValueError(f"{path} contains itself without an end, or nothing fits it")

    def _flat(self, schema: Any, path: str, above: frozenset[str]) -> Iterator[tuple[Flat, frozenset[str]]]:
        """The alternatives of a schema, each with all that must hold merged into it."""
        if schema is True:
            yield {}, above
            return
        if schema is False:
            return
        if not isinstance(schema, Mapping):
            raise _NoValueError(f"{path} is no schema but {schema!r:.80}")
        own = cast("Mapping[str, Any]", schema)
        together: list[Sequence[Any]] = [[part] for part in own.get("allOf", ())]
        together += [own[word] for word in ("anyOf", "oneOf") if word in own]
        base = {key: value for key, value in own.items() if key not in ("$ref", "allOf", "anyOf", "oneOf")}
        ref = own.get("$ref")
        if ref is None:
            yield from self._product(base, together, path, above, above)
        elif ref not in above:
            # A value never needs a reference inside itself: what stands inside could stand outside.
            inside = above | {ref}
            yield from self._product(base, [[self._target(ref, path)], *together], path, inside, inside)

    def _product(
        self,
        base: Flat,
        choices: Sequence[Sequence[Any]],
        path: str,
        above: frozenset[str],
        opened: frozenset[str],
    ) -> Iterator[tuple[Flat, frozenset[str]]]:
        """One option of each choice, merged. What one of them opened is open further down, not beside it."""
        if not choices:
            yield base, opened
            return
        for option in choices[0]:
            for flat, inside in self._flat(option, path, above):
                both = merged(base, flat)
                if both is not None:
                    yield from self._product(both, choices[1:], path, above, opened | inside)

    def _target(self, ref: Any, path: str) -> Any:
        if not isinstance(ref, str) or not (ref == "#" or ref.startswith("#/")):
            raise _NoValueError(f"{path} refers to {ref!r:.80}, which is outside the schema")
        from urllib.parse import unquote

        place: Any = self._root
        for word in ref.split("/")[1:]:
            key = unquote(word).replace("~1", "/").replace("~0", "~")
            try:
                place = place[key if isinstance(place, Mapping) else int(key)]
            except (KeyError, IndexError, ValueError, TypeError):
                raise _NoValueError(f"{path} refers to {ref!r:.80}, which leads nowhere") from None
        return place

    def _of_flat(self, schema: Flat, path: str, above: frozenset[str], nth: int) -> JSON:
        for word in _NOT_FOLLOWED:
            if word in schema:
                raise _NoValueError(f"{path} uses {word!r}, which is not followed")
        types = types_of(schema)
        if "const" in schema or "enum" in schema:
            fitting = [
                value
                for value in _listed(schema)
                if not types or any(is_of_type(value, kind) for kind in types)
            ]
            if nth < len(fitting):
                return fitting[nth]
            raise _NoValueError(f"{path} allows only {len(fitting)} values")
        for kind in types or implied_types(schema):
            found = self._of_type(kind, schema, path, above, nth)
            if found is not _NOTHING:
                return found
        raise _NoValueError(f"{path}: nothing was found between its bounds")

    def _of_type(self, kind: str, schema: Flat, path: str, above: frozenset[str], nth: int) -> JSON:
        found: JSON
        match kind:
            case "null":
                return None if nth == 0 else _NOTHING
            case "boolean":
                return bool(nth) if nth < 2 else _NOTHING
            case "integer" | "number":
                found = smallest_number(schema, whole=kind == "integer", nth=nth)
            case "string":
                found = smallest_text(schema, nth)
            case "array":
                found = self._array(schema, path, above, nth)
            case "object":
                found = self._object(schema, path, above, nth)
            case _:
                raise _NoValueError(f"{path} has the type {kind!r:.80}, which JSON does not know")
        return _NOTHING if found is None else found

    def _array(self, schema: Flat, path: str, above: frozenset[str], nth: int) -> list[JSON] | None:
        # Arrays differ by their length.
        count = schema.get("minItems", 0) + nth
        if count > min(schema.get("maxItems", count), _MOST_ITEMS):
            return None
        first: Sequence[Any] = schema.get("prefixItems", ())
        unique = schema.get("uniqueItems", False)
        items: list[JSON] = []
        for index in range(count):
            item = first[index] if index < len(first) else schema.get("items", True)
            place = f"{path}[{index}]"
            items.append(
                self._unlike(items, item, place, above) if unique else self.value(item, place, above)
            )
        return items

    def _unlike(self, others: list[JSON], schema: Any, path: str, above: frozenset[str]) -> JSON:
        """The smallest value that differs from the others."""
        for nth in range(len(others) + 1):
            found = self.value(schema, path, above, nth)
            if found not in others:
                return found
        raise _NoValueError(f"{path}: no value was found that differs from those before it")

    def _object(self, schema: Flat, path: str, above: frozenset[str], nth: int) -> dict[str, JSON] | None:
        names: list[str] = list(dict.fromkeys(schema.get("required", ())))
        least = schema.get("minProperties", 0)
        names += [name for name in schema.get("properties", {}) if name not in names][
            : max(least - len(names), 0)
        ]
        invented = max(least - len(names), 0)
        if invented and ("propertyNames" in schema or "patternProperties" in schema):
            raise _NoValueError(
                f"{path} needs properties with names that follow a rule, which is not followed"
            )
        names += [f"key{number}" for number in range(1, invented + 1)]
        if len(names) > schema.get("maxProperties", len(names)):
            return None
        values = {name: self.value(property_schema(schema, name), f"{path}.{name}", above) for name in names}
        return values if nth == 0 else self._varied(values, schema, path, above, nth)

    def _varied(
        self, values: dict[str, JSON], schema: Flat, path: str, above: frozenset[str], nth: int
    ) -> dict[str, JSON] | None:
        for name in values:
            try:
                other = self.value(property_schema(schema, name), f"{path}.{name}", above, nth)
            except _NoValueError:
                continue
            return values | {name: other}
        return None


def _listed(schema: Flat) -> list[JSON]:
    """The values that `const` and `enum` leave."""
    values = [schema["const"]] if "const" in schema else schema["enum"]
    return [value for value in values if value in schema.get("enum", values) and within_bounds(value, schema)]
