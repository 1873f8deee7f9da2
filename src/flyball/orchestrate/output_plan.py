"""What a user's `output=` comes to: its members, whether text is one of them, and how it is asked for.

The same output gives the same plan each time, names of tools included: so a recorded answer is read by the
member whose tool carried it, also in another process.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from types import NoneType, UnionType
from typing import Any, Union, cast, get_args, get_origin

from msgspec import Struct
from typing_extensions import TypeAliasType

from flyball.core.errors import UserError
from flyball.core.spec import OutputMode
from flyball.orchestrate.output_types import MODES, TextOutput, ToolOutput
from flyball.tool.options import check_name

OUTPUT_TOOL_NAME = "final_result"
"""What the output's tool is called; of several, what their names begin with."""
_LONGEST_NAME = 64
"""What providers allow a tool's name to have."""


class Member(Struct, frozen=True):
    """One of the types that an output may be of. `tool` is what its tool is called, where it has one."""

    kind: Any
    tool: str = OUTPUT_TOOL_NAME
    description: str | None = None
    strict: bool | None = None


class Plan(Struct, frozen=True):
    """An output, taken apart.

    `members` are its types but for `str`, which `text` stands for; `function` makes something else of text.
    `mode` is set where a wrapper asks for one, and `name`, `description` and `strict` are of the whole.
    """

    members: tuple[Member, ...] = ()
    text: bool = False
    function: Any = None
    mode: OutputMode | None = None
    name: str | None = None
    description: str | None = None
    strict: bool | None = None

    @property
    def kind(self) -> Any:
        """The whole as one type."""
        kinds = [member.kind for member in self.members]
        return union([*kinds, str] if self.text else kinds)

    @property
    def single(self) -> Member | None:
        """The only member, where there is one, and no text beside it."""
        return self.members[0] if len(self.members) == 1 and not (self.text or self.function) else None


def plan_of(output: Any) -> Plan:
    """Take an output apart; several are in a tuple.

    Raises:
        UserError: what stands there cannot be, or cannot stand together.
    """
    mode = MODES.get(output.__class__)
    if mode is None:
        return _planned(_several(output))
    inner: Any = output.output
    plan = _planned(_several(inner))
    wrapped: str = output.__class__.__name__
    if plan.mode is not None or plan.function is not None:
        raise UserError(f"{wrapped} takes types, and no other wrapper: {inner!r}")
    if not plan.members:
        raise UserError(f"{wrapped}(str) is plain text: leave the wrapper out")
    return Plan(
        plan.members, plan.text, None, mode, output.name, output.description, output.strict
    )  # fmt: skip


def _several(given: Any) -> tuple[Any, ...]:
    return cast("tuple[Any, ...]", given) if isinstance(given, tuple) else (given,)


def _planned(outputs: Iterable[Any]) -> Plan:
    wanted: list[Any] = []
    function: Any = None
    text = by_tools = False
    for output in outputs:
        if type(output) is TextOutput:
            given = cast("TextOutput[Any]", output)
            if function is not None or not callable(given.function):
                raise UserError(f"one function makes the output of the text, not {given.function!r}")
            function = given.function
        elif type(output) in MODES:
            raise UserError(
                f"{type(output).__name__} stands alone: put all types into it, as in "
                f"{type(output).__name__}([City, Country])"
            )
        elif type(output) is ToolOutput:
            wanted.append(cast("ToolOutput[Any]", output))
            by_tools = True
        else:
            for kind in _members(output):
                text = text or kind is str
                if kind is not str:
                    wanted.append(kind)
    if text and function is not None:
        raise UserError("the text is the output, or a function makes it of the text: leave str or it out")
    if not wanted and not text and function is None:
        raise UserError("output= names no type: give one, such as output=[City, str]")
    return Plan(_named(wanted), text, function, OutputMode.TOOL if by_tools else None)


def _members(kind: Any) -> tuple[Any, ...]:
    """The types that a union is made of; an option is no union, and anything else is one type."""
    while isinstance(kind, TypeAliasType):
        kind = kind.__value__
    if get_origin(kind) not in (Union, UnionType):
        return (kind,)
    members: tuple[Any, ...] = get_args(kind)
    return members if len([member for member in members if member is not NoneType]) > 1 else (kind,)


def union(kinds: list[Any]) -> Any:
    """Some types as one, which is their union."""
    return Union[tuple(kinds)] if len(kinds) > 1 else kinds[0]  # noqa: UP007 - of what is only known now


def _named(wanted: list[Any]) -> tuple[Member, ...]:
    """The members, each with the name of its tool: `final_result` for the only one."""
    named: list[Member] = []
    taken = {one.name for one in wanted if type(one) is ToolOutput}
    for one in wanted:
        marker = cast("ToolOutput[Any]", one) if type(one) is ToolOutput else ToolOutput(one)
        name = marker.name
        if name is None:
            name = _free(_tool_name(marker.output) if len(wanted) > 1 else OUTPUT_TOOL_NAME, taken)
        elif check_name(name, "ToolOutput(name=...)") in [member.tool for member in named]:
            raise UserError(f"two outputs are called {name!r}: give each a name of its own")
        taken.add(name)
        named.append(Member(marker.output, name, marker.description, marker.strict))
    return tuple(named)


def _tool_name(kind: Any) -> str:
    schema = getattr(kind, "schema", None)
    titled = cast("dict[str, Any]", schema).get("title") if isinstance(schema, dict) else None
    name = "None" if kind is NoneType else titled or getattr(kind, "__name__", None) or type(kind).__name__
    return f"{OUTPUT_TOOL_NAME}_{re.sub(r'[^A-Za-z0-9_-]+', '_', str(name))}"[:_LONGEST_NAME]


def _free(name: str, taken: set[str | None]) -> str:
    """A name that no other output has: with a number, where it must be."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name[: _LONGEST_NAME - 4]}_{number}"
    return free
