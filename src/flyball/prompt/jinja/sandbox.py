"""What a template may reach, and what that costs."""

from __future__ import annotations

import operator as arithmetic
from collections.abc import Mapping, Sequence
from typing import Any, cast

from jinja2 import StrictUndefined, pass_context
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.tests import TESTS

from flyball.core.errors import TemplateError
from flyball.prompt.jinja.budget import budget_of, size
from flyball.prompt.jinja.filters import FILTERS, as_text, items_of, joined

COUNTED, WEIGHED, JOINED = "\0counted", "\0weighed", "\0joined"
"""Filters that a template is given when it is read, and cannot name: see `reading`."""
MOST_BITS = 4_096
"""How large a whole number may become."""
_LOOP = frozenset(
    {"index", "index0", "first", "last", "length", "revindex", "revindex0", "previtem", "nextitem", "depth"}
)
_KNOWN_TESTS = (
    *("boolean", "defined", "divisibleby", "even", "false", "float", "integer", "iterable", "mapping"),
    *("none", "number", "odd", "sequence", "string", "true", "undefined", "in", "eq", "equalto", "ne"),
    *("lt", "lessthan", "le", "gt", "greaterthan", "ge"),
)
_ARITHMETIC = {"+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod"}


def numbers(*bounds: int) -> range:
    """`range`, of numbers that fit into a loop."""
    if not 1 <= len(bounds) <= 3 or not all(type(bound) is int for bound in bounds):
        raise TemplateError(f"range takes one to three whole numbers, not {bounds!r:.100}")
    if any(bound.bit_length() > 40 for bound in bounds):
        raise TemplateError(f"range({', '.join(map(str, bounds))}) is too long")
    return range(*bounds)


@pass_context
def _counted(context: Context, value: Any) -> list[Any]:
    """What a loop goes through, paid for before it begins."""
    budget_of(context).spend(size(value))
    return items_of(value)


@pass_context
def _weighed(context: Context, value: Any) -> Any:
    """A value that is compared, which takes as long as it is large."""
    budget_of(context).spend(size(value))
    return value


@pass_context
def _joined(context: Context, pieces: list[Any]) -> str:
    """What stands between tildes, as one text."""
    return joined(budget_of(context), pieces)


class PromptEnvironment(ImmutableSandboxedEnvironment):
    """Jinja's sandbox with less in it: no attributes of objects, no calls but `range`, no growing by sums."""

    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%", "**"})

    def __init__(self) -> None:
        super().__init__(
            undefined=StrictUndefined,
            autoescape=False,
            optimized=False,
            keep_trailing_newline=True,
            finalize=as_text,
            cache_size=0,
        )
        self.globals = {"range": numbers}
        self.filters = {**FILTERS, COUNTED: _counted, WEIGHED: _weighed, JOINED: _joined}
        self.tests = {name: TESTS[name] for name in _KNOWN_TESTS}

    def getattr(self, obj: Any, attribute: str) -> Any:
        """The field of a mapping, or what a loop tells of itself."""
        if isinstance(obj, LoopContext) and attribute in _LOOP:
            return getattr(obj, attribute)
        return self.getitem(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """The field of a mapping, or the item of a list."""
        if isinstance(obj, self.undefined):
            return obj[argument]  # which says what is missing
        if isinstance(obj, Mapping):
            fields = cast("Mapping[Any, Any]", obj)
            return fields[argument] if argument in fields else self.undefined(obj=obj, name=argument)
        if isinstance(obj, Sequence) and type(argument) is int:
            try:
                return cast("Sequence[Any]", obj)[argument]
            except IndexError:
                return self.undefined(obj=obj, name=str(argument))
        kind: Any = type(obj)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        raise TemplateError(
            f"a {kind.__name__} has no {argument!r:.50}: mappings have fields, lists have places"
        )

    def call(self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Call `range`, and nothing else."""
        named = [name for name in kwargs if name not in ("_loop_vars", "_block_vars")]  # which Jinja adds
        if __obj is not numbers or named:
            raise TemplateError(
                "only range can be called: work the value out before, and give it under a name"
            )
        return numbers(*args)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """A sum and the like, of numbers that do not grow without end; texts may be added."""
        if operator == "+" and isinstance(left, str) and isinstance(right, str):
            return joined(budget_of(context), (left, right))
        if not all(isinstance(one, int | float) for one in (left, right)) or operator not in _ARITHMETIC:
            kinds = f"a {type(left).__name__} and a {type(right).__name__}"
            raise TemplateError(f"{operator} is not known for {kinds}: it is for numbers")
        result: Any = getattr(arithmetic, _ARITHMETIC[operator])(left, right)
        if isinstance(result, int) and result.bit_length() > MOST_BITS:
            raise TemplateError("a number has become too large")
        return result
