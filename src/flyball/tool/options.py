"""The options of a tool, checked when it is made: a wrong one must not show itself in the middle of a run."""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, cast

from flyball.core.context import RunContext
from flyball.core.encodable import clean_text
from flyball.core.errors import UserError
from flyball.core.tools import Safety, ToolDefinition, ToolSpec

if TYPE_CHECKING:
    from flyball.tool.preparing import ToolPrepare
    from flyball.tool.validating import ResultValidator

Availability: TypeAlias = bool | str
"""True: it can work now. False, or the reason: it cannot."""
AvailableFn: TypeAlias = (
    Callable[[], Availability | Awaitable[Availability]]
    | Callable[[RunContext[Any]], Availability | Awaitable[Availability]]
)
"""Says whether a tool can work now; it may take the RunContext, and may be async. It should be quick."""

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_FLAGS = ("sequential", "approval", "history", "strict")


class ToolPolicy(TypedDict, total=False):
    """How a tool's calls are treated.

    Attributes:
        timeout: seconds after which a call is cancelled; none by default. A sync function cannot be stopped:
            its call ends for the model, its thread ends by itself.
        retries: how often the model may call again after a ModelRetry, by default as the agent says; and how
            often a failed call of an idempotent tool is repeated, by default once.
        sequential: its calls never overlap other calls of the turn.
        approval: a person or a callback must approve each call.
        safety: whether a call may be repeated when nobody knows whether it ran (see `Safety`).
        available: says whether the tool can work now; asked before each turn.
        strict: whether providers should hold the model to the schema; by default as the provider does. With
            True the arguments of a typed function are, too, taken only as the schema has them: no "1" for 1.
        history: the tool reads `ctx.messages`; its calls then travel with the history.
        prepare: changes before each turn what the model is told of the tool, or leaves it out.
        validators: look at what a call gave back; see `flyball.tool.validating`.
    """

    timeout: float | None
    retries: int | None
    sequential: bool
    approval: bool
    safety: Safety | Literal["idempotent", "at_least_once", "at_most_once"]
    available: AvailableFn | None
    strict: bool | None
    history: bool
    prepare: ToolPrepare | None
    validators: Sequence[ResultValidator]


class ToolOptions(ToolPolicy, total=False):
    """A tool's policy, and what to call it instead of what the function says.

    Attributes:
        name: instead of the function's name.
        description: instead of the docstring's.
    """

    name: str | None
    description: str | None


def check_name(name: str, where: str = "tool(name=...)") -> str:
    """The name, if providers take it; `where` says how another is given.

    Raises:
        UserError: it has other signs than letters, digits, _ and -, or more than 64 of them, or none.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UserError(
            f"{name!r} cannot be a tool's name: providers take 1 to 64 letters, digits, '_' and '-'; "
            f"give it another: {where}"
        )
    return name


def spec_from(
    name: str, description: str, parameters: dict[str, Any], options: ToolPolicy, *, takes_context: bool
) -> ToolSpec:
    """The spec of a tool, from its definition and its options.

    Raises:
        UserError: an option is unknown or has a value that cannot work.
    """
    _check(name, options)
    if not isinstance(description, str):  # pyright: ignore[reportUnnecessaryIsInstance] # not everybody checks
        raise _refused(name, "description", description, "text")
    history = options.get("history", False)
    if history and not takes_context:
        raise UserError(f"tool {name!r} has history=True, but no RunContext to read it from", tool=name)
    return ToolSpec(
        definition=ToolDefinition(
            name=name,
            parameters=parameters,
            description=clean_text(description),
            strict=options.get("strict"),
            sequential=options.get("sequential", False),
        ),
        safety=Safety(options.get("safety", Safety.AT_LEAST_ONCE)),
        retries=options.get("retries"),
        timeout=options.get("timeout"),
        approval=options.get("approval", False),
        checks_availability=options.get("available") is not None,
        wants_history=history,
    )


def _check(tool: str, options: ToolPolicy) -> None:
    given = cast("Mapping[str, Any]", options)
    known = ToolPolicy.__annotations__
    if unknown := sorted(given.keys() - known.keys()):
        raise UserError(
            f"tool {tool!r} has no option {unknown[0]!r}; there are name, description, {', '.join(known)}"
        )
    for flag in _FLAGS:
        allowed = (None, True, False) if flag == "strict" else (True, False)
        if not any(given.get(flag, False) is value for value in allowed):
            raise _refused(tool, flag, given[flag], "True or False")
    timeout = given.get("timeout")
    if timeout is not None and not (_is_number(timeout) and math.isfinite(timeout) and timeout > 0):
        raise _refused(tool, "timeout", timeout, "seconds greater than 0, or None for none")
    retries = given.get("retries")
    if retries is not None and not (type(retries) is int and retries >= 0):
        raise _refused(tool, "retries", retries, "a whole number from 0 on, or None for the agent's")
    if given.get("safety", Safety.AT_LEAST_ONCE) not in tuple(Safety):
        raise _refused(tool, "safety", given["safety"], f"one of {', '.join(Safety)}")
    for option in ("available", "prepare"):
        if given.get(option) is not None and not callable(given[option]):
            raise _refused(tool, option, given[option], "a function")
    validators: Any = given.get("validators") or ()
    if not (_is_list(validators) and all(map(callable, validators))):
        raise _refused(tool, "validators", validators, "a list of functions")


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _refused(tool: str, option: str, value: object, wanted: str) -> UserError:
    return UserError(
        f"tool {tool!r}: {option}={value!r} cannot be; it must be {wanted}", tool=tool, option=option
    )
