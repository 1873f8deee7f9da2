"""Blueprint: what a function's signature, its docstring and its options say about the tool made of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

from flyball.core.errors import UserError
from flyball.core.tools import ToolSpec
from flyball.tool.availability import Ask, asking
from flyball.tool.docstring import parse
from flyball.tool.given_schema import check_given, validator_for
from flyball.tool.hints import underlying
from flyball.tool.options import ToolOptions, ToolPolicy, check_name, spec_from
from flyball.tool.running import Run, runner
from flyball.tool.schema import Validate, schema_for
from flyball.tool.signature import read_signature, takes_context

if TYPE_CHECKING:
    from flyball.tool.preparing import ToolPrepare
    from flyball.tool.validating import ResultValidator


class Blueprint(Struct, frozen=True):
    """All that a tool is made of, but the function. `takes_context`: the function's first is a RunContext."""

    spec: ToolSpec
    validate: Validate
    takes_context: bool
    available: Ask | None
    prepare: ToolPrepare | None
    validators: tuple[ResultValidator, ...]

    def run(self, fn: Callable[..., Any], *, takes_context: bool | None = None) -> Run:
        """The `run` of a tool that calls `fn` with the arguments, and has its result looked at."""
        first = self.takes_context if takes_context is None else takes_context
        run = runner(fn, self.validate, takes_context=first)
        if not self.validators:
            return run
        from flyball.tool.validating import validated

        return validated(run, self.validators)

    @property
    def wants_context(self) -> bool:
        """Whether the function, or somebody who looks at its result, reads the context."""
        return self.takes_context or bool(self.validators)


def blueprint_of(fn: Callable[..., Any], options: ToolOptions, *, method: bool = False) -> Blueprint:
    """The blueprint of a typed function; with `method`, of one whose first parameter is its object.

    Raises:
        SchemaMalformed: a parameter's type has no schema; the message names the tool and the parameter.
        UserError: the function or an option cannot be.
    """
    policy = options.copy()
    name = name_of(fn, policy.pop("name", None))
    description = policy.pop("description", None)
    signature = read_signature(name, fn, method=method)
    documented = parse(_documentation(fn))
    strict = policy.get("strict") is True
    parameters, validate = schema_for(name, signature.arguments, documented.parameters, strict=strict)
    described = documented.description if description is None else description
    return _put_together(
        name, described, parameters, validate, cast("ToolPolicy", policy), signature.takes_context
    )


def blueprint_with(
    fn: Callable[..., Any], name: str, description: str, schema: dict[str, Any], policy: ToolPolicy
) -> Blueprint:
    """The blueprint of a function whose parameters are given as a JSON Schema.

    Raises:
        SchemaMalformed: the schema is no schema of an object.
        UserError: the name, the function or an option cannot be.
    """
    name = name_of(fn, name)
    checked = check_given(name, schema)
    return _put_together(name, description, checked, validator_for(checked), policy, takes_context(name, fn))


def _put_together(  # noqa: PLR0917 - all that one is made of
    name: str,
    description: str,
    parameters: dict[str, Any],
    validate: Validate,
    policy: ToolPolicy,
    takes_context: bool,
) -> Blueprint:
    spec = spec_from(name, description, parameters, policy, takes_context=takes_context)
    ask = asking(name, policy.get("available"))
    validators = tuple(policy.get("validators") or ())
    return Blueprint(spec, validate, takes_context, ask, policy.get("prepare"), validators)


def name_of(fn: Any, given: str | None) -> str:
    """What a tool is called: as is said, or as its function is.

    Raises:
        UserError: it is no function, or has no name that providers take.
    """
    if not callable(fn):
        raise UserError(
            f"a tool is made from a function, not from {fn!r}; options go by name: @tool(name=...), and an "
            "agent is made one by agent.as_tool()"
        )
    if given is not None:
        return check_name(given)
    name: Any = getattr(fn, "__name__", None)
    if not isinstance(name, str):
        raise UserError(f"{fn!r} has no name; give it one: tool(name=...)")
    return check_name(name)


def _documentation(fn: Callable[..., Any]) -> str | None:
    # What a partial or an object says of itself is said of its class.
    return fn.__doc__ if inspect.isroutine(fn) else underlying(fn).__doc__
