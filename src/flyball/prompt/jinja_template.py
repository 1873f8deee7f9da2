"""JinjaTemplate: a prompt written in a part of Jinja2's language that cannot do harm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from flyball.core.errors import UserError
from flyball.prompt.text_template import TextTemplate

if TYPE_CHECKING:
    from flyball.prompt.jinja.reading import Compiled

MAX_OUTPUT = 1_000_000
"""How many characters a template may come to."""
MAX_STEPS = 2_000_000
"""How much work a template may be: a step for each turn of a loop, and for each character worked on."""


class JinjaTemplate(TextTemplate):
    """A text with `{{ name }}` in it, and `if`, `for`, `set`, filters and tests, as Jinja2 has them.

    It runs in Jinja's sandbox, with less in it: fields are looked up in mappings alone, nothing can be called
    but `range`, there are no macros, includes or imports, and only filters that work on what they are given.
    Nothing is escaped: a prompt is no HTML. What is not known is an error, never empty. A template that loops
    for too long or grows too large is ended with an error, so that even a hostile one does no harm.

    Args:
        text: the template.
        name: what it is called in errors.
        max_output: how many characters it may come to.
        max_steps: how much work it may be.

    Raises:
        TemplateMalformed: the text is no template, or one that does what is not known here.
        UserError: a limit is no number from 1.
    """

    __slots__ = ("_compiled", "max_output", "max_steps")
    _compiled: Compiled

    def __init__(
        self, text: str, name: str = "", *, max_output: int = MAX_OUTPUT, max_steps: int = MAX_STEPS
    ) -> None:
        for limit in (max_output, max_steps):
            if type(limit) is not int or limit < 1:
                raise UserError(f"the limits of a template are numbers from 1, not {limit!r}")
        self.max_output, self.max_steps = max_output, max_steps
        super().__init__(text, name)

    def _read(self) -> tuple[str, ...]:
        from flyball.prompt.jinja.reading import read

        self._compiled = read(self._place)
        return self._compiled.names

    def _filled(self, given: Mapping[str, Any]) -> str:
        from flyball.prompt.jinja.filling import filled

        return filled(self._place, self._compiled, given, self.max_output, self.max_steps)
