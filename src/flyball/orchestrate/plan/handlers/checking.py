"""Steps that look at a text, and give it on if it passes."""

from __future__ import annotations

from collections.abc import Callable

from flyball.core.errors import ConfigurationFailure, FlyballError, RuleFailed
from flyball.orchestrate.awaiting import answer_of
from flyball.orchestrate.plan.handling import StepHandler
from flyball.orchestrate.plan.ir import StepInput
from flyball.orchestrate.plan.steps import PlanStep


def validate_handler(check: Callable[[str], object] | None, name: str = "check") -> StepHandler:
    """Looks at a text, and gives it on if it passes.

    `check` passes it by giving None or True. What it raises, False, and a text that says what is wrong refuse
    it.
    """

    async def validate(step: PlanStep) -> str:
        if check is None:
            raise ConfigurationFailure("validate handler: nil check")
        text = StepInput.of(step.input).text
        reason = await _refused(check, text)
        if reason is not None:
            raise RuleFailed(reason, rules=[name])
        return text

    return validate


async def _refused(check: Callable[[str], object], text: str) -> str | None:
    """Why a check refuses a text; None if it does not."""
    try:
        verdict = await answer_of(check, text)
    except FlyballError:
        raise
    except Exception as error:
        return str(error) or type(error).__name__
    if isinstance(verdict, str):
        return verdict
    return "the check refused it" if verdict is False else None
