"""Whether a value follows a JSON Schema: 2020-12 unless the schema names another dialect, formats checked.

Nothing is fetched: a schema that points outside itself is refused. Validators are compiled once a schema,
and as many as `KEPT` of them are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import islice
from typing import Any, cast

import msgspec
from msgspec import Struct

from flyball.core.errors import SchemaInvalid, SchemaMalformed
from flyball.core.schema_check import check_schema

KEPT = 256
MOST = 20
"""Breaks that are told where nobody says how many."""
_LONGEST = 300
_DOCUMENT = "urn:flyball:document"


class Violation(Struct, frozen=True):
    """One break of a schema: where in the value, by which keyword of the schema and where in it, and what."""

    path: str
    keyword: str
    message: str
    schema_path: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def validate(schema: dict[str, Any], value: Any, *, most: int = MOST) -> list[Violation]:
    """What is wrong with a value, `most` breaks of it at most; empty where it follows the schema.

    Raises:
        SchemaMalformed: the schema is none, or refers to something that is not in it.
    """
    return _violations(_validator(_key(schema)), value, most)


def validator_of(schema: dict[str, Any]) -> Callable[[Any], list[Violation]]:
    """`validate` for one schema, which is looked at now and not again.

    Raises:
        SchemaMalformed: the schema is none, or refers to something that is not in it.
    """
    validator = _validator(_key(schema))
    return lambda value: _violations(validator, value, MOST)


def is_valid(schema: dict[str, Any], value: Any) -> bool:
    """Whether a value follows a schema.

    Raises:
        SchemaMalformed: the schema is none, or refers to something that is not in it.
    """
    return bool(_validator(_key(schema)).is_valid(value))


def is_valid_within(document: dict[str, Any], part: Any, value: Any) -> bool:
    """Whether a value follows a part of a schema, or one made of its parts: references lead into the whole.

    Raises:
        SchemaMalformed: the part is no schema, or refers to something that is not in the document.
    """
    if not isinstance(part, dict):
        return bool(part)
    whole = {**document, "$id": _DOCUMENT}
    return is_valid({"$defs": {"document": whole}, **_from_outside(cast("dict[str, Any]", part))}, value)


def require_valid(schema: dict[str, Any], value: Any) -> None:
    """Check that a value follows a schema.

    Raises:
        SchemaInvalid: it does not: details `path` and `violation` of the first break, `violations` of all.
        SchemaMalformed: the schema is none, or refers to something that is not in it.
    """
    wrong = validate(schema, value)
    if not wrong:
        return
    told = "; ".join(str(each) for each in wrong[:3])
    more = f" (and {len(wrong) - 3} more)" if len(wrong) > 3 else ""
    raise SchemaInvalid(
        f"the value does not follow its schema: {told}{more}",
        path=wrong[0].path,
        violation=wrong[0].message,
        violations=[str(each) for each in wrong],
    )


def _violations(validator: Any, value: Any, most: int) -> list[Violation]:
    if validator.is_valid(value):
        return []
    return [_violation(error) for error in islice(validator.iter_errors(value), most)]


def _from_outside(node: Any) -> Any:
    """A part of the document with its references as they are written from outside of it."""
    if isinstance(node, list):
        return [_from_outside(inner) for inner in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    return {
        key: _DOCUMENT + inner
        if key == "$ref" and isinstance(inner, str) and inner.startswith("#")
        else _from_outside(inner)
        for key, inner in cast("dict[str, Any]", node).items()
        if key not in ("$defs", "definitions", "$id", "$schema")
    }


def _key(schema: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(schema)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise SchemaMalformed(f"the schema is no JSON: {error}") from error


@lru_cache(maxsize=KEPT)
def _validator(encoded: bytes) -> Any:
    import jsonschema_rs

    schema = msgspec.json.decode(encoded)
    check_schema(schema)
    try:
        return jsonschema_rs.validator_for(schema, validate_formats=True, offline=True)
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        told = str(error).partition("\n")[0]
        raise SchemaMalformed(f"the schema cannot be used: {_capped(told)}") from error


def _violation(error: Any) -> Violation:
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.instance_path)
    where = "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in error.schema_path)
    return Violation(path.removeprefix("."), error.kind.name, _capped(error.message), f"#{where}")


def _capped(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
