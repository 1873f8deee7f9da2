"""Validators of an answer's form: whether it is JSON, and whether it follows a schema.

They give results; `require` raises the error of the taxonomy instead. They are plain functions with their
options bound: what an agent's own settling does is made of the same functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from flyball.constraint.json_text import decoded, mended_json
from flyball.constraint.validation import Violation, validator_of
from flyball.core.errors import ConstraintFailure, EnumUnrecognized, JSONInvalid, SchemaInvalid


class ConstraintResult(Struct, frozen=True):
    """What a validator found: whether it holds, what is wrong, and the output as far as it could be read.

    `repaired` says that the text had to be put right first.
    """

    valid: bool
    errors: tuple[str, ...] = ()
    output: Any = None
    repaired: bool = False


class JSONValidator:
    """Whether a text is JSON. With `attempt_repair` a text that is nearly so is put right."""

    __slots__ = ("attempt_repair",)

    def __init__(self, *, attempt_repair: bool = False) -> None:
        self.attempt_repair = attempt_repair

    def validate(self, text: str) -> ConstraintResult:
        """The result; its output is the value that the JSON stands for. Never raises."""
        try:
            return ConstraintResult(valid=True, output=decoded(text))
        except ValueError as error:
            mended = mended_json(text) if self.attempt_repair else None
            if mended is not None:
                return ConstraintResult(valid=True, output=decoded(mended), repaired=True)
            return ConstraintResult(valid=False, errors=(not_json(text, error).message,))

    def require(self, text: str) -> Any:
        """The value that a JSON text stands for.

        Raises:
            JSONInvalid: it stands for none.
        """
        result = self.validate(text)
        if not result.valid:
            raise JSONInvalid(f"the answer is no JSON: {result.errors[0]}", violations=list(result.errors))
        return result.output


class SchemaValidator:
    """Whether an answer follows a JSON Schema: required keys, types, enumerations, all that a schema says.

    An empty schema lets everything pass, also what is no JSON. Nothing is put right here: members of
    enumerations count as they are written.

    Raises:
        SchemaMalformed: the schema is none.
    """

    __slots__ = ("_violations", "schema")

    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = schema
        self._violations = validator_of(schema)

    def validate(self, text: str) -> ConstraintResult:
        """The result for a JSON text. Never raises."""
        try:
            value = decoded(text)
        except ValueError as error:
            if not self.schema:
                return ConstraintResult(valid=True, output=text)
            return ConstraintResult(valid=False, errors=(not_json(text, error).message,))
        return self.validate_value(value)

    def validate_value(self, value: Any) -> ConstraintResult:
        """The result for a value that was read already."""
        wrong = self._violations(value)
        return ConstraintResult(valid=not wrong, errors=tuple([str(one) for one in wrong]), output=value)

    def require(self, text: str) -> Any:
        """The value that a JSON text stands for, which follows the schema.

        Raises:
            JSONInvalid: it is no JSON.
            EnumUnrecognized: only members of enumerations are wrong.
            SchemaInvalid: something else is; details `path`, `violation` and `violations`.
        """
        try:
            value = decoded(text)
        except ValueError as error:
            if not self.schema:
                return text
            raise failure_of((not_json(text, error),)) from None
        if wrong := self._violations(value):
            raise failure_of(wrong)
        return value


class JSONRepairStrategy:
    """Puts right a text that is nearly JSON: cut ends, single quotes, trailing commas, prose around it.

    It is a `flyball.RepairStrategy`; `OutputRepair.by(JSONRepairStrategy())` has an agent use it.
    """

    def repair(self, output: str, errors: Sequence[str] = ()) -> str:
        """The text as valid JSON.

        Raises:
            JSONInvalid: it cannot be made so.
        """
        mended = mended_json(output)
        if mended is None:
            told = f" ({errors[0]})" if errors else ""
            raise JSONInvalid(f"this cannot be made JSON{told}: {_capped(output)}", violations=list(errors))
        return mended


def not_json(text: str, error: ValueError) -> Violation:
    """The violation of a text that is no JSON."""
    return Violation("", "json", f"it is no JSON ({error}): {_capped(text)}")


def failure_of(faults: Sequence[Violation]) -> ConstraintFailure:
    """Faults as the error of the taxonomy: the first one's path and violation, and all of them."""
    first = faults[0]
    kinds = {fault.keyword for fault in faults}
    failure = JSONInvalid if kinds == {"json"} else EnumUnrecognized if kinds == {"enum"} else SchemaInvalid
    told = "; ".join([str(fault) for fault in faults[:3]])
    more = f" (and {len(faults) - 3} more)" if len(faults) > 3 else ""
    return failure(
        f"the answer does not follow its schema: {told}{more}",
        path=first.path,
        violation=first.message,
        violations=[str(fault) for fault in faults],
    )


def _capped(text: str, limit: int = 100) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
