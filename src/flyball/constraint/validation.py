"""Whether a value follows a JSON Schema: 2020-12 unless the schema names another dialect, formats checked.

Nothing is fetched. Validators are compiled once a schema and kept, as many as `KEPT`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from flyball.core.errors import SchemaInvalid, SchemaMalformed
from flyball.core.schema_check import check_schema

KEPT = 256


class Violation(Struct, frozen=True):
    """One break of a schema: where in the value, what is wrong, and where the schema says so."""

    path: str
    violation: str
    schema_path: str


def validate(schema: dict[str, Any], value: Any) -> list[Violation]:
    """What is wrong with a value; empty where it follows the schema.

    Raises:
        SchemaMalformed: the schema is none, or refers to something that is not in it.
    """
    validator = _validator(_key(schema))
    if validator.is_valid(value):
        return []
    return [
        Violation(_path(error.instance_path), error.message, "#" + _pointer(error.schema_path))
        for error in validator.iter_errors(value)
    ]


def is_valid(schema: dict[str, Any], value: Any) -> bool:
    """Whether a value follows a schema.

    Raises:
        SchemaMalformed: the schema is none, or refers to something that is not in it.
    """
    return bool(_validator(_key(schema)).is_valid(value))


def require_valid(schema: dict[str, Any], value: Any) -> None:
    """Check that a value follows a schema.

    Raises:
        SchemaInvalid: it does not: details `path` and `violation` of the first break, `violations` of all.
        SchemaMalformed: the schema is none.
    """
    wrong = validate(schema, value)
    if wrong:
        first = wrong[0]
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise SchemaInvalid(
            f"{first.path or 'the output'}: {first.violation}{more}",
            path=first.path,
            violation=first.violation,
            violations=[{"path": each.path, "violation": each.violation} for each in wrong],
        )


def _key(schema: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(schema)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise SchemaMalformed(f"no JSON: {error}") from error


@lru_cache(maxsize=KEPT)
def _validator(encoded: bytes) -> Any:
    import jsonschema_rs

    schema = msgspec.json.decode(encoded)
    check_schema(schema)
    try:
        return jsonschema_rs.validator_for(schema, validate_formats=True)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        raise SchemaMalformed(f"the schema cannot be used: {error}") from error


def _path(steps: list[str | int]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")


def _pointer(steps: list[str | int]) -> str:
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)
