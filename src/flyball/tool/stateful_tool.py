"""Stateful tools: a class whose objects remember, made into tools.

A class has `export_state()` and `restore_state(state)`, and is one tool by its `__call__`, or several by the
methods that `@tool` marks; these share the state. Each call gets an object of its own, made anew and brought
to the state that is recorded; what it exports afterwards is recorded with the call's result. So a state is
the same wherever a call runs: in this process, on any worker, after a crash, in a replay, in a fork.

Rules:
- the calls of a turn that have a state run one after the other, and not beside other calls;
- a call that raises, takes too long, asks for a retry or is refused by a validator leaves the state as it
  was;
- a state is JSON: what restore_state is given is what export_state gave, as JSON has it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Protocol, Unpack, runtime_checkable

import msgspec
from msgspec.structs import replace

from flyball.core.context import RunContext
from flyball.core.encodable import NotEncodable, to_json
from flyball.core.errors import ToolExecutionFailed, UserError
from flyball.core.tools import ToolSpec
from flyball.tool.blueprint import Blueprint, blueprint_of
from flyball.tool.docstring import parse
from flyball.tool.method import ToolMethod
from flyball.tool.options import Availability, ToolOptions, check_name
from flyball.tool.running import as_async
from flyball.tool.toolset import Toolset

MAX_STATE_BYTES = 1024 * 1024
"""A larger state is refused: it is recorded whole each time that it changes."""


@runtime_checkable
class Stateful(Protocol):
    """An object that remembers."""

    def export_state(self) -> Any:
        """What it remembers, as JSON."""
        ...

    def restore_state(self, state: Any) -> None:
        """Remember what another object of the class has exported. The state may be kept and changed."""
        ...


def stateful(make: Callable[[], Stateful], **options: Unpack[ToolOptions]) -> Toolset:
    """The tools of a class whose objects remember.

    Args:
        make: the class, or a function that makes one of its objects. It is called for each tool call; of a
            function it is also called here, to see what it makes.
        options: `name` is what the state is called, and the tool, where there is one; by default after the
            class. The others are those of `@tool`, for a class that is one tool; methods have their own.

    Raises:
        SchemaMalformed: a parameter's type has no schema; the message names the tool and the parameter.
        UserError: the class is none of a stateful tool, or an option cannot be.
    """
    if not callable(make):
        raise UserError(f"stateful() takes a class, or a function that makes its objects, not {make!r}")
    kind: Any = make if isinstance(make, type) else type(make())
    for wanted in ("export_state", "restore_state"):
        if not callable(getattr(kind, wanted, None)):
            raise UserError(f"{kind.__qualname__} has no {wanted}(): a stateful tool exports and restores it")
    name = options.pop("name", None)
    key = check_name(_snake(kind.__name__) if name is None else name)
    members = _members(kind)
    methods = [found for found in members.values() if isinstance(found, ToolMethod)]
    if methods and options:
        raise UserError(
            f"the tools of {kind.__qualname__} are its methods: give each its own options, as in "
            f"@tool({min(options)}=…)"
        )
    if methods:
        made = [StatefulTool(make, key, method.__wrapped__, method.blueprint) for method in methods]
        return Toolset(key, made)
    call = members.get("__call__")
    if call is None:
        raise UserError(
            f"{kind.__qualname__} has neither methods that are marked with @tool nor a __call__: "
            "a stateful tool has one or the other"
        )
    options["name"] = key
    if call.__doc__ is None:
        options.setdefault("description", parse(kind.__doc__).description)
    return Toolset(key, [StatefulTool(make, key, call, blueprint_of(call, options, method=True))])


class StatefulTool:
    """One method of a class whose objects remember, as a tool."""

    __slots__ = ("_available", "prepare", "run", "spec", "validators", "wants_context")

    def __init__(
        self, make: Callable[[], Stateful], key: str, method: Callable[..., Any], blueprint: Blueprint
    ) -> None:
        self.spec: ToolSpec = replace(
            blueprint.spec, definition=replace(blueprint.spec.definition, sequential=True), state=key
        )
        self.run = blueprint.run(_remembering(make, key, method, blueprint), takes_context=True)
        self.wants_context = True
        self.prepare = blueprint.prepare
        self.validators = blueprint.validators
        self._available = blueprint.available

    async def available(self, context: RunContext[Any]) -> Availability:
        """What the `available` option's function says; True without one."""
        return True if self._available is None else await self._available(context)

    def __repr__(self) -> str:
        return f"<StatefulTool {self.spec.definition.name} of {self.spec.state}>"


def _remembering(
    make: Callable[[], Stateful], key: str, method: Callable[..., Any], blueprint: Blueprint
) -> Callable[..., Any]:
    """A method as a function that brings its object along, and leaves the object's state in the context."""
    call, takes_context = as_async(method), blueprint.takes_context

    async def remembering(context: RunContext[Any], /, **arguments: Any) -> object:
        remembers = make()
        states = context.tool_state or {}
        known = key in states
        if known:
            remembers.restore_state(to_json(states[key]))  # a copy: the recorded one must not change
        given = (remembers, context) if takes_context else (remembers,)
        value = await call(*given, **arguments)
        state, written = _exported(remembers, key)
        if not known or written != msgspec.json.encode(states[key]):
            context.save_tool_state(state)
        return value

    return remembering


def _exported(remembers: Stateful, key: str) -> tuple[Any, bytes]:
    """An object's state, and how it is written.

    Raises:
        ToolExecutionFailed: it is no JSON, or too large.
    """
    try:
        state = to_json(remembers.export_state(), "state")
    except NotEncodable as error:
        raise ToolExecutionFailed(
            f"the state of {key!r} cannot be recorded: {error}; export_state() must give JSON", state=key
        ) from error
    written = msgspec.json.encode(state)
    if len(written) > MAX_STATE_BYTES:
        raise ToolExecutionFailed(
            f"the state of {key!r} has {len(written):,} bytes, more than the {MAX_STATE_BYTES:,} allowed: "
            "keep what is large elsewhere, and its name in the state",
            state=key,
        )
    return state, written


def _members(kind: type[Any]) -> dict[str, Any]:
    """What stands in a class, that of its bases first; what a class has in the place of theirs is its own."""
    found: dict[str, Any] = {}
    for one in reversed(kind.__mro__):
        found |= vars(one)
    return found


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
