"""FunctionTool: a tool made from a function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar, Unpack, cast

from flyball.core.context import RunContext
from flyball.core.errors import UserError
from flyball.core.tools import ToolDefinition, ToolSpec
from flyball.tool.availability import Ask, asking
from flyball.tool.docstring import parse
from flyball.tool.given_schema import check_given, validator_for
from flyball.tool.hints import underlying
from flyball.tool.options import Availability, ToolOptions, ToolPolicy, check_name, spec_from
from flyball.tool.running import Run, runner
from flyball.tool.schema import schema_for
from flyball.tool.signature import read_signature, takes_context

P = ParamSpec("P")
R = TypeVar("R")
Q = ParamSpec("Q")
S = TypeVar("S")


class FunctionTool(Generic[P, R]):
    """A function, sync or async, as a tool. It can still be called as the function that it was.

    `run(args_json, context)` validates the arguments and calls the function: an async one on the loop, a sync
    one in a thread. It raises ModelRetry where the arguments are wrong, and whatever the function raises.
    """

    __slots__ = ("__wrapped__", "_available", "run", "spec", "wants_context")

    def __init__(
        self,
        fn: Callable[P, R],
        spec: ToolSpec,
        run: Run,
        *,
        wants_context: bool,
        available: Ask | None = None,
    ) -> None:
        self.__wrapped__ = fn
        self.spec = spec
        self.run = run
        self.wants_context = wants_context
        self._available = available

    @staticmethod
    def from_function(fn: Callable[Q, S], **options: Unpack[ToolOptions]) -> FunctionTool[Q, S]:
        """A tool from a typed function; its name and description too, unless the options say them.

        The first parameter may be a RunContext, which the model does not see.

        Raises:
            SchemaMalformed: a parameter's type has no schema; the message names the tool and the parameter.
            UserError: the function or an option cannot be.
        """
        policy = options.copy()
        name = _name_of(fn, policy.pop("name", None))
        description = policy.pop("description", None)
        signature = read_signature(name, fn)
        documented = parse(_documentation(fn))
        parameters, validate = schema_for(name, signature.arguments, documented.parameters)
        spec = spec_from(
            name,
            documented.description if description is None else description,
            parameters,
            cast("ToolPolicy", policy),
            takes_context=signature.takes_context,
        )
        run = runner(fn, validate, takes_context=signature.takes_context)
        ask = asking(name, policy.get("available"))
        return FunctionTool(fn, spec, run, wants_context=signature.takes_context, available=ask)

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
        name = _name_of(fn, name)
        schema = check_given(name, json_schema)
        wants_context = takes_context(name, fn)
        spec = spec_from(name, description, schema, policy, takes_context=wants_context)
        run = runner(fn, validator_for(schema), takes_context=wants_context)
        ask = asking(name, policy.get("available"))
        return FunctionTool(fn, spec, run, wants_context=wants_context, available=ask)

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


def _name_of(fn: Any, given: str | None) -> str:
    if not callable(fn):
        raise UserError(
            f"a tool is made from a function, not from {fn!r}; options go by name: @tool(name=...)"
        )
    if isinstance(fn, FunctionTool):
        raise UserError(f"{fn!r} is a tool already; give the function itself to change its options")
    if given is not None:
        return check_name(given)
    name: Any = getattr(fn, "__name__", None)
    if not isinstance(name, str):
        raise UserError(f"{fn!r} has no name; give it one: tool(name=...)")
    return check_name(name)


def _documentation(fn: Callable[..., Any]) -> str | None:
    # What a partial or an object says of itself is said of its class.
    return fn.__doc__ if inspect.isroutine(fn) else underlying(fn).__doc__
