"""From what a user wrote as `output=` to what a loop records of it, and to what reads its answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from msgspec.structs import replace

from flyball.core.encodable import NotEncodable, to_json
from flyball.core.errors import SchemaMalformed, UserError
from flyball.core.spec import OutputMode, OutputSpec
from flyball.orchestrate.output import OutputReader, Reader, output_spec
from flyball.orchestrate.output_plan import plan_of
from flyball.orchestrate.output_types import MODES, ToolOutput
from flyball.orchestrate.schema_output import SchemaOutput, SchemaReader
from flyball.orchestrate.union_output import UnionReader, union_spec

_WRAPPERS: frozenset[type[Any]] = frozenset({ToolOutput, *MODES})


def as_output(given: Any) -> Any:
    """What a user passed as `output`: a dict is a JSON Schema, a list is a union; else it is as it is.

    Raises:
        SchemaMalformed: the dict cannot be written as JSON.
        UserError: what stands there cannot stand together.
    """
    output = _shaped(given)
    plan_of(output)
    return output


def _shaped(given: Any) -> Any:
    if isinstance(given, Mapping):
        try:
            return SchemaOutput(to_json(given, "output"))
        except NotEncodable as error:
            raise SchemaMalformed(f"the output's schema is no JSON: {error}") from error
    if isinstance(given, list | tuple):
        return tuple([_shaped(item) for item in cast("list[Any]", given)])
    return replace(given, output=_shaped(given.output)) if type(given) in _WRAPPERS else given


def spec_of(
    output: Any, mode: OutputMode | None, default_mode: OutputMode, *, validated: bool, grammar: str | None
) -> OutputSpec:
    """What a loop records of an output: text for str, a tool (or what the model does best) for the rest.

    Raises:
        SchemaMalformed: a type has no schema.
        UserError: the mode does not fit the output.
    """
    plan = plan_of(output)
    if mode is not None and plan.mode is not None and mode is not plan.mode:
        raise UserError(f"output_mode={mode.value!r}, and the output itself asks for {plan.mode.value!r}")
    mode = mode or plan.mode
    repair = all(not isinstance(one.kind, SchemaOutput) or one.kind.repair for one in plan.members)
    only = plan.single
    if plan.text and not plan.members:
        return output_spec(str, mode, default_mode=default_mode, validated=validated, grammar=grammar)
    if only is None:
        if mode is None and not plan.members:
            mode = OutputMode.TEXT
        elif mode is None and plan.function is not None:
            mode = OutputMode.TOOL  # in the other modes the text is the other outputs'
        elif mode is None:
            mode = OutputMode.GRAMMAR if grammar is not None else default_mode
        return union_spec(plan, mode, validated=validated, grammar=grammar, repair=repair)
    spec = output_spec(
        only.kind,
        mode,
        default_mode=default_mode,
        validated=validated,
        tool_name=only.tool,
        tool_description=only.description,
        name=plan.name,
        description=plan.description,
        grammar=grammar,
        strict=only.strict if plan.strict is None else plan.strict,
        repair=repair,
    )
    final = isinstance(only.kind, SchemaOutput) and not only.kind.retry
    return replace(spec, retry=False) if final else spec


def reader_for(output: Any, spec: OutputSpec) -> Reader:
    """The reader of an output.

    Raises:
        SchemaMalformed: there is no schema for it.
    """
    plan = plan_of(output)
    only = plan.single
    if only is None:
        return OutputReader(str, spec) if plan.text and not plan.members else UnionReader(plan, spec)
    return (
        SchemaReader(only.kind, spec)
        if isinstance(only.kind, SchemaOutput)
        else OutputReader(only.kind, spec)
    )
