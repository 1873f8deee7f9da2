"""A JSON Schema as an agent's output, where no Python type says it: a request's contract, say, or a file's.

The answer is a plain JSON value that follows the schema. Three looks, in this order: is it JSON (put right
first, if that is allowed), is what was wrapped there, does it follow the schema (members of enumerations put
right, if that is allowed and it does not). Nothing is ever fetched for a schema: one that points outside
itself is refused.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, UnsetType

from flyball.constraint.validation import Violation, validator_of
from flyball.constraint.validators import failure_of, not_json
from flyball.core.encodable import to_json
from flyball.core.spec import OutputSpec
from flyball.orchestrate.mending import JSON_MENDED, decoded, mended_enums, mended_json
from flyball.orchestrate.state import State
from flyball.tool.errors import ModelRetry


class SchemaOutput(Struct, frozen=True):
    """A JSON Schema in the place of an output type. `Agent(output=some_dict)` is short for it.

    `repair`: broken JSON and misspelt members of enumerations are put right, if that can be. `retry`: the
    model is asked again for what is still wrong; without it the first fault ends the run with a
    ConstraintFailure.
    """

    schema: dict[str, Any]
    repair: bool = True
    retry: bool = True

    def __json_schema__(self) -> dict[str, Any]:
        return self.schema


class Look(Struct, frozen=True):
    """What an answer came to: its value as far as it is JSON, what was put right, what is still wrong."""

    value: Any | UnsetType = UNSET
    repairs: tuple[str, ...] = ()
    faults: tuple[Violation, ...] = ()


class SchemaReader:
    """Reads a raw answer as a value that follows a schema.

    Raises:
        SchemaMalformed: it is no JSON Schema, or points outside itself.
    """

    __slots__ = ("_outer", "_violations", "output")
    text_function = None

    def __init__(self, output: SchemaOutput, spec: OutputSpec) -> None:
        self.output = output
        self._outer = spec.outer_key
        self._violations = validator_of(output.schema)

    def kind_of(self, value: Any, tool: str | None = None) -> str:
        """Nothing: there is one schema alone."""
        return ""

    def read(self, raw: str, tool: str | None = None) -> tuple[Any, tuple[str, ...]]:
        """The output, and what had to be put right to read it.

        Raises:
            ModelRetry: it has faults, and the model may try again; the message tells it what is wrong.
            ConstraintFailure: it has faults, and that is the end.
        """
        look = self.look(raw)
        if not look.faults:
            return look.value, look.repairs
        if not self.output.retry:
            raise failure_of(look.faults)
        lines = "\n".join([f"- {fault}" for fault in look.faults])
        raise ModelRetry(
            f"The answer does not follow its schema:\n{lines}\nAnswer again with this put right."
        )

    def taken(self, given: Any, tool: str | None = None) -> Any:
        """A value that follows the schema, or text that is read as one.

        Raises:
            ModelRetry: it does not follow it.
        """
        if isinstance(given, str) and not (look := self.look(given)).faults:
            return look.value
        value = to_json(given)
        if faults := self._violations(value):
            raise ModelRetry(f"It does not follow its schema: {faults[0]}")
        return value

    def written(self, value: Any) -> Any:
        """An output as JSON."""
        return to_json(value)

    def restored(self, written: Any, tool: str | None = None) -> Any | UnsetType:
        """The output that was written so: JSON that follows the schema."""
        return UNSET if self._violations(written) else written

    def partial(self, raw: str, tool: str | None = None) -> Any | UnsetType:
        """The value as far as the beginning of an answer tells it, if it follows the schema so far."""
        from pydantic_core import from_json

        try:
            value = from_json(raw, allow_partial="trailing-strings")
        except ValueError:
            return UNSET
        if self._outer is not None:
            if not _has(value, self._outer):
                return UNSET
            value = value[self._outer]
        return UNSET if self._violations(value) else value

    def of(self, state: State) -> Any:
        """The output of a loop that ended well, read from its state: no callback, no model."""
        if state.output is not UNSET:
            return state.output
        return None if state.answer is None else self.look(state.answer).value

    def look(self, raw: str) -> Look:
        """What an answer comes to. Never raises."""
        repairs: tuple[str, ...] = ()
        try:
            value = decoded(raw)
        except ValueError as error:
            mended = mended_json(raw) if self.output.repair else None
            if mended is None:
                return Look(faults=(not_json(raw, error),))
            value, repairs = decoded(mended), (JSON_MENDED,)
        if self._outer is not None:
            if not _has(value, self._outer):
                fault = Violation("", "required", f"it should be an object with the key {self._outer!r}")
                return Look(value, repairs, (fault,))
            value = value[self._outer]
        faults = self._violations(value)
        if faults and self.output.repair:
            value, changes = mended_enums(self.output.schema, value)
            if changes:
                repairs, faults = (*repairs, *changes), self._violations(value)
        return Look(value, repairs, tuple(faults))


def _has(value: Any, key: str) -> bool:
    return isinstance(value, dict) and key in value
