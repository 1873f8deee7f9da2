"""Rules: named checks of an output. All of them are asked, so that what is wrong is told at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from inspect import isawaitable
from typing import Any, TypeAlias

from msgspec import Struct

from flyball.core.context import RunContext
from flyball.core.errors import RuleFailed, UserError

Check: TypeAlias = Callable[[Any], "str | bool | Awaitable[str | bool | None] | None"]
"""Looks at an output: gives what is wrong with it, or False; None or True where nothing is. It may be async,
and it may raise: then the error says what is wrong."""


class Rule(Struct, frozen=True):
    """A named check. One without a check is skipped."""

    name: str
    check: Check | None = None


class Violated(Struct, frozen=True):
    """A rule that an output breaks, and why."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


class RuleValidator:
    """Holds outputs to rules. It stands in `Agent(validators=[...])`, and can be asked without an agent.

    Rules are asked in their order, each of them, also after one that failed. The rules are copied: what is
    done to the list afterwards changes nothing. In an agent, the model is told all that is wrong and answers
    again, as often as the agent's `retries` allow; then the run fails with the RuleFailed.

    Raises:
        UserError: something is no rule, has no name, or a check is no function.
    """

    __slots__ = ("name", "rules")

    def __init__(self, rules: Iterable[Rule], name: str = "rules") -> None:
        self.rules = tuple(rules)
        self.name = name
        for rule in self.rules:
            if not isinstance(rule, Rule):  # pyright: ignore[reportUnnecessaryIsInstance] - anybody's
                raise UserError(f"RuleValidator takes rules, such as Rule('short', is_short), not {rule!r}")
            if not isinstance(rule.name, str) or not rule.name:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise UserError(f"a rule has a name, not {rule.name!r}")
            if rule.check is not None and not callable(rule.check):
                raise UserError(f"the check of the rule {rule.name!r} is a function, not {rule.check!r}")

    @property
    def asked(self) -> int:
        """How many rules have a check."""
        return len([rule for rule in self.rules if rule.check is not None])

    async def violations(self, output: Any) -> tuple[Violated, ...]:
        """The rules that an output breaks, in their order, each with the reason."""
        broken = [
            Violated(rule.name, reason)
            for rule in self.rules
            if rule.check is not None and (reason := await _reason(rule.check, output))
        ]
        return tuple(broken)

    async def validate(self, output: Any) -> None:
        """Do nothing where an output follows all rules.

        Raises:
            RuleFailed: it does not; details `rules` has the name and the reason of each that it breaks, and
                `asked` how many were asked.
        """
        if broken := await self.violations(output):
            raise rules_failed(broken, self.asked)

    async def __call__(self, ctx: RunContext[Any], output: Any) -> Any:
        """The output, as an agent's validator gives it.

        Raises:
            RuleFailed: see `validate`.
        """
        await self.validate(output)
        return output

    def __repr__(self) -> str:
        return f"<RuleValidator {', '.join([rule.name for rule in self.rules]) or 'without rules'}>"


def rules_failed(broken: Iterable[Violated], asked: int) -> RuleFailed:
    """The failure of an output that breaks these rules, of so many that were asked."""
    told = tuple(broken)
    lines = "\n".join([f"- {one}" for one in told])
    rules = [{"name": one.name, "reason": one.reason} for one in told]
    return RuleFailed(f"the output breaks {_counted(len(told))}:\n{lines}", rules=rules, asked=asked)


def _counted(number: int) -> str:
    return "a rule" if number == 1 else f"{number} rules"


async def _reason(check: Check, output: Any) -> str:
    """What a check has against an output; empty where it has nothing."""
    try:
        given: Any = check(output)
        found: Any = await given if isawaitable(given) else given
    except Exception as error:  # a rule refuses as it likes, and never keeps the others from being asked
        return str(error) or type(error).__name__
    if found is None or found is True or found == "":
        return ""
    if found is False:
        return "it does not hold"
    if isinstance(found, str):
        return found
    return f"it gave {found!r:.100}: a check gives what is wrong, True or False, or None"
