"""The tasks as typed structs. They are read from TOML files and checked when they are read."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, cast

from jsonschema_rs import validator_for
from msgspec import Struct, convert

FOLDER = Path(__file__).resolve().parent


class BadTask(Exception):
    """A task cannot be read, or contradicts itself; the message names it."""


class AnyOf(Struct, frozen=True):
    """An argument that may be written in several ways."""

    values: tuple[Any, ...]


class Has(Struct, frozen=True):
    """An argument that is free text: all of these words must be in it."""

    words: tuple[str, ...]


class Call(Struct, frozen=True, forbid_unknown_fields=True):
    """A tool's name with arguments: as a model gave them, or as they should be (with `AnyOf`, `Has`)."""

    tool: str
    args: dict[str, Any]


class Tool(Struct, frozen=True):
    """What a model is told about a tool. `schema` is the JSON Schema of its arguments, all required."""

    name: str
    description: str
    schema: dict[str, Any]


class ToolTask(Struct, frozen=True):
    """A prompt, the tools on offer, and the calls that are right: none, one or several, in any order."""

    group: ClassVar[str] = "tool_choice"

    name: str
    level: int
    held: bool
    instructions: str
    prompt: str
    tools: tuple[Tool, ...]
    calls: tuple[Call, ...]

    @property
    def kind(self) -> str:
        """`none`, `one` or `several`: how many calls are right."""
        return ("none", "one", "several")[min(len(self.calls), 2)]

    @property
    def id(self) -> str:
        """The set and the name."""
        return f"{self.group}/{self.name}"


class ExtractionTask(Struct, frozen=True):
    """A text, the schema of what is wanted, and the one right answer, with a null for what is not there."""

    group: ClassVar[str] = "extraction"

    name: str
    level: int
    held: bool
    kind: str
    instructions: str
    prompt: str
    schema: dict[str, Any]
    answer: dict[str, Any]

    @property
    def id(self) -> str:
        """The set and the name."""
        return f"{self.group}/{self.name}"


Task: TypeAlias = ToolTask | ExtractionTask


def tool_tasks(folder: Path = FOLDER) -> tuple[ToolTask, ...]:
    """The tool-choice tasks, in the file's order.

    Raises:
        BadTask: one of them cannot be, such as a call to a tool that is not in its box.
    """
    boxes = _boxes(tomllib.loads((folder / "toolboxes.toml").read_text("utf-8")))
    data = tomllib.loads((folder / "tool_choice.toml").read_text("utf-8"))
    rows = [convert(row, _ToolRow) for row in data["task"]]
    tasks = tuple([_tool_task(row, data["instructions"], boxes) for row in rows])
    return _distinct(tasks)


def extraction_tasks(folder: Path = FOLDER) -> tuple[ExtractionTask, ...]:
    """The extraction tasks, in the file's order.

    Raises:
        BadTask: one of them cannot be, such as an answer that does not follow its schema.
    """
    data = tomllib.loads((folder / "extraction.toml").read_text("utf-8"))
    rows = [convert(row, _ExtractionRow) for row in data["task"]]
    return _distinct(tuple([_extraction_task(row, data["instructions"]) for row in rows]))


def all_tasks(folder: Path = FOLDER) -> tuple[Task, ...]:
    """Both sets."""
    return (*tool_tasks(folder), *extraction_tasks(folder))


def object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an object that has these properties, all of them, and no other."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


class _ToolRow(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    toolbox: str
    level: int
    held: bool
    prompt: str
    calls: list[Call]


class _ExtractionRow(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    kind: str
    level: int
    held: bool
    text: str
    fields: dict[str, dict[str, Any]]
    answer: dict[str, Any]


def _boxes(data: Mapping[str, Any]) -> dict[str, tuple[Tool, ...]]:
    return {
        box: tuple(
            [
                Tool(name, tool["description"], object_schema(tool["parameters"]))
                for name, tool in tools.items()
            ]
        )
        for box, tools in data.items()
    }


def _tool_task(row: _ToolRow, instructions: str, boxes: Mapping[str, tuple[Tool, ...]]) -> ToolTask:
    tools = boxes.get(row.toolbox)
    if tools is None:
        raise BadTask(f"tool_choice/{row.name}: there is no toolbox {row.toolbox!r}")
    calls = tuple(
        [Call(call.tool, {key: _wanted(arg) for key, arg in call.args.items()}) for call in row.calls]
    )
    schemas = {tool.name: tool.schema for tool in tools}
    for call in calls:
        if call.tool not in schemas:
            raise BadTask(f"tool_choice/{row.name}: there is no tool {call.tool!r} in {row.toolbox!r}")
        for args in spellings(call):
            _check(f"tool_choice/{row.name}", schemas[call.tool], args)
    return ToolTask(row.name, row.level, row.held, instructions, row.prompt, tools, calls)


def _extraction_task(row: _ExtractionRow, instructions: str) -> ExtractionTask:
    schema = object_schema(row.fields)
    answer = {**dict.fromkeys(row.fields), **row.answer}
    _check(f"extraction/{row.name}", schema, answer)
    return ExtractionTask(row.name, row.level, row.held, row.kind, instructions, row.text, schema, answer)


def spellings(call: Call) -> list[dict[str, Any]]:
    """Arguments that a right call may have: the first ways of writing them, then the last ones."""
    return [{key: _written(arg, which) for key, arg in call.args.items()} for which in (0, -1)]


def _written(arg: Any, which: int) -> Any:
    match arg:
        case AnyOf(values):
            return values[which]
        case Has(words):
            return " ".join(words)
        case _:
            return arg


def _wanted(arg: Any) -> Any:
    if not isinstance(arg, dict):
        return arg
    match cast("dict[str, Any]", arg):
        case {"any": [_, *_] as values, **rest} if not rest:
            return AnyOf(tuple(values))
        case {"has": [_, *_] as words, **rest} if not rest:
            return Has(tuple(words))
        case _:
            raise BadTask(f"an argument is a value, {{ any = [...] }} or {{ has = [...] }}, not {arg!r}")


def _check(where: str, schema: dict[str, Any], value: Any) -> None:
    for error in validator_for(schema).iter_errors(value):
        raise BadTask(f"{where}: the answer does not follow its own schema: {error.message}")


def _distinct(tasks: Sequence[Any]) -> Any:
    twice = [name for name, times in _counted(task.name for task in tasks).items() if times > 1]
    if twice:
        raise BadTask(f"more than one task is called {twice[0]!r}")
    return tasks


def _counted(names: Iterable[str]) -> Counter[str]:
    return Counter(names)
