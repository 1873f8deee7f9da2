"""One of several outputs: each has a tool of its own, or one schema describes them all; text may be one.

Which of them an answer is follows from the tool that carried it. An answer without one (text, or what a tool
ended the loop with) is, where text is an output, only a member if it is a JSON object that reads as one.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, get_type_hints

from msgspec import UNSET, UnsetType

from flyball.core.encodable import to_json
from flyball.core.errors import UserError
from flyball.core.spec import OutputMode, OutputSpec
from flyball.core.tools import ToolDefinition
from flyball.orchestrate.output import (
    OutputReader,
    Reader,
    not_of_type,
    output_spec,
    restored_as,
    written_as,
)
from flyball.orchestrate.output_plan import Member, Plan, union
from flyball.orchestrate.schema_output import SchemaOutput, SchemaReader
from flyball.orchestrate.state import State
from flyball.tool.errors import ModelRetry


class UnionReader:
    """Reads an answer as one of several outputs."""

    __slots__ = ("_bare", "_by_tool", "_kinds", "_members", "_text", "_whole", "text_function")

    def __init__(self, plan: Plan, spec: OutputSpec) -> None:
        self.text_function = plan.function
        self._text = plan.text or plan.function is not None
        self._kinds = [member.kind for member in plan.members if not isinstance(member.kind, SchemaOutput)]
        if plan.function is not None:
            self._kinds.append(returned_by(plan.function))
        if plan.text:
            self._kinds.append(str)
        self._whole: Reader | None = None
        if spec.mode not in (OutputMode.TOOL, OutputMode.TEXT):
            self._whole = _member_reader(whole_kind(plan), spec)
        definitions = {definition.name: definition for definition in spec.tools}
        self._by_tool: Mapping[str, Reader] = {
            member.tool: _member_reader(member.kind, _alone(definitions[member.tool], spec))
            for member in plan.members
            if member.tool in definitions
        }
        self._members: Mapping[str | None, Any] = {
            member.tool: member.kind for member in plan.members if member.tool in definitions
        }
        unwrapped = OutputSpec(mode=OutputMode.NATIVE, repair=False)
        self._bare = [_member_reader(member.kind, unwrapped) for member in plan.members]

    def read(self, raw: str, tool: str | None = None) -> tuple[Any, tuple[str, ...]]:
        """The output, and what had to be put right to read it.

        Raises:
            ModelRetry: it cannot be read; the message tells the model what is wrong.
        """
        if tool is not None and tool in self._by_tool:
            return self._by_tool[tool].read(raw)
        try:
            return self._whole.read(raw) if self._whole is not None else (self._first(raw), ())
        except ModelRetry:
            if not self._text or (self._whole is not None and raw.lstrip().startswith("{")):
                raise
            return raw, ()

    def _first(self, raw: str) -> Any:
        """The answer as the first member that it can be read as."""
        if self._text and not raw.lstrip().startswith("{"):
            raise ModelRetry("it is text")
        failure = ModelRetry("The answer is not what was asked for.")
        for number, reader in enumerate(self._bare):
            try:
                return reader.read(raw)[0]
            except ModelRetry as retry:
                failure = failure if number else retry
        raise failure

    def taken(self, given: Any, tool: str | None = None) -> Any:
        """A value of one of the members, or text that is read as one; first that of the tool.

        Raises:
            ModelRetry: it is none of them.
        """
        own = [self._by_tool[tool]] if tool is not None and tool in self._by_tool else []
        for reader in (*own, *self._bare):
            try:
                return reader.taken(given, tool)
            except ModelRetry:
                continue
        if self._text and tool is None and isinstance(given, str):
            return given
        raise ModelRetry("It is none of the outputs that were asked for.")

    def written(self, value: Any) -> Any:
        """An output as JSON: as its type writes itself."""
        return written_as(union(self._kinds), value) if self._kinds else to_json(value)

    def kind_of(self, value: Any, tool: str | None = None) -> str:
        """The name of the member that an output is: by its class, else by the tool that carried it."""
        if self._text and isinstance(value, str) and self.text_function is None and tool is None:
            return _name(str)
        for kind in (*self._kinds, *self._members.values()):
            if type(value) is kind:
                return _name(kind)
        if tool in self._members:
            return _name(self._members[tool])
        return _name(type(value))

    def partial(self, raw: str, tool: str | None = None) -> Any | UnsetType:
        """The output as far as the beginning of an answer tells it; of a function's, nothing."""
        if tool is not None:
            return self._by_tool[tool].partial(raw) if tool in self._by_tool else UNSET
        if self._whole is not None:
            return self._whole.partial(raw)
        return raw if self._text and self.text_function is None else UNSET

    def of(self, state: State) -> Any:
        """The output of a loop that ended well, read from its state: no callback, no model."""
        if state.output is not UNSET:
            restored = self.restored(state.output, state.answer_tool)
            return state.output if restored is UNSET else restored  # what is no such output by now
        if state.answer is None:
            return None
        try:
            return self.read(state.answer, state.answer_tool)[0]
        except ModelRetry as retry:
            raise not_of_type(
                state.loop_id, "output of the types that this agent gives", str(retry)
            ) from None

    def restored(self, written: Any, tool: str | None = None) -> Any | UnsetType:
        """The output that was written so: first as what the tool carried, then as any of the others."""
        own = self._by_tool.get(tool or "")
        kinds = [own.kind] if isinstance(own, OutputReader) else []
        if tool is None and self.text_function is not None:
            kinds = [returned_by(self.text_function)]
        for kind in (*kinds, *self._kinds):
            restored = restored_as(kind, written)
            if restored is not UNSET:
                return restored
        schemas = [reader for reader in self._bare if isinstance(reader, SchemaReader)]
        return written if any(reader.restored(written) is not UNSET for reader in schemas) else UNSET


def _name(kind: Any) -> str:
    """What a member is called, for people."""
    if kind is str:
        return "text"
    if isinstance(kind, SchemaOutput):
        title = kind.schema.get("title")
        return title if isinstance(title, str) and title else "JSON"
    return kind.__name__ if isinstance(kind, type) else str(kind)


def union_spec(plan: Plan, mode: OutputMode, **options: Any) -> OutputSpec:
    """The spec of an output with several members, or with text beside one; `options` as of `output_spec`.

    Raises:
        SchemaMalformed: a member has no schema.
        UserError: the mode does not fit the members.
    """
    validated: bool = options["validated"] or plan.function is not None
    options["validated"] = validated
    if not plan.members:
        if mode is not OutputMode.TEXT:
            raise UserError(f"output mode {mode.value!r} asks for JSON, and the output is made of text")
        return OutputSpec(grammar=options["grammar"], checked=True, validated=validated)
    if mode is OutputMode.TEXT:
        raise UserError("output mode 'text' gives a str, and nothing else: choose another, or leave it out")
    if mode is not OutputMode.TOOL:
        if plan.function is not None:
            raise UserError(f"TextOutput beside other outputs needs mode 'tool', not {mode.value!r}")
        named: dict[str, Any] = {"name": plan.name, "description": plan.description, "strict": plan.strict}
        return output_spec(whole_kind(plan), mode, **options, **named)
    tools = [_tool(member, options) for member in plan.members]
    text = plan.text or plan.function is not None
    return OutputSpec(
        mode=mode, tools=tuple(tools), allows_text=text, checked=True, validated=validated,
        repair=options["repair"],
    )  # fmt: skip


def _tool(member: Member, options: dict[str, Any]) -> ToolDefinition:
    options = options | {
        "tool_name": member.tool,
        "tool_description": member.description,
        "strict": member.strict,
    }
    return output_spec(member.kind, OutputMode.TOOL, **options).tools[0]


def whole_kind(plan: Plan) -> Any:
    """All members as one output.

    Raises:
        UserError: a JSON Schema is one of several.
    """
    if plan.text or len(plan.members) > 1:
        for member in plan.members:
            if isinstance(member.kind, SchemaOutput):
                raise UserError(
                    "a JSON Schema stands beside other outputs in tool mode only: write anyOf into it instead"
                )
    return plan.kind


def _alone(definition: ToolDefinition, spec: OutputSpec) -> OutputSpec:
    """The spec of one member of a union, as if there were no others."""
    return OutputSpec(
        mode=OutputMode.TOOL, tools=(definition,), outer_key=definition.outer_key, repair=spec.repair
    )


def _member_reader(kind: Any, spec: OutputSpec) -> Reader:
    return SchemaReader(kind, spec) if isinstance(kind, SchemaOutput) else OutputReader(kind, spec)


def returned_by(function: Any) -> Any:
    """The type that a function says it returns; Any where it does not."""
    try:
        return get_type_hints(inspect.unwrap(function)).get("return", Any)
    except (NameError, TypeError):  # a name that is only there for type checkers; no function
        return Any
