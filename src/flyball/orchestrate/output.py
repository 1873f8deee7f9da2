"""Output: what an agent should give, as a spec for the loop and as a reader for the answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import msgspec
from msgspec import UNSET, UnsetType

from flyball.core.encodable import as_text, to_json
from flyball.core.errors import SchemaInvalid, SchemaMalformed, UserError
from flyball.core.spec import TEXT_OUTPUT, OutputMode, OutputSpec
from flyball.core.tools import ToolDefinition, ToolKind
from flyball.core.type_schema import adapter_schema, own_schema
from flyball.orchestrate.mending import JSON_MENDED, decoded, mended_enums, mended_json
from flyball.orchestrate.output_plan import OUTPUT_TOOL_NAME
from flyball.orchestrate.state import State
from flyball.orchestrate.wrapped_schema import wrapped
from flyball.tool.errors import ModelRetry

OUTPUT_TOOL_DESCRIPTION = "The final response which ends this conversation"
OUTER_KEY = "result"
"""The key under which a value that is no object is wrapped, because tools and schemas want objects."""


class Reader(Protocol):
    """Reads an answer as the output that was asked for.

    `tool` is the name of the output tool that carried it; None where it is text.
    """

    def read(self, raw: str, tool: str | None = None) -> tuple[Any, tuple[str, ...]]:
        """The output, and what had to be put right to read it.

        Raises:
            ModelRetry: it cannot be read; the message tells the model what is wrong.
            FlyballError: it cannot be read, and the model is not asked again.
        """
        ...

    @property
    def text_function(self) -> Any:
        """What makes the output of an answer's text, if a function does."""
        ...

    def taken(self, given: Any, tool: str | None = None) -> Any:
        """What a user's function made in the place of an answer, as the output: a value, or text to be read.

        Raises:
            ModelRetry: it is no such output.
        """
        ...

    def written(self, value: Any) -> Any:
        """An output that a validator may have changed, as the JSON from which `of` gives it back.

        Raises:
            NotEncodable: it has no JSON form.
        """
        ...

    def kind_of(self, value: Any, tool: str | None = None) -> str:
        """The name of an output's type, where there may be several; else nothing."""
        ...

    def restored(self, written: Any, tool: str | None = None) -> Any | UnsetType:
        """The output that was written so; UNSET where that is none."""
        ...

    def partial(self, raw: str, tool: str | None = None) -> Any | UnsetType:
        """The output as far as the beginning of an answer tells it, valid as it is; UNSET where it does not.

        JSON that breaks off is read up to there, with the text that it breaks off in.
        """
        ...

    def of(self, state: State) -> Any:
        """The output of a loop that ended well, read from its state: no callback, no model.

        Raises:
            SchemaInvalid: its answer was given for another type of output.
        """
        ...


class OutputReader:
    """Reads a raw answer as the output type. Holds the type, and nothing of a run."""

    __slots__ = ("_outer", "_repair", "_schema", "_validate", "kind")
    text_function = None

    def __init__(self, kind: Any, spec: OutputSpec) -> None:
        self.kind = kind
        self._outer = spec.outer_key
        self._repair = spec.repair
        self._schema = spec.tools[0].parameters if spec.tools else spec.schema
        self._validate: Callable[..., Any] | None = None
        if not (kind is str and spec.mode in (OutputMode.TEXT, OutputMode.GRAMMAR)):
            self._validate = validator_of(kind, spec.outer_key)

    def kind_of(self, value: Any, tool: str | None = None) -> str:
        """Nothing: there is one type alone."""
        return ""

    def read(self, raw: str, tool: str | None = None) -> tuple[Any, tuple[str, ...]]:
        """The output, and what had to be repaired to read it.

        Raises:
            ModelRetry: it cannot be read; the message tells the model what is wrong.
        """
        validate = self._validate
        if validate is None:
            return raw, ()
        repairs: tuple[str, ...] = ()
        try:
            value = validate(raw)
        except ValueError as error:
            if not self._repair:
                raise ModelRetry(describe(error)) from None
            value, repairs = self._mended(validate, raw, error)
        return (value if self._outer is None else value[self._outer]), repairs

    def _mended(
        self, validate: Callable[..., Any], raw: str, error: ValueError
    ) -> tuple[Any, tuple[str, ...]]:
        """What is nearly right, put right: broken JSON first, then members of enumerations."""
        repairs: tuple[str, ...] = ()
        if is_json_error(error):
            mended = mended_json(raw)
            if mended is None:
                raise ModelRetry(describe(error)) from None
            raw, repairs = mended, (JSON_MENDED,)
            try:
                return validate(raw), repairs
            except ValueError as second:
                error = second
        try:
            value, changes = mended_enums(self._schema, decoded(raw))
        except ValueError:  # what pydantic takes for JSON and nobody else does: NaN
            changes = value = ()
        if not changes:
            raise ModelRetry(describe(error)) from None
        try:
            return validate(str(msgspec.json.encode(value), "utf-8")), (*repairs, *changes)
        except ValueError as third:
            raise ModelRetry(describe(third)) from None

    def taken(self, given: Any, tool: str | None = None) -> Any:
        """A value of the type, or text that is read as one."""
        if isinstance(given, str):
            try:
                return self.read(given, tool)[0]
            except ModelRetry:
                pass  # a text may also be the value itself, as with an enumeration
        try:
            return adapter_of(self.kind, None).validate_python(given)
        except ValueError as error:
            raise ModelRetry(describe(error)) from None

    def written(self, value: Any) -> Any:
        """An output as JSON: as its type writes itself, or, if it is of another type by now, as it is."""
        return written_as(self.kind, value)

    def restored(self, written: Any, tool: str | None = None) -> Any | UnsetType:
        """The output that was written so."""
        return restored_as(self.kind, written)

    def partial(self, raw: str, tool: str | None = None) -> Any | UnsetType:
        """The output as far as the beginning of an answer tells it."""
        if self._validate is None:
            return raw
        try:
            value = self._validate(raw, allow_partial="trailing-strings")
        except ValueError:
            return UNSET
        if self._outer is None:
            return value
        return value.get(self._outer, UNSET)

    def of(self, state: State) -> Any:
        """The output of a loop that ended well, read from its state: no callback, no model."""
        if state.output is not UNSET:
            restored = self.restored(state.output)
            return state.output if restored is UNSET else restored  # what is no such output by now
        if state.answer is None or self._validate is None:
            return state.answer
        try:
            return self.read(state.answer)[0]
        except ModelRetry as retry:
            raise not_of_type(state.loop_id, self.kind, str(retry)) from None


def written_as(kind: Any, value: Any) -> Any:
    """A value as the JSON that its type writes; if it is of another type by now, as it is.

    Fields are called by their aliases, or by their names where the type does not read its own aliases.

    Raises:
        NotEncodable: it has no JSON form.
    """
    if kind is str:
        return to_json(value)
    from pydantic_core import PydanticSerializationError

    write = partial(adapter_of(kind, None).dump_python, value, mode="json", round_trip=True, warnings="error")
    try:
        written = to_json(write(by_alias=True))
        if restored_as(kind, written) is UNSET:
            by_name = to_json(write(by_alias=False))
            return written if restored_as(kind, by_name) is UNSET else by_name
    except PydanticSerializationError:
        return to_json(value)
    return written


def restored_as(kind: Any, value: Any) -> Any | UnsetType:
    """A value of a type, from the JSON that was written of it; UNSET where it is no such type's."""
    if kind is str:
        return value if isinstance(value, str) else UNSET
    validate, raw = validator_of(kind, None), str(msgspec.json.encode(value), "utf-8")
    try:
        return validate(raw)
    except ValueError:
        pass  # it may have been written by the fields' names
    try:
        return validate(raw, by_alias=False, by_name=True)
    except ValueError:
        return UNSET


def not_of_type(loop_id: str, kind: Any, why: str) -> SchemaInvalid:
    """The failure of reading a recorded answer as something that it is not."""
    return SchemaInvalid(
        f"the recorded answer of loop {loop_id!r} is no {getattr(kind, '__name__', kind)}: "
        f"read it with an agent of the output type that it was given for ({why})",
        retryable=False,
        violation=why,
    )


def validator_of(kind: Any, outer_key: str | None) -> Callable[..., Any]:
    """The function that parses and validates JSON text as a type."""
    return adapter_of(kind, outer_key).validator.validate_json


def adapter_of(kind: Any, outer_key: str | None) -> Any:
    """Pydantic's adapter for a type, or for the object that wraps it.

    Raises:
        SchemaMalformed: pydantic cannot validate such a type.
    """
    from pydantic import PydanticUserError, TypeAdapter
    from typing_extensions import TypedDict

    try:
        if outer_key is None:
            return TypeAdapter[Any](kind)
        return TypeAdapter[Any](TypedDict("Output", {outer_key: kind}))  # pyright: ignore[reportGeneralTypeIssues]
    except PydanticUserError as error:
        raise SchemaMalformed(
            f"the output type {kind!r} has no schema: {str(error).splitlines()[0]}; "
            "use a pydantic model, a dataclass, a TypedDict or a plain type"
        ) from error


def output_spec(
    kind: Any,
    mode: OutputMode | None,
    *,
    default_mode: OutputMode = OutputMode.TOOL,
    validated: bool = False,
    tool_name: str = OUTPUT_TOOL_NAME,
    tool_description: str | None = None,
    name: str | None = None,
    description: str | None = None,
    grammar: str | None = None,
    strict: bool | None = None,
    repair: bool = True,
) -> OutputSpec:
    """The spec of an output type: text for str, a tool (or what the model does best) for anything else.

    Raises:
        SchemaMalformed: the type has no schema.
        UserError: the mode does not fit the type.
    """
    if kind is str and mode in (None, OutputMode.TEXT):
        if not validated and grammar is None:
            return TEXT_OUTPUT
        return OutputSpec(grammar=grammar, checked=True, validated=validated)
    mode = mode or (OutputMode.GRAMMAR if grammar is not None else default_mode)
    if mode is OutputMode.TEXT:
        raise UserError(
            f"output mode 'text' gives a str, not a {kind!r}: leave the mode out or choose another"
        )
    if mode is OutputMode.GRAMMAR and kind is str:
        checked = validated or grammar is not None
        return OutputSpec(mode=mode, grammar=grammar, checked=checked, validated=validated)
    schema = json_schema(kind)
    outer: str | None = None
    if schema.get("type") != "object" and "properties" not in schema:
        outer, schema = OUTER_KEY, json_schema(kind, OUTER_KEY)
    name = name or str(schema.get("title") or getattr(kind, "__name__", "output"))
    description = description or str(schema.get("description") or "")
    if mode is not OutputMode.TOOL:
        return OutputSpec(
            mode=mode, schema=schema, grammar=grammar, checked=True, validated=validated, outer_key=outer,
            name=name, description=description, strict=strict, repair=repair,
        )  # fmt: skip
    about = (
        tool_description or (f"{description.strip()}\n\n" if description else "") + OUTPUT_TOOL_DESCRIPTION
    )
    definition = ToolDefinition(tool_name, schema, about, ToolKind.OUTPUT, strict=strict, outer_key=outer)
    return OutputSpec(
        mode=mode, tools=(definition,), allows_text=False, checked=True, validated=validated, outer_key=outer,
        name=name, repair=repair,
    )  # fmt: skip


def json_schema(kind: Any, outer_key: str | None = None) -> dict[str, Any]:
    """The JSON Schema of a type, or of the object that wraps it.

    Raises:
        SchemaMalformed: it has none.
    """
    own = own_schema(kind)
    if own is not None:
        return own if outer_key is None else wrapped(own, outer_key)
    from pydantic.errors import PydanticInvalidForJsonSchema

    try:
        return adapter_schema(adapter_of(kind, outer_key))
    except PydanticInvalidForJsonSchema as error:
        raise SchemaMalformed(f"the output type {kind!r} has no JSON Schema: {error}") from error


def prompted_instructions(spec: OutputSpec) -> str:
    """What is added to the instructions in prompted mode."""
    return (
        "Answer with one JSON value that follows this JSON Schema, and with nothing else:\n"
        f"{as_text(spec.schema)}"
    )


def is_json_error(error: ValueError) -> bool:
    """Whether it failed because the text is no JSON, rather than for what the JSON says."""
    from pydantic_core import ValidationError

    return isinstance(error, ValidationError) and error.errors()[0]["type"] == "json_invalid"


def describe(error: ValueError) -> str:
    """What is wrong, for the model: one line a fault."""
    from pydantic_core import ValidationError

    from flyball.tool.feedback import describe_errors

    faults = describe_errors(error) if isinstance(error, ValidationError) else f"- {error}"
    return f"The answer is not what was asked for:\n{faults}\nAnswer again with this put right."
