"""FunctionTool: a tool made from a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, Unpack, overload

from flyball.core.context import RunContext
from flyball.core.errors import UserError
from flyball.core.tools import ToolDefinition
from flyball.tool.blueprint import Blueprint, blueprint_of, blueprint_with
from flyball.tool.options import Availability, ToolOptions, ToolPolicy

P = ParamSpec("P")
R = TypeVar("R")
Q = ParamSpec("Q")
S = TypeVar("S")


class FunctionTool(Generic[P, R]):
    """A function, sync or async, as a tool. It can still be called as the function that it was.

    `run(args_json, context)` validates the arguments and calls the function: an async one on the loop, a sync
    one in a thread. It raises ModelRetry where the arguments are wrong, and whatever the function raises.
    """

    __slots__ = ("__wrapped__", "_available", "prepare", "run", "spec", "validators", "wants_context")

    def __init__(self, fn: Callable[P, R], blueprint: Blueprint) -> None:
        self.__wrapped__ = fn
        self.spec = blueprint.spec
        self.run = blueprint.run(fn)
        self.wants_context = blueprint.wants_context
        self.prepare = blueprint.prepare
        self.validators = blueprint.validators
        self._available = blueprint.available

    @staticmethod
    def from_function(fn: Callable[Q, S], **options: Unpack[ToolOptions]) -> FunctionTool[Q, S]:
        """A tool from a typed function; its name and description too, unless the options say them.

        The first parameter may be a RunContext, which the model does not see.

        Raises:
            SchemaMalformed: a parameter's type has no schema; the message names the tool and the parameter.
            UserError: the function or an option cannot be.
        """
        _refuse_tool(fn)
        return FunctionTool(fn, blueprint_of(fn, options))

    @staticmethod
    def from_schema(
        fn: Callable[Q, S],
        name: str,
        description: str,
        json_schema: dict[str, Any],
        **policy: Unpack[ToolPolicy],
    ) -> FunctionTool[Q, S]:
        """A tool whose parameters are given as a JSON Schema. `fn` is called with the arguments by name.

        `fn` may be `async def fn(**arguments)`, or `async def fn(context: RunContext, /, **arguments)`. Only
        what the schema requires is checked before it is called.

        Raises:
            SchemaMalformed: the schema is no schema of an object.
            UserError: the name, the function or an option cannot be.
        """
        _refuse_tool(fn)
        return FunctionTool(fn, blueprint_with(fn, name, description, json_schema, policy))

    if TYPE_CHECKING:
        # A method that is marked with @tool is a `ToolMethod`, which is seen through its object as a method.
        @overload
        def __get__(self, instance: None, owner: type[Any]) -> FunctionTool[P, R]: ...
        @overload
        def __get__(
            self: FunctionTool[Concatenate[Any, Q], S], instance: object, owner: type[Any] | None = None
        ) -> Callable[Q, S]: ...
        def __get__(self, instance: Any, owner: Any = None) -> Any: ...

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself, with nothing around it."""
        return self.__wrapped__(*args, **kwargs)

    async def available(self, context: RunContext[Any]) -> Availability:
        """What the `available` option's function says; True without one."""
        return True if self._available is None else await self._available(context)

    @property
    def name(self) -> str:
        """The name that the model calls it by."""
        return self.spec.definition.name

    @property
    def definition(self) -> ToolDefinition:
        """What the model is told about it."""
        return self.spec.definition

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


def _refuse_tool(fn: object) -> None:
    if isinstance(fn, FunctionTool):
        raise UserError(f"{fn!r} is a tool already; give the function itself to change its options")
