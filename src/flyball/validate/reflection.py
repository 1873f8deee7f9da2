"""Reflection: a valid output is looked at once more, and sent back to be made better.

A validator that raises ModelRetry says that an output is wrong, and that counts as a retry. A reflection says
that it could be better: the model is told, and answers again, so often and no more; then the last output is
taken as it is. All turns of it are turns of the run: limits bind, and what was decided is recorded.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from flyball.core.context import RunContext
from flyball.core.errors import UserError
from flyball.core.feature import FunctionFeature

ReflectionCheck: TypeAlias = Callable[[RunContext[Any], Any], "str | Awaitable[str | None] | None"]
"""Looks at an output: gives what to correct, or None (or an empty text) if it is good."""

CORRECTION = """\
Your answer was reviewed, and needs to be corrected:

{feedback}

Answer again, with that corrected."""
"""What the model is told, unless another prompt is given."""

_PLACES = re.compile(r"\{(output|feedback)\}")


class Reflection(FunctionFeature):
    """Looks at each valid output, after the validators: `check(ctx, output)` gives what to correct, or None.

    An agent has one at most.

    Args:
        check: the function; it may be async.
        max_reflections: how often an output is sent back. The one after that is taken in any case.
        prompt: what the model is told. `{output}` stands for the output under review and `{feedback}` for
            what the function said; without a place for it, that is put at the end.
        name: what it is called in journals and errors.
    """

    def __init__(
        self,
        check: ReflectionCheck,
        max_reflections: int = 3,
        prompt: str = CORRECTION,
        name: str | None = None,
    ) -> None:
        super().__init__(check, name)
        if type(max_reflections) is not int or max_reflections < 0:
            raise UserError(f"max_reflections is a number from 0, not {max_reflections!r}")
        if not isinstance(prompt, str) or not prompt:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(f"the prompt of a reflection is a text that is not empty, not {prompt!r}")
        self.max_reflections = max_reflections
        self.prompt = prompt if "{feedback}" in prompt else f"{prompt}\n\n{{feedback}}"

    async def feedback(self, ctx: RunContext[Any], output: Any) -> str:
        """What to correct in an output; an empty text if it is good.

        Raises:
            UserError: the function gave something else.
        """
        found = self.check(ctx, output)
        if hasattr(found, "__await__"):
            found = await found
        if found is None:
            return ""
        if not isinstance(found, str):
            raise UserError(
                f"the reflection {self.name!r} gave {found!r:.200}: it must give what to correct, or None"
            )
        return found

    def correction(self, output: str, feedback: str) -> str:
        """What the model is told. What is filled in is only text: nothing in it is filled in again."""
        said = {"output": output, "feedback": feedback}
        return _PLACES.sub(lambda place: said[place[1]], self.prompt)
